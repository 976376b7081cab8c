/**
 * How the plane proves its identity, and which peers it trusts: its own authority and the certificates that it
 * issues, or the operator's certificates (`ca.pem`, `cert.pem`, `key.pem` without `ca-key.pem`), with which it
 * neither joins nodes nor issues certificates. It also holds the secret of the tokens. Changed files take effect
 * without a restart unless they are invalid.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { PeerCertificate } from 'node:tls';
import type { Clock } from '../../base/clock.ts';
import { newSecret } from '../../base/ids.ts';
import { limits } from '../../base/limits.ts';
import type { Logger } from '../../base/log.ts';
import { nodeIdMismatch, problems } from '../../core/problem.ts';
import { CertDir, checkSecret, warnOfExpiry } from './cert-dir.ts';
import {
  checkIdentity,
  checkOwnKey,
  checkPair,
  coversHost,
  daysLeft,
  type Identity,
  isRenewalDue,
  isSignedBy,
  issue,
  type KeyPair,
  LOOPBACK_NAMES,
  makeCa,
  makeKey,
  makeLeaf,
  nodeUri,
  planeUri,
  svcUris,
} from './pki.ts';
import { mintToken, type TokenSettings } from './tokens.ts';

export interface PlaneTrustOptions {
  cert_dir: string;
  plane_id: string;
  mode: 'tls' | 'mtls' | 'disabled';
  /** Null: created at the first start and kept in `auth_secret.txt`. */
  shared_secret: string | null;
  issuer: string;
  audience: string;
  /** Names and addresses of the plane's own listener, in addition to loopback. */
  names?: string[];
  clock: Clock;
  log: Logger;
}

interface Trusted {
  identity: Identity | null;
  authority: KeyPair | null;
  shared_secret: string;
}

export class PlaneTrust {
  readonly #options: PlaneTrustOptions;
  readonly #dir: CertDir;
  #trusted!: Trusted;
  readonly #listeners: (() => void)[] = [];
  #refreshing: Promise<void> = Promise.resolve();

  private constructor(options: PlaneTrustOptions, dir: CertDir) {
    this.#options = options;
    this.#dir = dir;
  }

  /** Throws with a message for the operator if the folder's content cannot be used. */
  static async open(options: PlaneTrustOptions): Promise<PlaneTrust> {
    if (options.shared_secret !== null) {
      checkSecret(options.shared_secret, 'internal_grpc.auth.shared_secret');
    }
    const dir = await CertDir.open(options.cert_dir);
    const trust = new PlaneTrust(options, dir);
    await dir.hasChanged();
    trust.#trusted = await trust.#load({ first: true });
    dir.watch(() => trust.refresh());
    return trust;
  }

  /** `operator`: nodes cannot join, because the operator provides their certificates too. */
  get origin(): 'own' | 'operator' {
    return this.#trusted.authority === null && this.#options.mode !== 'disabled' ? 'operator' : 'own';
  }

  get mode(): PlaneTrustOptions['mode'] {
    return this.#options.mode;
  }

  get plane_id(): string {
    return this.#options.plane_id;
  }

  /** Null in mode `disabled`. Call it for every connection, because the certificate is renewed. */
  identity(): Identity | null {
    return this.#trusted.identity;
  }

  /**
   * Whether a certificate is for the plane's own key. The certificate of a node never is, even if the same authority
   * signed it.
   */
  isOwnKey({ publicKey }: X509Certificate): boolean {
    const { identity } = this.#trusted;
    return identity !== null && new X509Certificate(identity.cert).publicKey.equals(publicKey);
  }

