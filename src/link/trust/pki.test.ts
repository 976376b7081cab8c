import 'reflect-metadata';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  checkIdentity,
  daysLeft,
  isRenewalDue,
  isSignedBy,
  issue,
  joinCa,
  type KeyPair,
  type LeafContent,
  makeCa,
  makeCsr,
  makeJoinLeaf,
  makeKey,
  makeLeaf,
  nameToCheck,
  svcUris,
} from './pki.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const now_ms = Date.UTC(2026, 10, 21, 12);
const content: LeafContent = {
  title: 'svc node web-1',
  uri: 'svc:node:web-1',
  names: ['127.0.0.1', '::1', 'web-1.example'],
  usages: ['server', 'client'],
  now_ms,
  lifetime_ms: 90 * DAY_MS,
};

async function authority(): Promise<KeyPair> {
  const key = await makeKey();
  return { key, cert: await makeCa(key, now_ms) };
}

test('a certificate has the names that the issuer chose, and none from the request', async () => {
  const ca = await authority();
  const keys = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign']);
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: [{ CN: ['main'], O: ['Evil'] }],
    keys,
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    extensions: [
      new x509.SubjectAlternativeNameExtension([
        { type: 'url', value: 'svc:plane:pln_test' },
        { type: 'dns', value: 'evil.example' },
      ]),
      new x509.BasicConstraintsExtension(true, 2, true),
    ],
  });
  const cert = new X509Certificate(await issue(ca, request.toString('pem'), content));
  expect(cert.subject).toBe('CN=svc node web-1');
  expect(cert.ca).toBe(false);
  expect(svcUris(cert.raw)).toEqual(['svc:node:web-1']);
  expect(cert.subjectAltName).not.toContain('evil');
  expect(cert.checkHost('web-1.example')).toBe('web-1.example');
  expect(cert.checkIP('127.0.0.1')).toBe('127.0.0.1');
  expect(cert.checkHost('svc node web-1')).toBe(undefined);
  expect(cert.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2']);
  expect(isSignedBy(cert, new X509Certificate(ca.cert))).toBe(true);
  expect(isSignedBy(cert, new X509Certificate((await authority()).cert))).toBe(false);
});

