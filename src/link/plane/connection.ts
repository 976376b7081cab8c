/**
 * One connection to a node: TLS 1.3 (or no TLS if security is disabled) and one HTTP/2 session over it, with a
 * transport for gRPC calls. It never reconnects; the owner of the connection decides what to do when it ends.
 */
import type { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import http2 from 'node:http2';
import net from 'node:net';
import tls, { type PeerCertificate } from 'node:tls';
import type { Interceptor, Transport } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { limits as sharedLimits } from '../../base/limits.ts';
import { Problem, problems } from '../../core/problem.ts';
import { limits } from '../limits.ts';

export interface ConnectionOptions {
  /** The address to connect to, which was already checked, or a name. */
  host: string;
  port: number;
  /** The name that the certificate must match, also sent as SNI unless it is an address. */
  servername: string;
  /** PEM; null: no TLS. `anchors`: a certificate in `ca` is trusted even if it is not that of an authority. */
  tls: { ca: string; cert?: string; key?: string; anchors?: boolean } | null;
  /**
   * Decides whether to accept a certificate with a valid chain. `misnamed` is the error if its names do not match
   * `servername`. If a Problem is returned, it is thrown unchanged. Without this function, the names must match.
   */
  verify?: (certificate: PeerCertificate, misnamed: Error | undefined) => Error | undefined;
  /** Returns the bearer token for each call; null: the call has no token. */
  token?: () => Promise<string | null>;
  signal?: AbortSignal;
}

export interface Connection {
  readonly transport: Transport;
  /** The time of the last message from the peer, in ms of `performance.now()`. */
  readonly last_heard_at: number;
  /** The round trips of the latest heartbeats in ms, oldest first, at most `limits.link_latencies_max`. */
  readonly latencies_ms: readonly number[];
  /** The peer's certificate; null without TLS. */
  readonly certificate: X509Certificate | null;
  /** Resolves with the reason when the connection ends. */
  readonly closed: Promise<Error | null>;
  /** Resolves when the peer answers, however late; throws `node_unreachable` if the connection ends first. */
  ping(): Promise<void>;
  close(): void;
}

/** Opens a connection. Throws `node_unreachable`, `certificate_verify_failed`, or the Problem of `verify`. */
export async function openConnection(options: ConnectionOptions): Promise<Connection> {
  const socket = await openSocket(options);
  const authority = options.tls ? 'https://node' : 'http://node';
  const session = http2.connect(authority, {
    createConnection: () => socket,
    settings: {
      initialWindowSize: limits.link_window_bytes,
      maxFrameSize: limits.link_frame_bytes,
      enablePush: false,
    },
  });
  const certificate = socket instanceof tls.TLSSocket ? (socket.getPeerX509Certificate() ?? null) : null;
  return new Http2Connection(session, authority, certificate, options.token);
}

/** Checks whether the address accepts connections. Throws `node_unreachable`. */
export async function tryPort(host: string, port: number, signal: AbortSignal): Promise<void> {
  const socket = await openSocket({ host, port, servername: host, tls: null, signal });
  socket.destroy();
}

async function openSocket(options: ConnectionOptions): Promise<net.Socket> {
  const { host, port, servername, tls: secure, verify, signal } = options;
  const socket = secure
    ? tls.connect({
        host,
        port,
        ...(net.isIP(servername) === 0 && { servername }),
        ca: secure.ca,
        ...(secure.anchors && { allowPartialTrustChain: true }),
        ...(secure.cert !== undefined && { cert: secure.cert, key: secure.key }),
        minVersion: 'TLSv1.3',
        ALPNProtocols: ['h2'],
        checkServerIdentity: (_host, certificate) => {
          const misnamed = tls.checkServerIdentity(servername, certificate);
          return verify ? verify(certificate, misnamed) : misnamed;
        },
      })
    : net.connect({ host, port });
  socket.setNoDelay(true);
  const timeout = AbortSignal.timeout(sharedLimits.link_connect_ms);
  try {
    await once(socket, secure ? 'secureConnect' : 'connect', {
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    return socket;
  } catch (error) {
    socket.on('error', () => {}).destroy();
    if (error instanceof Problem) throw error;
    throw isCertificateError(error) ? problems.certificateVerifyFailed() : problems.nodeUnreachable();
  }
}

/** The error codes of OpenSSL's verification and of Node's name check. */
function isCertificateError(error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException;
  return (
    !code.startsWith('ERR_SSL') &&
    /CERT|SIGNATURE|ISSUER|CRL|INVALID_(CA|PURPOSE)|PATH_LENGTH|HOSTNAME/.test(code)
  );
}

class Http2Connection implements Connection {
  readonly transport: Transport;
  readonly closed: Promise<Error | null>;
  readonly certificate: X509Certificate | null;
  last_heard_at = performance.now();
  readonly latencies_ms: number[] = [];
  readonly #session: http2.ClientHttp2Session;
  readonly #pinging: NodeJS.Timeout;

  constructor(
    session: http2.ClientHttp2Session,
    authority: string,
    certificate: X509Certificate | null,
    token: ConnectionOptions['token'],
  ) {
    this.#session = session;
    this.certificate = certificate;
    let reason: Error | null = null;
    session.on('error', (error) => {
      reason ??= error;
    });
    session.once('connect', () => {
      if (session.destroyed) return;
      session.setLocalWindowSize(limits.link_window_bytes);
      this.#ping();
    });
    this.closed = new Promise((resolve) => {
      session.once('close', () => {
        clearInterval(this.#pinging);
        resolve(reason);
      });
    });
    this.#pinging = setInterval(() => this.#ping(), limits.link_ping_ms);
    this.#pinging.unref();
    this.transport = createGrpcTransport({
      baseUrl: authority,
      acceptCompression: [],
      readMaxBytes: limits.link_message_bytes_max,
      writeMaxBytes: limits.link_message_bytes_max,
      interceptors: token ? [withToken(token)] : [],
      sessionManager: {
        authority,
        request: async (method, path, headers, options) => {
          if (session.closed || session.destroyed) throw problems.nodeUnreachable();
          return session.request({ ...headers, ':method': method, ':path': path }, options);
        },
        notifyResponseByteRead: () => {
          this.last_heard_at = performance.now();
        },
      },
    });
  }

  close(): void {
    this.#session.destroy();
  }

  ping(): Promise<void> {
    return new Promise((resolve, reject) => {
      const fail = () => reject(problems.nodeUnreachable());
      if (this.#session.destroyed) return fail();
      const sent = this.#session.ping((error) => (error ? fail() : resolve()));
      if (!sent) fail();
    });
  }

  /**
   * Ends the connection if the peer does not answer in time, even if the kernel still considers the connection open.
   */
  #ping(): void {
    if (this.#session.destroyed) return;
    const give_up = () => this.#session.destroy(problems.nodeUnreachable());
    const timer = setTimeout(give_up, limits.link_ping_answer_ms);
    const sent_at = performance.now();
    void this.ping().then(
      () => {
        clearTimeout(timer);
        this.last_heard_at = performance.now();
        this.latencies_ms.push(this.last_heard_at - sent_at);
        if (this.latencies_ms.length > limits.link_latencies_max) this.latencies_ms.shift();
      },
      () => clearTimeout(timer),
    );
  }
}

function withToken(token: () => Promise<string | null>): Interceptor {
  return (next) => async (request) => {
    const bearer = await token();
    if (bearer !== null) request.header.set('authorization', `Bearer ${bearer}`);
    return next(request);
  };
}
