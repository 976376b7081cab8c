/**
 * Certificates: making keys, authorities, leaves and requests, and saying what a certificate holds. ECDSA P-256, but for
 * the authority of a join, whose Ed25519 key both sides derive from the bootstrap token. It knows no folders and no sockets.
 *
 * Who a certificate is for stands in a URI of its SAN: `svc:plane:<plane_id>`, `svc:node:<node_id>`, `svc:join:plane`,
 * `svc:join:node`.
 */
import 'reflect-metadata';
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  hkdfSync,
  type webcrypto,
  X509Certificate,
} from 'node:crypto';
import { isIP } from 'node:net';
import tls from 'node:tls';
import * as x509 from '@peculiar/x509';
import { limits } from '../base/limits.ts';

/** A certificate and its private key, PEM. */
export interface KeyPair {
  cert: string;
  key: string;
}

/** What one side of a TLS connection needs: whom it believes, who it is. PEM. */
export interface Identity extends KeyPair {
  ca: string;
}

export interface LeafContent {
  /** The common name; only people read it. */
  title: string;
  uri: string;
  /** DNS names and addresses that a client may dial it by. */
  names?: string[];
  usages: ('server' | 'client')[];
  now_ms: number;
  lifetime_ms: number;
}

/** The name that a joining plane asks for; no certificate but a join's is for it. */
export const JOIN_NAME = 'join.svc.internal';
/** What agents on a machine dial its own process by. */
export const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '::1'];
export const JOIN_PLANE_URI = 'svc:join:plane';
export const JOIN_NODE_URI = 'svc:join:node';
export const planeUri = (plane_id: string) => `svc:plane:${plane_id}`;
export const nodeUri = (node_id: string) => `svc:node:${node_id}`;

type SigningAlgorithm = webcrypto.Algorithm | webcrypto.EcdsaParams;

const P256 = { name: 'ECDSA', namedCurve: 'P-256' };
const SIGNING = { ...P256, hash: 'SHA-256' };
const ED25519 = { name: 'Ed25519' };
const EKU = x509.ExtendedKeyUsage;

/** A new private key, PKCS #8 PEM. */
export async function makeKey(): Promise<string> {
  const { privateKey } = await crypto.subtle.generateKey(P256, true, ['sign', 'verify']);
  return x509.PemConverter.encode(await crypto.subtle.exportKey('pkcs8', privateKey), 'PRIVATE KEY');
}

/** An authority for `key`; the same key makes the same name, so that what it signed before still holds. */
export async function makeCa(key: string, now_ms: number): Promise<string> {
  const spki = createPublicKey(key).export({ type: 'spki', format: 'der' });
  const name = `svc internal CA ${createHash('sha256').update(spki).digest('hex').slice(0, 12)}`;
  const from = now_ms - limits.certificate_backdate_ms;
  return selfSigned(ecKeys(key), SIGNING, name, from, now_ms + limits.ca_lifetime_ms, true);
}

/** A certificate that nobody can verify, for a node that nobody has certified yet. */
export function makeSelfSigned(key: string, title: string, now_ms: number): Promise<string> {
  const from = now_ms - limits.certificate_backdate_ms;
  return selfSigned(ecKeys(key), SIGNING, title, from, now_ms + limits.ca_lifetime_ms, false);
}

/**
 * The authority of a join. HKDF-SHA-256 over the token with a fixed info text and no salt: the same token must give the
 * same key at both ends without a word between them, and this key is the only thing that is ever derived from it. Who
 * sees what it signed can try tokens against it, so a token must be beyond guessing (16 characters at least).
 */
export async function joinCa(bootstrap_token: string): Promise<KeyPair> {
  const seed = Buffer.from(hkdfSync('sha256', bootstrap_token, '', 'svc join authority v1', 32));
  const key = createPrivateKey({ key: seed, format: 'raw-private', asymmetricKeyType: 'ed25519' });
  const keys = {
    privateKey: key.toCryptoKey(ED25519, true, ['sign']),
    publicKey: createPublicKey(key).toCryptoKey(ED25519, true, ['verify']),
  };
  const always = [Date.UTC(2000, 0, 1), Date.UTC(2100, 0, 1)] as const;
  const cert = await selfSigned(keys, ED25519, 'svc join', ...always, true);
  return { cert, key: key.export({ type: 'pkcs8', format: 'pem' }) as string };
}