test('rejects a request that its key did not sign, or for another kind of key', async () => {
  const ca = await authority();
  const csr = await makeCsr(await makeKey(), 'svc node web-1');
  const der = Buffer.from(new x509.Pkcs10CertificateRequest(csr).rawData);
  // Changes a byte of the name, so that the request is well-formed but its signature is wrong.
  const changed = Buffer.from(der);
  changed[der.indexOf('web-1')] = 'W'.charCodeAt(0);
  const pem = x509.PemConverter.encode(changed, 'CERTIFICATE REQUEST');
  await expect(issue(ca, pem, content)).rejects.toThrow('not signed by its own key');

  for (const algorithm of [
    { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' },
    {
      name: 'RSASSA-PKCS1-v1_5',
      modulusLength: 2048,
      publicExponent: new Uint8Array([1, 0, 1]),
      hash: 'SHA-256',
    },
  ]) {
    const keys = (await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as never;
    const other = await x509.Pkcs10CertificateRequestGenerator.create({ keys, signingAlgorithm: algorithm });
    await expect(issue(ca, other.toString('pem'), content)).rejects.toThrow('P-256');
  }
  await expect(issue(ca, 'x'.repeat(100_000), content)).rejects.toThrow('too long');
});

test('rejects a malformed request with a message', async () => {
  const ca = await authority();
  const csr = await makeCsr(await makeKey(), 'svc node web-1');
  const der = Buffer.from(new x509.Pkcs10CertificateRequest(csr).rawData);
  const anything = fc.oneof(
    fc.string(),
    fc.uint8Array({ maxLength: 200 }).map((bytes) => x509.PemConverter.encode(bytes, 'CERTIFICATE REQUEST')),
    fc.nat(der.length - 1).map((length) => {
      return x509.PemConverter.encode(der.subarray(0, length), 'CERTIFICATE REQUEST');
    }),
  );
  await fc.assert(
    fc.asyncProperty(anything, async (text) => {
      await expect(issue(ca, text, content)).rejects.toThrow(/^the certificate request /);
    }),
    { numRuns: 100 },
  );
});

test('does not certify an invalid host name', async () => {
  const ca = await authority();
  const key = await makeKey();
  for (const name of ['*.example', 'a b', 'a,b', 'http://a', '', 'ä.example']) {
    await expect(makeLeaf(ca, key, { ...content, names: [name] })).rejects.toThrow('not a host name');
  }
});

test('a certificate is due for renewal when a third of its lifetime is left', async () => {
  const cert = await makeLeaf(await authority(), await makeKey(), content);
  expect(daysLeft(cert, now_ms)).toBeCloseTo(90, 3);
  expect(isRenewalDue(cert, now_ms)).toBe(false);
  expect(isRenewalDue(cert, now_ms + 59 * DAY_MS)).toBe(false);
  expect(isRenewalDue(cert, now_ms + 61 * DAY_MS)).toBe(true);
  expect(daysLeft(cert, now_ms + 91 * DAY_MS)).toBeLessThan(0);
  // The clock was ahead, and has been set back.
  expect(isRenewalDue(cert, now_ms - 2 * DAY_MS)).toBe(true);
});

test('no certificate outlives its authority, and clocks that are a day behind accept it', async () => {
  const ca = await authority();
  const cert = new X509Certificate(
    await makeLeaf(ca, await makeKey(), { ...content, lifetime_ms: 36_500 * DAY_MS }),
  );
  const root = new X509Certificate(ca.cert);
  expect(cert.validToDate).toEqual(root.validToDate);
  expect(cert.validFromDate.getTime()).toBeLessThanOrEqual(now_ms - DAY_MS + 1000);
});

test('an authority that is created again from its key still verifies what it signed', async () => {
  const ca = await authority();
  const cert = new X509Certificate(await makeLeaf(ca, await makeKey(), content));
  expect(isSignedBy(cert, new X509Certificate(await makeCa(ca.key, now_ms + DAY_MS)))).toBe(true);
});

test('a certificate that only claims an issuer is not from that issuer', async () => {
  const ca = await authority();
  const forged = await makeLeaf({ cert: ca.cert, key: await makeKey() }, await makeKey(), content);
  expect(isSignedBy(new X509Certificate(forged), new X509Certificate(ca.cert))).toBe(false);
  const leaf = { key: await makeKey(), cert: '' };
  leaf.cert = await makeLeaf(ca, leaf.key, content);
  const below = await makeLeaf(leaf, await makeKey(), content);
  expect(isSignedBy(new X509Certificate(below), new X509Certificate(leaf.cert))).toBe(false);
});

test('both sides of a join derive the same authority from the same token, and only then', async () => {
  const token = 'sixteen letters!';
  const [plane, node, other] = [await joinCa(token), await joinCa(token), await joinCa(`${token}!`)];
  expect(plane.key).toBe(node.key);
  expect(createPrivateKey(plane.key).asymmetricKeyType).toBe('ed25519');
  const leaf = new X509Certificate((await makeJoinLeaf(plane, 'node', now_ms)).cert);
  expect(isSignedBy(leaf, new X509Certificate(node.cert))).toBe(true);
  expect(isSignedBy(leaf, new X509Certificate(other.cert))).toBe(false);
});

test('identities are read from the bytes of a certificate, however its names are written', async () => {
  const keys = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign']);
  const cert = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: ['x'] }],
    keys,
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    extensions: [
      new x509.SubjectAlternativeNameExtension([
        { type: 'dns', value: 'a, URI:svc:node:web-1' },
        { type: 'url', value: 'https://a.example, URI:svc:node:web-1' },
        { type: 'url', value: 'svc:node:web-2, URI:svc:node:web-1' },
      ]),
    ],
  });
  expect(svcUris(new Uint8Array(cert.rawData))).toEqual(['svc:node:web-2, URI:svc:node:web-1']);
});

test('files that do not match are reported with a message', async () => {
  const ca = await authority();
  const key = await makeKey();
  const cert = await makeLeaf(ca, key, content);
  checkIdentity({ ca: ca.cert, cert, key });
  const refused = (files: Parameters<typeof checkIdentity>[0]) => expect(() => checkIdentity(files));
  refused({ ca: ca.cert, cert, key: ca.key }).toThrow('key.pem is not the key of cert.pem');
  refused({ ca: 'x', cert, key }).toThrow('ca.pem cannot be read');
  refused({ ca: ca.cert, cert: 'x', key }).toThrow('cert.pem cannot be read');
  refused({ ca: ca.cert, cert, key: 'x' }).toThrow('key.pem cannot be read');
});

test('a certificate is verified by the host of the target, else by a name in it', async () => {
  const ca = await authority();
  const of = async (names: string[]) => makeLeaf(ca, await makeKey(), { ...content, names });
  const cert = await of(['web-1.example', '127.0.0.1', '::1']);
  for (const host of ['web-1.example', '127.0.0.1', '::1']) expect(nameToCheck(cert, host)).toBe(host);
  for (const host of ['localhost', '10.0.0.7', '::2']) expect(nameToCheck(cert, host)).toBe('web-1.example');
  expect(nameToCheck(await of(['10.0.0.7']), '127.0.0.1')).toBe('10.0.0.7');
  // A certificate without a name cannot be verified, which the client detects.
  expect(nameToCheck(await of([]), '127.0.0.1')).toBe('127.0.0.1');
});
