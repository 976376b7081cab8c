/**
 * The public socket: its limits, input that is not HTTP, and shutdown. Who answers the requests can change while it is open, so
 * that a plane that stands by can take over without closing it.
 */
import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import {
  createServer as createTlsServer,
  type Server as TlsServer,
  type ServerOptions as TlsServerOptions,
} from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { type ConnectionBounds, Connections } from '../base/connections.ts';
import { descriptorsMax } from '../base/descriptors.ts';
import { problems } from '../core/problem.ts';
import { Guard } from './guard.ts';
import { limits } from './limits.ts';
import { listenOnOtherLoopback, type OtherLoopback } from './other-loopback.ts';
import { commonHeaders, requestIds, sendProblem } from './problem-response.ts';

/** A certificate chain and its key, PEM. */
export interface Certificate {
  cert: string;
  key: string;
}

export interface ListenerOptions {
  /** Address to bind; port 0 uses a free port. */
  host: string;
  port: number;
  /** Null: plain HTTP. */
  tls: Certificate | null;
  /** `web.rp_origin`: the origin that people use. */
  public_origin: string | null;
  /** Time limits for clients; tests use shorter ones than `limits`. */
  timeouts?: Partial<Timeouts>;
  /** Bounds of connections; tests use smaller ones than `connectionBounds`. */
  bounds?: ConnectionBounds;
}

export const default_timeouts = {
  headers_ms: limits.headers_timeout_ms,
  request_ms: limits.request_timeout_ms,
  check_ms: limits.connections_check_ms,
  stall_ms: limits.response_stall_ms,
  cut_ms: limits.requests_cut_ms,
};

const TLS_MIN_VERSION = 'TLSv1.2';

export type Timeouts = Record<keyof typeof default_timeouts, number>;

/** Creates a listener and opens it. Rejects with the errno error if the address cannot be bound. */
export async function openListener(options: ListenerOptions): Promise<Listener> {
  const listener = new Listener(options);
  await listener.open();
  return listener;
}

export class Listener {
  readonly server: Server;
  /** Headers of every response. */
  readonly headers: Readonly<Record<string, string>>;
  /** As it was created. `setCertificate` does not change it. */
  readonly options: ListenerOptions;
  /** Its open connections. Whoever verifies the token of a request names the owner of its connection. */
  readonly connections: Connections;
  readonly #timeouts: Timeouts;
  #handler: RequestListener;
  #address: AddressInfo | null = null;
  #loopback: OtherLoopback | null = null;
  #guard: Guard | null = null;
  #closed: Promise<void> | null = null;

