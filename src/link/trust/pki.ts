/**
 * Creates keys, authorities, certificates and certificate requests, and reads certificates. Keys are ECDSA P-256,
 * except for the authority of a join, whose Ed25519 key both sides derive from the bootstrap token. This module uses
 * no folders and no sockets.
 *
 * A URI in the SAN names the subject: `svc:plane:<plane_id>`, `svc:node:<node_id>`, `svc:join:plane`,
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
import { limits } from '../limits.ts';

/** A certificate and its private key, PEM. */
export interface KeyPair {
  cert: string;
  key: string;
}

/** One side of a TLS connection: the authorities that it trusts, and its own certificate and key. PEM. */
export interface Identity extends KeyPair {
  ca: string;
}

export interface LeafContent {
  /** The common name, for people only. */
  title: string;
  uri: string;
  /** DNS names and addresses under which clients may connect. */
  names?: string[];
  usages: ('server' | 'client')[];
  now_ms: number;
  lifetime_ms: number;
}

/** The server name that a joining plane requests. Only a certificate of a join is valid for it. */
export const JOIN_NAME = 'join.svc.internal';
/** The names and addresses that agents use to connect to the svc process on their machine. */
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

/** Creates a private key, PKCS #8 PEM. */
export async function makeKey(): Promise<string> {
  const { privateKey } = await crypto.subtle.generateKey(P256, true, ['sign', 'verify']);
  return x509.PemConverter.encode(await crypto.subtle.exportKey('pkcs8', privateKey), 'PRIVATE KEY');
}

/**
 * Creates an authority for `key`. The same key always results in the same name, so certificates that it signed earlier
 * stay valid.
 */
export async function makeCa(key: string, now_ms: number): Promise<string> {
  const spki = createPublicKey(key).export({ type: 'spki', format: 'der' });
  const name = `svc internal CA ${createHash('sha256').update(spki).digest('hex').slice(0, 12)}`;
  const from = now_ms - limits.certificate_backdate_ms;
  return selfSigned(ecKeys(key), SIGNING, name, from, now_ms + limits.ca_lifetime_ms, true);
}

/** A self-signed certificate, for a node that no plane has certified yet. */
export function makeSelfSigned(key: string, title: string, now_ms: number): Promise<string> {
  const from = now_ms - limits.certificate_backdate_ms;
  return selfSigned(ecKeys(key), SIGNING, title, from, now_ms + limits.ca_lifetime_ms, false);
}

/**
 * Derives the authority of a join: HKDF-SHA-256 over the token with a fixed info text and no salt. Both ends must
 * derive the same key from the same token without communication, and nothing else is derived from the token. Anyone who
 * sees a certificate signed by this authority can test guesses of the token, so a token must be impossible to guess (at
 * least 16 characters).
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

/**
 * A fresh key and certificate for one side of a join. The short validity is not a safeguard; the token is the proof.
 */
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

/** A certificate for svc's own key. */
export function makeLeaf(ca: KeyPair, key: string, content: LeafContent): Promise<string> {
  return sign(ca, ecKeys(key).publicKey, content);
}

/**
 * A certificate request (PKCS #10, PEM). It requests no names, because the issuer decides what the certificate
 * contains.
 */
export async function makeCsr(key: string, title: string): Promise<string> {
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: [{ CN: [title] }],
    keys: ecKeys(key),
    signingAlgorithm: SIGNING,
  });
  return request.toString('pem');
}

/**
 * Issues a certificate for the key of a request, and ignores every name in the request. Throws if the request is
 * invalid.
 */
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

/** The `svc:` URIs of a certificate, read from its DER bytes because a text form can be ambiguous. */
export function svcUris(raw: Uint8Array): string[] {
  const alternatives = new x509.X509Certificate(raw).getExtension(x509.SubjectAlternativeNameExtension);
  return (alternatives?.names.items ?? [])
    .filter(({ type, value }) => type === 'url' && value.startsWith('svc:'))
    .map(({ value }) => value);
}

/** Whether the certificate is valid for a client that connects to `host`. */
export function coversHost(cert: X509Certificate, host: string): boolean {
  return (isIP(host) === 0 ? cert.checkHost(host) : cert.checkIP(host)) !== undefined;
}

/**
 * The name by which a client that connects to `host` can verify the certificate (PEM): `host`, or else a name in the
 * certificate.
 */
export function nameToCheck(cert: string, host: string): string {
  const certificate = new X509Certificate(cert);
  if (coversHost(certificate, host)) return host;
  const alternatives = new x509.X509Certificate(certificate.raw).getExtension(
    x509.SubjectAlternativeNameExtension,
  );
  const names = alternatives?.names.items ?? [];
  const plain = names.filter(({ type, value }) => (type === 'dns' && !value.includes('*')) || type === 'ip');
  return plain[0]?.value ?? host;
}

/** Whether the second certificate is an authority whose key signed the first one. */
export function isSignedBy(cert: X509Certificate, ca: X509Certificate): boolean {
  return ca.ca && cert.checkIssued(ca) && cert.verify(ca.publicKey);
}

/** Days until the certificate (PEM) expires; negative after that. */
export function daysLeft(cert: string, now_ms: number): number {
  return (new X509Certificate(cert).validToDate.getTime() - now_ms) / (24 * 60 * 60 * 1000);
}

/** Whether a third of its lifetime or less remains, or it was made while the clock was ahead, so that nobody accepts it yet. */
export function isRenewalDue(cert: string, now_ms: number): boolean {
  const { validFromDate, validToDate } = new X509Certificate(cert);
  const [from_ms, to_ms] = [validFromDate.getTime(), validToDate.getTime()];
  return from_ms > now_ms || to_ms - now_ms <= (to_ms - from_ms) / 3;
}

/** Throws with a message for the operator if these cannot be used together for TLS. */
export function checkIdentity({ ca, cert, key }: { ca?: string | null; cert: string; key: string }): void {
  checkPair({ cert, key }, { cert: 'cert.pem', key: 'key.pem' });
  readable('cert.pem', () => tls.createSecureContext({ cert, key }));
  if (typeof ca === 'string') readable('ca.pem', () => new X509Certificate(ca));
}

/** Throws with a message for the operator if the key does not belong to the certificate; `files` names their origin. */
export function checkPair({ cert, key }: KeyPair, files: KeyPair): void {
  const certificate = readable(files.cert, () => new X509Certificate(cert));
  const own = readable(files.key, () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(own)) throw new Error(`${files.key} is not the key of ${files.cert}`);
}

/** Throws with a message for the operator unless it is a key of the type that svc creates. */
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
