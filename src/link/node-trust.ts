/**
 * Whom a node believes and what it proves itself with. Three states, told from the files in `cert_dir`: alone (a
 * certificate that nobody can verify; only a join gets in), joined (certified by a plane), the operator's own files (no
 * joining). Files that change are taken up without a restart.
 *
 * Two TLS contexts that never mix: the join name gets the one that the bootstrap token makes, every other name the
 * operational one. Which of them let a socket in is asked again from its certificate, never from what it says of itself.
 */
import { createHash, constants as openssl, X509Certificate } from 'node:crypto';
import { type Http2SecureServer, constants as http2, type ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { createSecureContext, type SecureContext, type TLSSocket, type TlsOptions } from 'node:tls';
import { Code, ConnectError } from '@connectrpc/connect';
import { z } from 'zod';
import { type Clock, rfc3339 } from '../base/clock.ts';
import { limits } from '../base/limits.ts';
import { type Logger, RareWarning } from '../base/log.ts';
import { configKeys, isLoopback } from '../contract/config.ts';
import { ActorService } from '../contract/gen/actor_pb.ts';
import { JoinService } from '../contract/gen/node_pb.ts';
import { CertDir, checkSecret, warnOfExpiry } from './cert-dir.ts';
import {
  checkIdentity,
  checkOwnKey,
  daysLeft,
  isSignedBy,
  JOIN_NAME,
  JOIN_PLANE_URI,
  joinCa,
  makeCsr,
  makeJoinLeaf,
  makeKey,
  makeSelfSigned,
  nodeUri,
  svcUris,
} from './pki.ts';
import { type TokenSettings, TokenVerifier } from './tokens.ts';

export interface NodeTrustOptions {
  cert_dir: string;
  node_id: string;
  /** Null: not configured; then `mtls` after a join, `tls` with certificates of the operator. */
  mode: 'tls' | 'mtls' | 'disabled' | null;
  /** Null: not configured; what a join brought is used, then the defaults. */
  shared_secret: string | null;
  issuer: string | null;
  audience: string | null;
  bootstrap_token: string | null;
  /** Whether ActorService is served here: agents of this machine, who have no certificate, may call it. */
  actors?: boolean;
  clock: Clock;
  log: Logger;
}

export type Standing = 'alone' | 'joined' | 'operator';

/**
 * What a socket may do: `join` (JoinService alone), `plane` (NodeService; in mode `tls` a token has to prove it), `actor`
 * (ActorService alone, where the plane decides what the caller's token is good for), or nothing.
 */
export type Peer = 'join' | 'plane' | 'actor' | 'nobody';

/** What a plane hands over in a join. */
export interface JoinHandover extends TokenSettings {
  plane_id: string;
  /** PEM. */
  certificate: string;
  ca: string;
}

interface Trusted {
  standing: Standing;
  /** PEM. In `alone` the own certificate, so that no other authority (Node's list of public ones) counts. */
  ca: string;
  cert: string;
  key: string;
  context: SecureContext;
  settings: TokenSettings | null;
  joined: Joined | null;
}

const joinedSchema = z.object({
  plane_id: z.string(),
  joined_at: z.string(),
  /** SHA-256 of every authority that a join brought; another one in ca.pem is the operator's. */
  authorities: z.array(z.string()),
  /** SHA-256 of every bootstrap token that was used. */
  spent: z.array(z.string()),
});
type Joined = z.infer<typeof joinedSchema>;

/** What a socket showed of its peer. */
interface Shown {
  reused: boolean;
  joining: boolean;
  /** Null where there is none that its context verified. */
  certificate: X509Certificate | null;
  /** It showed none at all. */
  anonymous: boolean;
  /** It comes from this very machine. */
  near: boolean;
  uris: string[];
}

const TLS_BASE = {
  minVersion: 'TLSv1.3',
  // A resumed session shows no certificate, and would outlive what let the first one in.
  secureOptions: openssl.SSL_OP_NO_TICKET,
} as const satisfies TlsOptions;

export class NodeTrust {
  readonly #options: NodeTrustOptions;
  readonly #dir: CertDir;
  readonly #verifier: TokenVerifier;
  readonly #servers = new Set<Http2SecureServer>();
  /** Sessions that the operational context let in, with the authority of that time. */
  readonly #sessions = new Map<ServerHttp2Session, string>();
  /** Connections of actors that stand. */
  #actors = 0;
  readonly #shown = new WeakMap<TLSSocket, Shown>();
  #trusted!: Trusted;
  #join: { ca: X509Certificate; context: SecureContext; until_ms: number } | null = null;
  #looked = '';
  #onChange = () => {};
  #changing: Promise<unknown> = Promise.resolve();
  readonly #refusals: RareWarning;

  private constructor(options: NodeTrustOptions, dir: CertDir) {
    this.#options = options;
    this.#dir = dir;
    this.#verifier = new TokenVerifier({ settings: () => this.#trusted.settings, clock: options.clock });
    this.#refusals = new RareWarning(options.log, options.clock, 'a peer was refused');
  }

  /** Throws, in words for the operator, when configuration or folder cannot be used. */
  static async open(options: NodeTrustOptions): Promise<NodeTrust> {
    const { shared_secret, bootstrap_token } = options;
    if (shared_secret !== null) checkSecret(shared_secret, 'internal_grpc.auth.shared_secret');
    if (bootstrap_token !== null && bootstrap_token.length < limits.bootstrap_token_chars_min) {
      throw new Error(
        `internal_grpc.bootstrap.token must have at least ${limits.bootstrap_token_chars_min} characters`,
      );
    }
    const dir = await CertDir.open(options.cert_dir);
    const trust = new NodeTrust(options, dir);
    trust.#trusted = await trust.#load();
    trust.#looked = await dir.look();
    dir.watch(() => trust.refresh());
    return trust;
  }

  get node_id(): string {
    return this.#options.node_id;
  }

  get standing(): Standing {
    return this.#trusted.standing;
  }

  get mode(): 'tls' | 'mtls' | 'disabled' {
    return this.#options.mode ?? (this.standing === 'operator' ? 'tls' : 'mtls');
  }

  /** The plane that certified this node; null where none did. */
  get plane_id(): string | null {
    return this.standing === 'joined' ? (this.#trusted.joined?.plane_id ?? null) : null;
  }

  /** Whether the configured bootstrap token still opens the door. */
  get joinable(): boolean {
    const { bootstrap_token, mode } = this.#options;
    if (bootstrap_token === null || mode === 'disabled' || this.standing === 'operator') return false;
    return !this.#trusted.joined?.spent.includes(sha256(bootstrap_token));
  }

  /** Whom to believe and what to expect of this node, PEM; null in mode `disabled`. */
  identity(): { ca: string; cert: string } | null {
    const { ca, cert } = this.#trusted;
    return this.mode === 'disabled' ? null : { ca, cert };
  }

  /** Calls `fn` after every change of what `identity` answers. */
  onChange(fn: () => void): void {
    this.#onChange = fn;
  }

  /** For `http2.createSecureServer`, with `serve` called on the server. Not in mode `disabled`. */
  tlsOptions(): TlsOptions {
    const { ca, cert, key } = this.#trusted;
    return {
      ...TLS_BASE,
      ca,
      cert,
      key,
      requestCert: true,
      // Who may stay is decided by `serve`: the mode, and what counts as a plane, change under a running server.
      rejectUnauthorized: false,
      SNICallback: (name, answer) => {
        this.#contextFor(name).then(
          (context) => answer(null, context),
          (error) => {
            this.#options.log.error({ err: error }, 'a TLS connection cannot be served');
            answer(null, this.#trusted.context);
          },
        );
      },
    };
  }

  /** Keeps the server's certificate up to date and ends at once every session of a peer that is nobody. */
  serve(server: Http2SecureServer): void {
    this.#servers.add(server);
    server.on('close', () => this.#servers.delete(server));
    server.on('session', (session) => {
      const socket = session.socket as TLSSocket;
      const peer = this.peerOf(socket);
      if (peer === 'nobody') {
        this.#refusals.warn(this.#whyNobody(socket), { from: socket.remoteAddress });
        session.on('error', () => {});
        session.destroy(new Error('unauthorized'), http2.NGHTTP2_INADEQUATE_SECURITY);
      } else if (peer === 'plane') {
        this.#sessions.set(session, this.#trusted.ca);
        session.on('close', () => this.#sessions.delete(session));
      } else if (peer === 'actor') this.#boundActor(session);
    });
  }

  /** Whoever runs here may come without being known: so few at a time, with few calls. */
  #boundActor(session: ServerHttp2Session): void {
    if (this.#actors >= limits.actor_connections_max) {
      session.destroy(undefined, http2.NGHTTP2_ENHANCE_YOUR_CALM);
      return;
    }
    this.#actors++;
    session.on('close', () => this.#actors--);
    session.settings({ maxConcurrentStreams: limits.actor_streams_max });
  }

  /** By the certificate that the socket showed. `socket` may be a HTTP/2 session's. */
  peerOf(socket: TLSSocket): Peer {
    try {
      return this.#peerOf(socket);
    } catch {
      // The session has let go of its socket, or the certificate is not to be read.
      return 'nobody';
    }
  }

  /**
   * For every call: JoinService is for a joining plane alone, ActorService for actors, whose tokens are the plane's to
   * judge, all else for a plane with a good token. Throws a ConnectError `unauthorized`; the reason goes to the log alone.
   */
  async authorize(call: { socket: Socket; authorization: string | null; service: string }): Promise<void> {
    const why = await this.#whyNot(call.socket as TLSSocket, call.authorization, call.service);
    if (why === null) return;
    this.#refusals.warn(why, { from: call.socket.remoteAddress });
    throw new ConnectError('unauthorized', Code.Unauthenticated);
  }

  /** PKCS #10 (PEM) for the node's key, which no join or renewal changes. */
  csr(): Promise<string> {
    if (this.standing === 'operator') throw new Error('the certificates here are the operator’s');
    return makeCsr(this.#trusted.key, `svc node ${this.node_id}`);
  }

  /**
   * Installs what a join brought and spends the token; it is used from the next connection on. Throws an Error, and
   * changes nothing, when the certificate is not for this node's key and id, or the token is spent.
   */
  completeJoin(handed: JoinHandover): Promise<void> {
    return this.#change(async () => {
      const { bootstrap_token, shared_secret, issuer, audience, clock, log } = this.#options;
      if (!this.joinable || bootstrap_token === null) throw new Error('the bootstrap token is spent');
      this.#checkCertificate(handed.certificate, handed.ca);
      const before = this.#trusted.joined;
      const joined: Joined = {
        plane_id: handed.plane_id,
        joined_at: rfc3339(clock.now()),
        authorities: [...(before?.authorities ?? []), sha256(handed.ca)],
        spent: before?.spent ?? [],
      };
      // First said whose the files will be, last that the token is spent: cut short, the join can be made again.
      await this.#writeJoined(joined);
      await this.#dir.write('ca.pem', handed.ca);
      await this.#dir.write('cert.pem', handed.certificate);
      await this.#dir.writeSecret({
        ...(shared_secret === null && { shared_secret: handed.shared_secret }),
        ...(issuer === null && { issuer: handed.issuer }),
        ...(audience === null && { audience: handed.audience }),
      });
      await this.#writeJoined({ ...joined, spent: [...joined.spent, sha256(bootstrap_token)] });
      await this.#reload();
      log.info({ plane_id: handed.plane_id, mode: this.mode }, 'this node has joined a plane');
    });
  }

  /** A new certificate of the same authority. Throws an Error, and changes nothing, when it is not for this node. */
  renew(renewed: { certificate: string; ca: string }): Promise<void> {
    return this.#change(async () => {
      if (this.standing !== 'joined') throw new Error('only a certificate of a join is renewed');
      if (renewed.ca !== this.#trusted.ca) throw new Error('another authority takes another join');
      this.#checkCertificate(renewed.certificate, renewed.ca);
      await this.#dir.write('cert.pem', renewed.certificate);
      await this.#reload();
      this.#options.log.info('the certificate of this node was renewed');
    });
  }

  /** Takes up changed files. Never throws. */
  refresh(): Promise<void> {
    return this.#change(async () => {
      const looked = await this.#dir.look();
      if (looked === this.#looked) return;
      this.#looked = looked;
      try {
        await this.#reload();
        this.#options.log.info({ cert_dir: this.#dir.path }, 'certificates were read again');
      } catch (error) {
        const cert_dir = this.#dir.path;
        this.#options.log.error({ err: error, cert_dir }, 'certificates cannot be used: the old ones stay');
      }
    });
  }

  close(): void {
    this.#dir.close();
  }

  // --- who is who -----------------------------------------------------------------------------------------------------

  #peerOf(socket: TLSSocket): Peer {
    const { mode } = this;
    if (mode === 'disabled') return 'plane';
    const { reused, joining, certificate, anonymous, near, uris } = this.#shownBy(socket);
    if (reused) return 'nobody';
    if (joining) {
      const proven =
        this.joinable &&
        certificate !== null &&
        this.#join !== null &&
        isSignedBy(certificate, this.#join.ca) &&
        uris.includes(JOIN_PLANE_URI);
      return proven ? 'join' : 'nobody';
    }
    if (certificate === null && mode === 'tls') return 'plane';
    if (certificate === null) return this.#options.actors && anonymous && near ? 'actor' : 'nobody';
    return uris.every((uri) => uri.startsWith('svc:plane:')) ? 'plane' : 'nobody';
  }

  /** Read once per connection: TLS 1.3 knows no second handshake, and reading takes a millisecond. */
  #shownBy(socket: TLSSocket): Shown {
    const known = this.#shown.get(socket);
    if (known) return known;
    const certificate = (socket.authorized && socket.getPeerX509Certificate()) || null;
    const shown = {
      reused: socket.isSessionReused(),
      joining: socket.servername === JOIN_NAME,
      certificate,
      anonymous: socket.getPeerX509Certificate() === undefined,
      near: isOfThisMachine(socket),
      uris: certificate ? svcUris(certificate.raw) : [],
    };
    this.#shown.set(socket, shown);
    return shown;
  }

  /** For the log. */
  #whyNobody(socket: TLSSocket): string {
    if (!socket.encrypted) return 'the connection has no TLS';
    if (socket.servername === JOIN_NAME) return 'the peer did not prove the bootstrap token, or it is spent';
    if (socket.getPeerX509Certificate() === undefined) return 'the peer showed no certificate';
    if (socket.authorized) return 'the certificate of the peer is not one of a plane';
    return `the certificate of the peer is not good: ${String(socket.authorizationError)}`;
  }

  async #whyNot(socket: TLSSocket, authorization: string | null, service: string): Promise<string | null> {
    const { mode } = this;
    const peer = this.peerOf(socket);
    if (service === JoinService.typeName) return peer === 'join' ? null : this.#whyNobody(socket);
    if (service === ActorService.typeName) {
      return peer === 'plane' || peer === 'actor' ? null : this.#whyNobody(socket);
    }
    if (peer !== 'plane') return 'the connection is not one of a plane';
    if (authorization === null) return mode === 'mtls' ? null : 'the call has no token';
    // With certificates on both sides no secret is needed; where there is none, no token can be checked either.
    if (mode === 'mtls' && this.#trusted.settings === null) return null;
    const token = /^Bearer ([\w.-]+)$/i.exec(authorization)?.[1];
    if (token === undefined) return 'the authorization header has no bearer token';
    try {
      await this.#verifier.verify(token);
      return null;
    } catch (error) {
      return (error as Error).message;
    }
  }

  // --- contexts -------------------------------------------------------------------------------------------------------

  async #contextFor(name: string): Promise<SecureContext> {
    if (name !== JOIN_NAME || !this.joinable) return this.#trusted.context;
    return this.#joinContext(this.#options.bootstrap_token!);
  }

  async #joinContext(bootstrap_token: string): Promise<SecureContext> {
    const now_ms = this.#options.clock.now();
    const since_ms = (this.#join?.until_ms ?? 0) - limits.join_leaf_lifetime_ms / 2;
    if (this.#join && now_ms < this.#join.until_ms && now_ms >= since_ms) return this.#join.context;
    const ca = await joinCa(bootstrap_token);
    const { cert, key } = await makeJoinLeaf(ca, 'node', now_ms);
    this.#join = {
      ca: new X509Certificate(ca.cert),
      context: createSecureContext({ ...TLS_BASE, ca: ca.cert, cert, key }),
      until_ms: now_ms + limits.join_leaf_lifetime_ms / 2,
    };
    return this.#join.context;
  }

  // --- files ----------------------------------------------------------------------------------------------------------

  #change<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#changing.then(task);
    this.#changing = result.catch(() => {});
    return result;
  }

  async #reload(): Promise<void> {
    this.#trusted = await this.#load();
    this.#looked = await this.#dir.look();
    const { ca, cert, key } = this.#trusted;
    for (const server of this.#servers) server.setSecureContext({ ...TLS_BASE, ca, cert, key });
    for (const [session, its_ca] of this.#sessions) if (its_ca !== ca) session.destroy();
    this.#onChange();
  }

  async #load(): Promise<Trusted> {
    const dir = this.#dir;
    const [ca, cert, old_key, joined, settings] = await Promise.all([
      dir.read('ca.pem'),
      dir.read('cert.pem'),
      dir.read('key.pem'),
      dir.readJson('joined.json', joinedSchema),
      this.#settings(),
    ]);
    if (this.#options.mode === 'disabled') {
      return {
        standing: 'alone',
        ca: '',
        cert: '',
        key: '',
        context: createSecureContext(),
        settings,
        joined,
      };
    }
    const by_join = ca !== null && joined?.authorities.includes(sha256(ca)) === true;
    if (cert !== null && old_key !== null) {
      checkIdentity({ ca, cert, key: old_key });
      if (by_join && isSignedBy(new X509Certificate(cert), new X509Certificate(ca))) {
        return trusted('joined', { ca, cert, key: old_key }, { settings, joined });
      }
      if (!by_join) return this.#operators(ca, cert, old_key, { settings, joined });
    } else if (cert !== null) throw new Error('cert_dir has cert.pem, but no key.pem');
    return this.#alone(old_key, { settings, joined });
  }

  #operators(
    ca: string | null,
    cert: string,
    key: string,
    rest: Pick<Trusted, 'settings' | 'joined'>,
  ): Trusted {
    if (ca === null && this.#options.mode === 'mtls') {
      throw new Error('internal_grpc.security.mode "mtls" needs ca.pem in cert_dir');
    }
    warnOfExpiry(this.#options.log, daysLeft(cert, this.#options.clock.now()));
    return trusted('operator', { ca: ca ?? cert, cert, key }, rest);
  }

  async #alone(old_key: string | null, rest: Pick<Trusted, 'settings' | 'joined'>): Promise<Trusted> {
    const key = old_key ?? (await makeKey());
    if (old_key === null) await this.#dir.write('key.pem', key);
    else checkOwnKey(key, 'key.pem');
    const cert = await makeSelfSigned(key, `svc node ${this.node_id}`, this.#options.clock.now());
    return trusted('alone', { ca: cert, cert, key }, rest);
  }

  /** What is configured wins over what a join brought, and that over the defaults; null without a secret. */
  async #settings(): Promise<TokenSettings | null> {
    const found = await this.#dir.readSecret();
    const shared_secret = this.#options.shared_secret ?? found.shared_secret;
    if (shared_secret === undefined) return null;
    const defaults = (key: 'issuer' | 'audience') => configKeys[`internal_grpc.auth.${key}`].default;
    return {
      shared_secret,
      issuer: this.#options.issuer ?? found.issuer ?? defaults('issuer'),
      audience: this.#options.audience ?? found.audience ?? defaults('audience'),
    };
  }

  async #writeJoined(joined: Joined): Promise<void> {
    await this.#dir.write('joined.json', `${JSON.stringify(joined, null, 2)}\n`);
  }

  #checkCertificate(certificate: string, ca: string): void {
    checkIdentity({ ca, cert: certificate, key: this.#trusted.key });
    const leaf = new X509Certificate(certificate);
    const uris = svcUris(leaf.raw);
    if (uris.length !== 1 || uris[0] !== nodeUri(this.node_id)) {
      throw new Error(`the certificate is not for ${nodeUri(this.node_id)}`);
    }
    if (!isSignedBy(leaf, new X509Certificate(ca)))
      throw new Error('the certificate is not of the authority');
  }
}

function trusted(
  standing: Standing,
  identity: { ca: string; cert: string; key: string },
  rest: Pick<Trusted, 'settings' | 'joined'>,
): Trusted {
  return { standing, ...identity, context: createSecureContext({ ...TLS_BASE, ...identity }), ...rest };
}

function isOfThisMachine({ remoteAddress = '', localAddress }: TLSSocket): boolean {
  return isLoopback(remoteAddress.replace(/^::ffff:/, '')) || remoteAddress === localAddress;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