  /** Does not bind the address yet; see `open`. */
  constructor(options: ListenerOptions) {
    this.options = options;
    this.headers = commonHeaders(options);
    this.#timeouts = { ...default_timeouts, ...options.timeouts };
    const newId = requestIds();
    this.#handler = (request, response) =>
      sendProblem({ request, response, request_id: newId() }, problems.notReady(), this.headers);
    this.server = createHttpServer(options.tls, this.#timeouts);
    this.connections = new Connections(this.server, options.bounds ?? connectionBounds(descriptorsMax()));
    this.server.on('request', (request, response) => {
      this.#countRequest(request, response);
      this.#handler(request, response);
    });
  }

  /**
   * Binds the address, and resolves when connections are accepted. Requests get 503 until `serve` is called. Rejects with the
   * errno error if the address cannot be bound. Must be called once.
   */
  async open(): Promise<void> {
    const { host, port, public_origin } = this.options;
    await once(this.server.listen({ host, port }), 'listening');
    const address = this.server.address() as AddressInfo;
    this.#guard = new Guard({ scheme: this.#scheme, host, port: address.port, public_origin });
    this.#address = address;
    this.#loopback = await listenOnOtherLoopback(this.server, address);
  }

  /** Requests that arrive from now on are passed to `handler`. It does not affect requests in progress. */
  serve(handler: RequestListener): void {
    this.#handler = handler;
  }

  /** New connections use this certificate. Throws, and changes nothing, if it cannot be used. Only for listeners with TLS. */
  setCertificate(certificate: Certificate): void {
    (this.server as TlsServer).setSecureContext({ ...certificate, minVersion: TLS_MIN_VERSION });
  }

  /** Throws before `open`. */
  get address(): AddressInfo {
    return opened(this.#address);
  }

  /** `http(s)://host:port` at which processes on this machine reach it. Throws before `open`. */
  get url(): string {
    const { address, family, port } = this.address;
    const local = { '0.0.0.0': '127.0.0.1', '::': '[::1]' }[address];
    return `${this.#scheme}://${local ?? (family === 'IPv6' ? `[${address}]` : address)}:${port}`;
  }

  /** Whether another program answers to `localhost` on the same port. */
  get localhost_taken(): boolean {
    return this.#loopback?.taken === true;
  }

  /** Checks Host and Origin of requests to this address. Throws before `open`. */
  get guard(): Guard {
    return opened(this.#guard);
  }

  /**
   * Accepts no more connections, waits for open requests up to `timeouts.cut_ms`, and then closes their connections.
   * Idempotent.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  #countRequest({ socket }: IncomingMessage, response: ServerResponse): void {
    const connection = this.connections.find(socket);
    if (connection === undefined) return;
    connection.begin();
    response.once('close', connection.end);
  }

  async #close(): Promise<void> {
    await Promise.all([
      closeServer(this.server, this.connections, this.#timeouts.cut_ms),
      this.#loopback?.close(),
    ]);
  }

  get #scheme(): 'http' | 'https' {
    return this.options.tls === null ? 'http' : 'https';
  }
}

function opened<T>(value: T | null): T {
  if (value === null) throw new Error('the listener is not open');
  return value;
}

/**
 * Creates an HTTP server with the limits of all listeners, which does not listen yet. `tls`: null for plain HTTP.
 * `header_bytes_max`: the size of all request headers.
 */
export function createHttpServer(
  tls: TlsServerOptions | null,
  timeouts: Timeouts,
  header_bytes_max: number = limits.header_bytes_max,
): Server {
  const http = {
    maxHeaderSize: header_bytes_max,
    headersTimeout: timeouts.headers_ms,
    requestTimeout: timeouts.request_ms,
    connectionsCheckingInterval: timeouts.check_ms,
    keepAliveTimeout: limits.keep_alive_ms,
    requireHostHeader: false,
  };
  const server =
    tls === null
      ? createServer(http)
      : createTlsServer({
          minVersion: TLS_MIN_VERSION,
          ...tls,
          ...http,
          handshakeTimeout: timeouts.headers_ms,
        });
  server.setTimeout(timeouts.stall_ms, endStalled);
  server.on('clientError', (error, socket) => rejectAtSocket(error, socket as Socket));
  return server;
}

/** The bounds of clients' connections for a process that can have this number of descriptors open. */
export function connectionBounds(descriptors: number): ConnectionBounds {
  const max = Math.floor(descriptors * limits.connections_share);
  const anonymous_max = Math.min(limits.connections_anonymous_max, Math.floor(max / 4));
  return { anonymous_max, owned_max: max - anonymous_max };
}

/** Accepts no more connections, waits for open requests up to `cut_ms`, and then closes their connections. */
export async function closeServer(server: Server, connections: Connections, cut_ms: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // Connections become idle one by one as their last responses end.
  const idle = setInterval(() => server.closeIdleConnections(), limits.drain_poll_ms);
  const cut = setTimeout(() => {
    server.closeAllConnections();
    // The HTTP server does not know a connection during its TLS handshake.
    connections.destroyAll();
  }, cut_ms);
  await closed;
  clearInterval(idle);
  clearTimeout(cut);
}

type RespondingSocket = Socket & { _httpMessage?: (ServerResponse & { req: IncomingMessage }) | null };

/**
 * Called when a connection has been idle for `stall_ms`. Closes it if the client does not read pending data, or if no response
 * is pending. A handler may take as long as it needs.
 */
function endStalled(socket: RespondingSocket): void {
  if (!socket._httpMessage || socket.writableLength > 0) socket.destroy();
}

/**
 * Input that is not HTTP, too long or too slow never becomes a request. It gets one plain response, and the
 * connection is closed.
 */
function rejectAtSocket(error: NodeJS.ErrnoException, socket: Socket): void {
  // Nothing can be written before the TLS handshake is complete, and pending data would keep the connection open.
  const isTls = error.code?.startsWith('ERR_TLS_') || error.code?.startsWith('ERR_SSL_');
  if (socket.destroyed || isTls || error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, code, message] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', 'headers_too_large', 'request headers are too large']
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['408 Request Timeout', 'request_timeout', 'request took too long']
        : ['400 Bad Request', 'invalid_http', 'request is not valid HTTP'];
  // Never write a second response into one that is in progress on this connection.
  if ((socket as RespondingSocket)._httpMessage?.headersSent) {
    socket.destroy();
    return;
  }
  const body = JSON.stringify({ error: message });
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nX-Error-Code: ${code}\r\nConnection: close\r\n\r\n${body}`,
    () => socket.destroySoon(),
  );
}