/** A fresh key with its certificate for one side of a join. Its short life says nothing: the token is the proof. */
export async function makeJoinLeaf(ca: KeyPair, side: 'plane' | 'node', now_ms: number): Promise<KeyPair> {
  const key = await makeKey();
  const cert = await makeLeaf(ca, key, {
    title: `svc join ${side}`,
    uri: side === 'plane' ? JOIN_PLANE_URI : JOIN_NODE_URI,
    names: side === 'node' ? [JOIN_NAME] : [],
    usages: [side === 'node' ? 'server' : 'client'],
    now_ms,
    lifetime_ms: limits.join_leaf_lifetime_ms,
  });
  return { cert, key };
}

/** A certificate for our own key. */
export function makeLeaf(ca: KeyPair, key: string, content: LeafContent): Promise<string> {
  return sign(ca, ecKeys(key).publicKey, content);
}

/** PKCS #10, PEM. It asks for nothing: what the certificate says is the issuer's decision. */
export async function makeCsr(key: string, title: string): Promise<string> {
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: [{ CN: [title] }],
    keys: ecKeys(key),
    signingAlgorithm: SIGNING,
  });
  return request.toString('pem');
}

/** A certificate for the key of a request; every name in the request is ignored. Throws when it is not a sound one. */
export async function issue(ca: KeyPair, csr: string, content: LeafContent): Promise<string> {
  return sign(ca, await keyOfRequest(csr), content);
}

async function keyOfRequest(csr: string): Promise<x509.PublicKey> {
  const wrong = (what: string) => new Error(`the certificate request ${what}`);
  if (csr.length > limits.certificate_chars_max) throw wrong('is too long');
  let request: x509.Pkcs10CertificateRequest;
  let signed: boolean;
  try {
    request = new x509.Pkcs10CertificateRequest(csr);
    signed = await request.verify();
  } catch {
    throw wrong('cannot be read');
  }
  const { name, namedCurve } = request.publicKey.algorithm as webcrypto.EcKeyAlgorithm;
  if (name !== P256.name || namedCurve !== P256.namedCurve) throw wrong('is not for an ECDSA P-256 key');
  if (!signed) throw wrong('is not signed by its own key');
  return request.publicKey;
}

/** The `svc:` URIs of a certificate (DER): read from its bytes, never from a text form of them. */
export function svcUris(raw: Uint8Array): string[] {
  const alternatives = new x509.X509Certificate(raw).getExtension(x509.SubjectAlternativeNameExtension);
  return (alternatives?.names.items ?? [])
    .filter(({ type, value }) => type === 'url' && value.startsWith('svc:'))
    .map(({ value }) => value);
}

/** Whether a client that dials `host` would find the certificate to be for it. */
export function isFor(cert: X509Certificate, host: string): boolean {
  return (isIP(host) === 0 ? cert.checkHost(host) : cert.checkIP(host)) !== undefined;
}

/** What a client that dials `host` can check the certificate (PEM) by: `host`, or else a name that it has. */
export function nameToCheck(cert: string, host: string): string {
  const certificate = new X509Certificate(cert);
  if (isFor(certificate, host)) return host;
  const alternatives = new x509.X509Certificate(certificate.raw).getExtension(
    x509.SubjectAlternativeNameExtension,
  );
  const names = alternatives?.names.items ?? [];
  const plain = names.filter(({ type, value }) => (type === 'dns' && !value.includes('*')) || type === 'ip');
  return plain[0]?.value ?? host;
}

/** Whether the first certificate was signed by the second one's key, as an authority. */
export function isSignedBy(cert: X509Certificate, ca: X509Certificate): boolean {
  return ca.ca && cert.checkIssued(ca) && cert.verify(ca.publicKey);
}

/** Days until the certificate (PEM) expires; negative when it has. */
export function daysLeft(cert: string, now_ms: number): number {
  return (new X509Certificate(cert).validToDate.getTime() - now_ms) / (24 * 60 * 60 * 1000);
}