  /** Creates a token, valid for one call. */
  token(): Promise<string> {
    return mintToken(this.tokenSettings(), this.#options.plane_id, this.#options.clock);
  }

  /** The token settings that a node receives when it joins. */
  tokenSettings(): TokenSettings {
    const { issuer, audience } = this.#options;
    return { shared_secret: this.#trusted.shared_secret, issuer, audience };
  }

  /**
   * Issues a certificate (PEM) for a node's request. `names`: the names by which the plane connects to the node;
   * agents there use loopback. Throws an Error if the request is invalid, or if the operator provides the
   * certificates.
   */
  async issue(csr: string, node_id: string, names: string[]): Promise<string> {
    const { authority } = this.#trusted;
    if (authority === null) throw new Error('the operator provides the certificates: svc issues none');
    return issue(authority, csr, {
      title: `svc node ${node_id}`,
      uri: nodeUri(node_id),
      names: [...names, ...LOOPBACK_NAMES],
      usages: ['server', 'client'],
      now_ms: this.#options.clock.now(),
      lifetime_ms: limits.leaf_lifetime_ms,
    });
  }

  /** Calls `fn` after every change of the result of `identity`. */
  onChange(fn: () => void): void {
    this.#listeners.push(fn);
  }

  /** Applies changed files, and renews the plane's own certificate when it is due. Never throws. */
  refresh(): Promise<void> {
    this.#refreshing = this.#refreshing.then(() => this.#refresh());
    return this.#refreshing;
  }

  close(): void {
    this.#dir.close();
  }

  async #refresh(): Promise<void> {
    const { clock, log } = this.#options;
    const { identity, authority } = this.#trusted;
    const due = identity !== null && authority !== null && isRenewalDue(identity.cert, clock.now());
    if (!(await this.#dir.hasChanged()) && !due) return;
    try {
      this.#trusted = await this.#load({ first: false });
      log.info({ cert_dir: this.#dir.path, origin: this.origin }, 'certificates reloaded');
      for (const listener of this.#listeners) listener();
    } catch (error) {
      log.error(
        { err: error, cert_dir: this.#dir.path },
        'new certificates cannot be used; keeping the old ones',
      );
    }
  }

  async #load({ first }: { first: boolean }): Promise<Trusted> {
    const shared_secret = await this.#secret(first);
    if (this.#options.mode === 'disabled') return { identity: null, authority: null, shared_secret };
    const dir = this.#dir;
    const [ca, ca_key, cert, key] = await Promise.all([
      dir.read('ca.pem'),
      dir.read('ca-key.pem'),
      dir.read('cert.pem'),
      dir.read('key.pem'),
    ]);
    if (ca_key === null && ca !== null && cert !== null && key !== null) {
      checkIdentity({ ca, cert, key });
      warnOfExpiry(this.#options.log, daysLeft(cert, this.#options.clock.now()));
      return { identity: { ca, cert, key }, authority: null, shared_secret };
    }
    if (ca_key === null && (!first || ca !== null || cert !== null || key !== null)) {
      throw new Error(
        'cert_dir must contain your own ca.pem, cert.pem and key.pem, or be empty so that svc creates them',
      );
    }
    const authority = await this.#authority(ca_key, ca);
    const identity = await this.#ownIdentity(authority, cert, key);
    return { identity, authority, shared_secret };
  }

  /** Writes the key first: the other files can be created again from it. */
  async #authority(ca_key: string | null, ca: string | null): Promise<KeyPair> {
    const key = ca_key ?? (await makeKey());
    if (ca_key === null) await this.#dir.write('ca-key.pem', key);
    else checkOwnKey(key, 'ca-key.pem');
    const cert = ca ?? (await makeCa(key, this.#options.clock.now()));
    if (ca === null) await this.#dir.write('ca.pem', cert);
    checkPair({ cert, key }, { cert: 'ca.pem', key: 'ca-key.pem' });
    return { cert, key };
  }

  async #ownIdentity(authority: KeyPair, old_cert: string | null, old_key: string | null): Promise<Identity> {
    const key = old_key ?? (await makeKey());
    if (old_key === null) await this.#dir.write('key.pem', key);
    else checkOwnKey(key, 'key.pem');
    if (old_cert !== null && this.#isUsable(old_cert, key, authority)) {
      return { ca: authority.cert, cert: old_cert, key };
    }
    const { plane_id, clock } = this.#options;
    const cert = await makeLeaf(authority, key, {
      title: `svc plane ${plane_id}`,
      uri: planeUri(plane_id),
      names: this.#names(),
      usages: ['client', 'server'],
      now_ms: clock.now(),
      lifetime_ms: limits.leaf_lifetime_ms,
    });
    await this.#dir.write('cert.pem', cert);
    return { ca: authority.cert, cert, key };
  }

  #isUsable(cert: string, key: string, authority: KeyPair): boolean {
    const leaf = new X509Certificate(cert);
    return (
      leaf.checkPrivateKey(createPrivateKey(key)) &&
      isSignedBy(leaf, new X509Certificate(authority.cert)) &&
      svcUris(leaf.raw).includes(planeUri(this.#options.plane_id)) &&
      this.#names().every((name) => coversHost(leaf, name)) &&
      !isRenewalDue(cert, this.#options.clock.now())
    );
  }

  #names(): string[] {
    return [...LOOPBACK_NAMES, ...(this.#options.names ?? [])];
  }

  async #secret(first: boolean): Promise<string> {
    if (this.#options.shared_secret !== null) return this.#options.shared_secret;
    const { shared_secret } = await this.#dir.readSecret();
    if (shared_secret !== undefined) return shared_secret;
    if (!first) throw new Error('auth_secret.txt is missing');
    const { issuer, audience } = this.#options;
    const secret = newSecret();
    await this.#dir.writeSecret({ shared_secret: secret, issuer, audience });
    return secret;
  }
}

/**
 * Checks the certificate of a node whose chain is valid. A certificate with a `svc:` identity must name this node,
 * and is then valid at any address, unless `tls_server_name` is set, which it must match too. A certificate of the
 * operator need not name an identity; then it must match the address or name of the target.
 */
export function verifyNode(
  node_id: string,
  tls_server_name: string | null,
): (certificate: PeerCertificate, misnamed: Error | undefined) => Error | undefined {
  return ({ raw }, misnamed) => {
    const uris = svcUris(raw);
    if (uris.includes(nodeUri(node_id))) return tls_server_name === null ? undefined : misnamed;
    if (uris.length === 0) return misnamed;
    const other = uris.find((uri) => uri.startsWith(nodeUri('')))?.slice(nodeUri('').length);
    return other === undefined ? problems.certificateVerifyFailed() : nodeIdMismatch(node_id, other);
  };
}
