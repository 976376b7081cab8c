/**
 * Which peers a node trusts and how it proves its own identity. There are three states, determined by the files in
 * `cert_dir`: alone (a certificate that nobody can verify; only a join is possible), joined (certified by a plane),
 * operator (the operator's own files; no join). Changed files take effect without a restart.
 *
 * Two TLS contexts never mix: the join name uses the context derived from the bootstrap token, every other name the
 * operational one. Which context accepted a socket is determined from its certificate, never from its requests.
 */
import { X509Certificate } from 'node:crypto';
import { type Http2SecureServer, constants as http2, type ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { createSecureContext, type SecureContext, type TLSSocket, type TlsOptions } from 'node:tls';
import { Code, ConnectError } from '@connectrpc/connect';
import { rfc3339 } from '../../base/clock.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import { RateLimitedWarning } from '../../base/log.ts';
import { isLoopback } from '../../core/config.ts';
import { limits } from '../limits.ts';
import { ActorService } from '../proto/actor_pb.ts';
import { JoinService } from '../proto/node_pb.ts';
import { CertDir, checkSecret } from './cert-dir.ts';
import {
  type Joined,
  loadTrust,
  type NodeTrustOptions,
  sha256,
  TLS_BASE,
  type Trusted,
  type TrustState,
} from './node-trust-files.ts';
import {
  checkIdentity,
  isSignedBy,
  JOIN_NAME,
  JOIN_PLANE_URI,
  joinCa,
  makeCsr,
  makeJoinLeaf,
  nodeUri,
  svcUris,
} from './pki.ts';
import { type TokenSettings, TokenVerifier } from './tokens.ts';

export type { NodeTrustOptions, TrustState };

/**
 * What a socket may do: `join` (JoinService only), `plane` (NodeService; in mode `tls` it must prove it with a
 * token), `actor` (ActorService only; the plane decides what the caller's token permits), or nothing.
 */
export type Peer = 'join' | 'plane' | 'actor' | 'nobody';

/** What a plane sends in a join. */
export interface JoinHandover extends TokenSettings {
  plane_id: string;
  /** PEM. */
  certificate: string;
  ca: string;
}

/** What a socket shows about its peer. */
interface PeerInfo {
  reused: boolean;
  joining: boolean;
  /** Null unless the socket's TLS context has verified it. */
  certificate: X509Certificate | null;
  /** The peer showed no certificate. */
  anonymous: boolean;
  /** The peer is on the same machine. */
  is_local: boolean;
  uris: string[];
}

export class NodeTrust {
  readonly #options: NodeTrustOptions;
  readonly #dir: CertDir;
  readonly #verifier: TokenVerifier;
  readonly #servers = new Set<Http2SecureServer>();
  /** Sessions accepted by the operational context, with its authority at that time. */
  readonly #sessions = new Map<ServerHttp2Session, string>();
  readonly #peer_infos = new WeakMap<TLSSocket, PeerInfo>();
  #trusted!: Trusted;
  #join: { ca: X509Certificate; context: SecureContext; until_ms: number } | null = null;
  #onChange = () => {};
  #changing: Promise<unknown> = Promise.resolve();
  readonly #refusals: RateLimitedWarning;

  private constructor(options: NodeTrustOptions, dir: CertDir) {
    this.#options = options;
    this.#dir = dir;
    this.#verifier = new TokenVerifier({ settings: () => this.#trusted.settings, clock: options.clock });
    this.#refusals = new RateLimitedWarning(options.log, options.clock, 'a peer was rejected');
  }

  /** Throws with a message for the operator if the configuration or folder cannot be used. */
  static async open(options: NodeTrustOptions): Promise<NodeTrust> {
    const { shared_secret, bootstrap_token } = options;
    if (shared_secret !== null) checkSecret(shared_secret, 'internal_grpc.auth.shared_secret');
    if (bootstrap_token !== null && bootstrap_token.length < sharedLimits.bootstrap_token_chars_min) {
      throw new Error(
        `internal_grpc.bootstrap.token must have at least ${sharedLimits.bootstrap_token_chars_min} characters`,
      );
    }
    const dir = await CertDir.open(options.cert_dir);
    const trust = new NodeTrust(options, dir);
    await dir.hasChanged();
    trust.#trusted = await loadTrust(options, dir);
    dir.watch(() => trust.refresh());
    return trust;
  }

  get node_id(): string {
    return this.#options.node_id;
  }

  get state(): TrustState {
    return this.#trusted.state;
  }

  get mode(): 'tls' | 'mtls' | 'disabled' {
    return this.#options.mode ?? (this.state === 'operator' ? 'tls' : 'mtls');
  }

  /** The plane that certified this node; null if none did. */
  get plane_id(): string | null {
    return this.state === 'joined' ? (this.#trusted.joined?.plane_id ?? null) : null;
  }

  /** Whether the configured bootstrap token is still valid for a join. */
  get joinable(): boolean {
    const { bootstrap_token, mode } = this.#options;
    if (bootstrap_token === null || mode === 'disabled' || this.state === 'operator') return false;
    return !this.#trusted.joined?.spent.includes(sha256(bootstrap_token));
  }

  /** The authorities to trust and the identity to expect of this node, PEM; null in mode `disabled`. */
  identity(): { ca: string; cert: string } | null {
    const { ca, cert } = this.#trusted;
    return this.mode === 'disabled' ? null : { ca, cert };
  }

  /** Calls `fn` after every change of the result of `identity`. */
  onChange(fn: () => void): void {
    this.#onChange = fn;
  }

  /** Options for `http2.createSecureServer`; call `serve` with the server. Not in mode `disabled`. */
  tlsOptions(): TlsOptions {
    const { ca, cert, key } = this.#trusted;
    return {
      ...TLS_BASE,
      ca,
      cert,
      key,
      requestCert: true,
      // `serve` decides which connections to keep, because the mode and the trusted planes can change while the server
      // runs.
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

  /** Keeps the server's certificate up to date and closes every session of an unauthorized peer at once. */
  serve(server: Http2SecureServer): void {
    this.#servers.add(server);
    server.on('close', () => this.#servers.delete(server));
    server.on('session', (session) => {
      const socket = session.socket as TLSSocket;
      const peer = this.peerOf(socket);
      if (peer === 'nobody') {
        this.#refusals.warn(this.#rejectionReason(socket), { from: socket.remoteAddress });
        session.on('error', () => {});
        session.destroy(new Error('unauthorized'), http2.NGHTTP2_INADEQUATE_SECURITY);
      } else if (peer === 'plane') {
        this.#sessions.set(session, this.#trusted.ca);
        session.on('close', () => this.#sessions.delete(session));
      } else if (peer === 'actor') session.settings({ maxConcurrentStreams: sharedLimits.actor_streams_max });
    });
  }

  /** Determines the peer from the certificate of the socket. `socket` may belong to an HTTP/2 session. */
  peerOf(socket: TLSSocket): Peer {
    try {
      return this.#peerOf(socket);
    } catch {
      // The session has released its socket, or the certificate cannot be read.
      return 'nobody';
    }
  }

  /**
   * Checks every call: JoinService is only for a joining plane, ActorService for actors, whose tokens the plane
   * verifies, and everything else for a plane with a valid token. Throws a ConnectError `unauthorized`; only the log
   * has the reason.
   */
  async authorize(call: { socket: Socket; authorization: string | null; service: string }): Promise<void> {
    const why = await this.#unauthorizedReason(call.socket as TLSSocket, call.authorization, call.service);
    if (why === null) return;
    this.#refusals.warn(why, { from: call.socket.remoteAddress });
    throw new ConnectError('unauthorized', Code.Unauthenticated);
  }

  /** PKCS #10 (PEM) for the node's key, which joins and renewals do not change. */
  csr(): Promise<string> {
    if (this.state === 'operator') throw new Error('the operator provides the certificates of this node');
    return makeCsr(this.#trusted.key, `svc node ${this.node_id}`);
  }

  /**
   * Installs the result of a join and marks the token as used; effective for new connections. Throws an Error, and
   * changes nothing, if the certificate is not for this node's key and id, or the token is already used.
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
      // Records the owner of the files first and the used token last, so that an interrupted join can be repeated.
      await this.#writeJoined(joined);
      await this.#dir.write('ca.pem', handed.ca);
      await this.#dir.write('cert.pem', handed.certificate);
      await this.#dir.writeSecret({
        ...(shared_secret === null && { shared_secret: handed.shared_secret }),
        ...(issuer === null && { issuer: handed.issuer }),
        ...(audience === null && { audience: handed.audience }),
      });
      await this.#reload();
      await this.#options.onJoin?.(handed.plane_id);
      await this.#writeJoined({ ...joined, spent: [...joined.spent, sha256(bootstrap_token)] });
      await this.#reload();
      log.info({ plane_id: handed.plane_id, mode: this.mode }, 'this node has joined a plane');
    });
  }

  /**
   * Installs a renewed certificate of the same authority. Throws an Error, and changes nothing, if it is not for this
   * node.
   */
  renew(renewed: { certificate: string; ca: string }): Promise<void> {
    return this.#change(async () => {
      if (this.state !== 'joined') throw new Error('only a joined node can renew its certificate');
      if (renewed.ca !== this.#trusted.ca) throw new Error('a new authority requires a new join');
      this.#checkCertificate(renewed.certificate, renewed.ca);
      await this.#dir.write('cert.pem', renewed.certificate);
      await this.#reload();
      this.#options.log.info('the certificate of this node was renewed');
    });
  }

  /** Applies changed files. Never throws. */
  refresh(): Promise<void> {
    return this.#change(async () => {
      if (!(await this.#dir.hasChanged())) return;
      try {
        await this.#reload();
        this.#options.log.info({ cert_dir: this.#dir.path }, 'certificates reloaded');
      } catch (error) {
        const cert_dir = this.#dir.path;
        this.#options.log.error(
          { err: error, cert_dir },
          'new certificates cannot be used; keeping the old ones',
        );
      }
    });
  }

  close(): void {
    this.#dir.close();
  }

  // --- peers ---------------------------------------------------------------------------------------------------------

  #peerOf(socket: TLSSocket): Peer {
    const { mode } = this;
    if (mode === 'disabled') return 'plane';
    const { reused, joining, certificate, anonymous, is_local, uris } = this.#peerInfo(socket);
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
    if (certificate === null) return this.#options.actors && anonymous && is_local ? 'actor' : 'nobody';
    return uris.every((uri) => uri.startsWith('svc:plane:')) ? 'plane' : 'nobody';
  }

  /** Read once per connection: TLS 1.3 has no renegotiation, and reading takes a millisecond. */
  #peerInfo(socket: TLSSocket): PeerInfo {
    const known = this.#peer_infos.get(socket);
    if (known) return known;
    const certificate = (socket.authorized && socket.getPeerX509Certificate()) || null;
    const info = {
      reused: socket.isSessionReused(),
      joining: socket.servername === JOIN_NAME,
      certificate,
      anonymous: socket.getPeerX509Certificate() === undefined,
      is_local: isLocal(socket),
      uris: certificate ? svcUris(certificate.raw) : [],
    };
    this.#peer_infos.set(socket, info);
    return info;
  }

  /** Why a peer is `nobody`, for the log. */
  #rejectionReason(socket: TLSSocket): string {
    if (!socket.encrypted) return 'the connection does not use TLS';
    if (socket.servername === JOIN_NAME)
      return 'the peer did not prove the bootstrap token, or the token is already used';
    if (socket.getPeerX509Certificate() === undefined) return 'the peer showed no certificate';
    if (socket.authorized) return 'the peer’s certificate is not a plane’s';
    return `the peer’s certificate is invalid: ${String(socket.authorizationError)}`;
  }

  /** Why a call is not allowed, for the log; null if it is allowed. */
  async #unauthorizedReason(
    socket: TLSSocket,
    authorization: string | null,
    service: string,
  ): Promise<string | null> {
    const { mode } = this;
    const peer = this.peerOf(socket);
    if (service === JoinService.typeName) return peer === 'join' ? null : this.#rejectionReason(socket);
    if (service === ActorService.typeName) {
      return peer === 'plane' || peer === 'actor' ? null : this.#rejectionReason(socket);
    }
    if (peer !== 'plane') return 'the connection is not from a plane';
    if (authorization === null) return mode === 'mtls' ? null : 'the call has no token';
    // With certificates on both sides, no secret is needed; without a secret, no token can be verified.
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

  // --- contexts ------------------------------------------------------------------------------------------------------

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

  // --- files ---------------------------------------------------------------------------------------------------------

  #change<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#changing.then(task);
    this.#changing = result.catch(() => {});
    return result;
  }

  async #reload(): Promise<void> {
    this.#trusted = await loadTrust(this.#options, this.#dir);
    const { ca, cert, key } = this.#trusted;
    for (const server of this.#servers) server.setSecureContext({ ...TLS_BASE, ca, cert, key });
    for (const [session, its_ca] of this.#sessions) if (its_ca !== ca) session.destroy();
    this.#onChange();
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
      throw new Error('the certificate was not issued by the authority');
  }
}

function isLocal({ remoteAddress = '', localAddress }: TLSSocket): boolean {
  return isLoopback(remoteAddress.replace(/^::ffff:/, '')) || remoteAddress === localAddress;
}