/** True when a third of its life or less is left. */
export function isRenewalDue(cert: string, now_ms: number): boolean {
  const { validFromDate, validToDate } = new X509Certificate(cert);
  return validToDate.getTime() - now_ms <= (validToDate.getTime() - validFromDate.getTime()) / 3;
}

/** Throws, in words for the operator, when these cannot serve a TLS connection together. */
export function checkIdentity({ ca, cert, key }: { ca?: string | null; cert: string; key: string }): void {
  checkPair({ cert, key }, { cert: 'cert.pem', key: 'key.pem' });
  readable('cert.pem', () => tls.createSecureContext({ cert, key }));
  if (typeof ca === 'string') readable('ca.pem', () => new X509Certificate(ca));
}

/** Throws, in words for the operator, when the key is not the certificate's; `files` says where they come from. */
export function checkPair({ cert, key }: KeyPair, files: KeyPair): void {
  const certificate = readable(files.cert, () => new X509Certificate(cert));
  const own = readable(files.key, () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(own)) throw new Error(`${files.key} is not the key of ${files.cert}`);
}

/** Throws, in words for the operator, when it is not a key of the kind that we make. */
export function checkOwnKey(key: string, file: string): void {
  const own = readable(file, () => createPrivateKey(key));
  if (own.asymmetricKeyDetails?.namedCurve === 'prime256v1') return;
  throw new Error(`${file} is not an ECDSA P-256 key`);
}

function readable<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch {
    throw new Error(`${file} cannot be read as PEM`);
  }
}

async function sign(ca: KeyPair, key: x509.PublicKeyType, content: LeafContent): Promise<string> {
  const issuer = new x509.X509Certificate(ca.cert);
  const ends_ms = Math.min(content.now_ms + content.lifetime_ms, issuer.notAfter.getTime());
  const usages = content.usages.map((usage) => (usage === 'server' ? EKU.serverAuth : EKU.clientAuth));
  const certificate = await x509.X509CertificateGenerator.create({
    subject: [{ CN: [content.title] }],
    issuer: issuer.subjectName,
    notBefore: new Date(content.now_ms - limits.certificate_backdate_ms),
    notAfter: new Date(ends_ms),
    publicKey: key,
    ...signerOf(ca.key),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension(usages),
      new x509.SubjectAlternativeNameExtension([
        { type: 'url', value: content.uri },
        ...[...new Set(content.names)].map(generalName),
      ]),
      await x509.SubjectKeyIdentifierExtension.create(key),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ],
  });
  return certificate.toString('pem');
}

async function selfSigned(
  keys: webcrypto.CryptoKeyPair,
  signingAlgorithm: SigningAlgorithm,
  title: string,
  from_ms: number,
  until_ms: number,
  authority: boolean,
): Promise<string> {
  const usage = authority
    ? x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign
    : x509.KeyUsageFlags.digitalSignature;
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [title] }],
    keys,
    signingAlgorithm,
    notBefore: new Date(from_ms),
    notAfter: new Date(until_ms),
    extensions: [
      new x509.BasicConstraintsExtension(authority, authority ? 0 : undefined, true),
      new x509.KeyUsagesExtension(usage, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return certificate.toString('pem');
}

function generalName(name: string): { type: 'ip' | 'dns'; value: string } {
  if (isIP(name)) return { type: 'ip', value: name };
  if (!/^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/i.test(name)) throw new Error(`${name} is not a host name`);
  return { type: 'dns', value: name };
}

function signerOf(key: string): { signingKey: CryptoKey; signingAlgorithm: SigningAlgorithm } {
  const own = createPrivateKey(key);
  return own.asymmetricKeyType === 'ed25519'
    ? { signingKey: own.toCryptoKey(ED25519, false, ['sign']), signingAlgorithm: ED25519 }
    : { signingKey: own.toCryptoKey(P256, false, ['sign']), signingAlgorithm: SIGNING };
}

function ecKeys(key: string): webcrypto.CryptoKeyPair {
  const own = createPrivateKey(key);
  return {
    privateKey: own.toCryptoKey(P256, true, ['sign']),
    publicKey: createPublicKey(own).toCryptoKey(P256, true, ['verify']),
  };
}
