/**
 * The public HTTP listener: socket limits, the order of checks for every request, the format of errors, and shutdown.
 * `mount.ts` and the other modules of this folder define what it serves.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { routes } from '../api/routes.ts';
import { INTERNAL_ERROR, statusOf } from '../api/status.ts';
import { newSecret } from '../base/ids.ts';
import { toJson } from '../base/kept-json.ts';
import { limits as sharedLimits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import { invalid, Problem, problems } from '../core/problem.ts';
import { dropRest } from './body.ts';
import type { Handlers } from './call.ts';
import { Guard } from './guard.ts';
import { mountHealth, notReady } from './health.ts';
import { limits } from './limits.ts';
import { Metrics } from './metrics.ts';
import { type MountOptions, mountRoutes } from './mount.ts';
import { listenOnOtherLoopback } from './other-loopback.ts';
import { mountPages, servePage, wrongHostPage } from './pages.ts';
import { RateLimiter } from './rate.ts';

export interface HttpOptions extends MountOptions {
  /** Address to bind; port 0 uses a free port. */
  host: string;
  port: number;
  /** PEM texts; null: plain HTTP. */
  tls: { cert: string; key: string } | null;
  /** `web.rp_origin`: the origin that people use. */
  public_origin: string | null;
  handlers: Handlers;
  /** The folder of the built web UI. */
  web: string;
  /** Whether the parts behind the server are up, for `/readyz`. */
  ready(): boolean;
  /** Time limits for clients; tests use shorter ones than `limits`. */
  timeouts?: Partial<Timeouts>;
  /** Shared with other parts of the plane that have metrics. */
  metrics?: Metrics;
  /** `metrics.open`: whether `/metrics` answers without a token. */
  metrics_open(): boolean;
}

const default_timeouts = {
  headers_ms: limits.headers_timeout_ms,
  request_ms: limits.request_timeout_ms,
  check_ms: limits.connections_check_ms,
  stall_ms: limits.response_stall_ms,
  cut_ms: limits.requests_cut_ms,
};

type Timeouts = Record<keyof typeof default_timeouts, number>;

export interface HttpServer {
  /** `http(s)://host:port` at which processes on this machine reach it. */
  url: string;
  address: AddressInfo;
  /** Whether another program answers to `localhost` on the same port. */
  localhost_taken: boolean;
  /** The number of requests in progress, including streams. */
  requests_open(): number;
  /**
   * Rejects new requests with 503, ends streams, waits for other requests up to `limits.requests_cut_ms`, and then
   * closes their connections.
   */
  drain(): Promise<void>;
}

/** Headers of every response. The content security policy lets a page load from this origin only. */
const SECURITY_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  'cache-control': 'no-store',
} as const;

/**
 * Opens the listener and resolves when it accepts connections. Rejects if the address cannot be bound. Requests that arrive
 * before it resolves get 503.
 */
export async function openHttp(options: HttpOptions): Promise<HttpServer> {
  const metrics = options.metrics ?? new Metrics();
  const timeouts = { ...default_timeouts, ...options.timeouts };
  const draining = new AbortController();
  const gate: Gate = { guard: null, draining: draining.signal, requests_open: 0 };
  const app = createApp(options, timeouts);
  const connections = trackConnections(app, timeouts);
  app.decorateRequest('operation', null);
  checkRequests(app, options, gate, (request, reply, ms) =>
    recordResponse(request, reply, ms, options.log, metrics),
  );
  app.setReplySerializer(toJson);
  app.setErrorHandler((error, request, reply) => sendError(error, request, reply, options.log));
  app.setNotFoundHandler((request, reply) => servePage(options.web, request, reply));
  // `body.ts` reads bodies after authorization.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));

  mountRoutes(app, options.handlers, { ...options, limiter: new RateLimiter(), draining: draining.signal });
  mountHealth(app, { ...options, metrics });
  await mountPages(app, options.web);

  await app.listen({ host: options.host, port: options.port });
  const address = app.server.address() as AddressInfo;
  const loopback = await listenOnOtherLoopback(app.server, address);
  const scheme = options.tls === null ? 'http' : 'https';
  const { host, public_origin } = options;
  gate.guard = new Guard({ scheme, host, port: address.port, public_origin });

  const drain = async () => {
    draining.abort();
    const closed = Promise.all([app.close(), loopback.close()]);
    // Connections become idle one by one as their last responses end.
    const idle = setInterval(() => app.server.closeIdleConnections(), limits.drain_poll_ms);
    const cut = setTimeout(() => {
      app.server.closeAllConnections();
      for (const connection of connections) connection.destroy();
    }, timeouts.cut_ms);
    await closed;
    clearInterval(idle);
    clearTimeout(cut);
  };
  let drained: Promise<void> | null = null;
  return {
    url: localUrl(scheme, address),
    address,
    localhost_taken: loopback.taken,
    requests_open: () => gate.requests_open,
    drain: () => (drained ??= drain()),
  };
}

/** The Fastify instance, without hooks and routes. */
function createApp(options: HttpOptions, timeouts: Timeouts): FastifyInstance {
  const boot_id = newSecret(6);
  let requests = 0;
  const socketLimits = {
    maxHeaderSize: limits.header_bytes_max,
    headersTimeout: timeouts.headers_ms,
    requestTimeout: timeouts.request_ms,
    connectionsCheckingInterval: timeouts.check_ms,
    requireHostHeader: false,
  };
  return fastify({
    ...(options.tls === null
      ? { http: socketLimits }
      : {
          https: {
            ...options.tls,
            ...socketLimits,
            minVersion: 'TLSv1.2' as const,
            handshakeTimeout: timeouts.headers_ms,
          },
        }),
    requestTimeout: timeouts.request_ms,
    keepAliveTimeout: limits.keep_alive_ms,
    forceCloseConnections: false,
    return503OnClosing: false,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: sharedLimits.path_chars_max },
    genReqId: () => `req_${boot_id}${(requests++).toString(36)}`,
    clientErrorHandler: (error, socket) => rejectAtSocket(error as NodeJS.ErrnoException, socket as Socket),
    frameworkErrors: (error, request, reply) =>
      sendError(error, request as FastifyRequest, reply as FastifyReply, options.log),
  }) as unknown as FastifyInstance;
}

/** All open connections. The HTTP server does not know a connection during its TLS handshake and could not close it. */
function trackConnections(app: FastifyInstance, timeouts: Timeouts): ReadonlySet<Socket> {
  app.server.setTimeout(timeouts.stall_ms, endStalled);
  const connections = new Set<Socket>();
  app.server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  return connections;
}

/** What decides whether requests are admitted. */
interface Gate {
  /** Null until the address is known. */
  guard: Guard | null;
  /** Aborts when the server no longer admits requests. */
  readonly draining: AbortSignal;
  requests_open: number;
}

/**
 * Checks every request before anything else, and sets the headers of every response. Calls `answered` with the time that a
 * complete response took.
 */
function checkRequests(
  app: FastifyInstance,
  { tls, public_origin }: HttpOptions,
  gate: Gate,
  answered: (request: FastifyRequest, reply: FastifyReply, ms: number) => void,
): void {
  // HSTS must not apply to `localhost`, which other programs share.
  const strict = tls !== null && public_origin?.startsWith('https:') === true;
  app.addHook('onRequest', (request, reply, done) => {
    const begun_ms = performance.now();
    gate.requests_open += 1;
    // Fastify computes all route options each time.
    request.operation = request.routeOptions.config.operation ?? null;
    // Fastify's hook `onResponse` has two more listeners, which take 2 µs.
    reply.raw.once('close', () => {
      gate.requests_open -= 1;
      if (reply.raw.writableFinished) answered(request, reply, performance.now() - begun_ms);
    });
    reply.headers(SECURITY_HEADERS);
    if (strict) reply.header('strict-transport-security', 'max-age=31536000');
    reply.header('x-request-id', request.id);
    if (gate.draining.aborted) {
      reply.header('connection', 'close');
      throw problems.draining();
    }
    if (gate.guard === null) throw notReady();
    gate.guard.check(request.raw, !request.url.startsWith('/api'));
    done();
  });
}

/** Counts a response in the metrics, and logs it at level debug. */
function recordResponse(
  request: FastifyRequest,
  reply: FastifyReply,
  ms: number,
  log: Logger,
  metrics: Metrics,
): void {
  const { operation } = request;
  const streams = operation !== null && 'raw' in routes[operation] && routes[operation].raw === 'sse';
  metrics.request(operation ?? 'none', reply.statusCode, streams ? null : ms / 1000);
  if (log.isLevelEnabled('debug')) {
    const { id: request_id, method, ip_address: ip } = request;
    log.debug({ request_id, operation, method, status: reply.statusCode, ip }, 'request');
  }
}

function localUrl(scheme: string, address: AddressInfo): string {
  const local = { '0.0.0.0': '127.0.0.1', '::': '[::1]' }[address.address];
  return `${scheme}://${local ?? (address.family === 'IPv6' ? `[${address.address}]` : address.address)}:${address.port}`;
}

type RespondingSocket = Socket & { _httpMessage?: (ServerResponse & { req: IncomingMessage }) | null };

/**
 * Called when a connection has been idle for `stall_ms`. Closes it if the client does not read pending data, or if no response
 * is pending. A handler may take as long as it needs.
 */
function endStalled(socket: RespondingSocket): void {
  if (!socket._httpMessage || socket.writableLength > 0) socket.destroy();
}

/** Errors that Fastify throws, by code, as Problems of the contract. */
const frameworkProblems: Record<string, () => Problem> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: problems.unsupportedMediaType,
  FST_ERR_BAD_URL: () => invalid('request path is not valid', 'invalid_path'),
  FST_ERR_MAX_PARAM_LENGTH: problems.notFound,
};

/** A proxy in front may parse such a request differently, so nothing more is accepted on the same connection. */
const AMBIGUOUS_HOST_CODES: ReadonlySet<string> = new Set([
  'missing_host',
  'duplicate_host',
  'invalid_target',
]);

function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply, log: Logger): void {
  const code = (error as { code?: unknown } | null)?.code;
  const problem =
    error instanceof Problem ? error : typeof code === 'string' ? frameworkProblems[code]?.() : undefined;
  if (problem === undefined) {
    log.error({ err: error, request_id: request.id, operation: request.operation }, 'request failed');
  }
  reply.header('x-request-id', request.id);
  reply.header('x-error-code', problem?.code ?? INTERNAL_ERROR.code);
  if (problem?.kind === 'unauthenticated') reply.header('www-authenticate', 'Bearer');
  if (problem && AMBIGUOUS_HOST_CODES.has(problem.code)) reply.header('connection', 'close');
  if (problem?.pending !== undefined) reply.header('x-pending', problem.pending);
  if (problem?.tries_left !== undefined) reply.header('x-tries-left', String(problem.tries_left));
  if (problem?.retry_after_s !== undefined) reply.header('retry-after', String(problem.retry_after_s));
  const allowed = pathsHeader(problem?.allowed_paths ?? []);
  if (allowed !== '') reply.header('x-allowed-paths', allowed);
  const refused = pathsHeader(problem?.refused_path === undefined ? [] : [problem.refused_path]);
  if (refused !== '') reply.header('x-refused-path', refused);
  dropRest(request.raw);
  reply.code(problem ? statusOf[problem.kind] : INTERNAL_ERROR.status);
  const page = problem?.kind === 'misdirected' ? wrongHostPage(request) : null;
  if (page !== null) {
    void reply.type(page.type).send(page.body);
    return;
  }
  void reply
    .type('application/json; charset=utf-8')
    .send(JSON.stringify({ error: problem?.message ?? INTERNAL_ERROR.message }));
}

/** Joins paths with commas, up to the length limit. Percent-encodes everything but slashes and plain characters. */
function pathsHeader(paths: readonly string[]): string {
  const encoded = paths.map((path) => path.split('/').map(encodeURIComponent).join('/'));
  return encoded.reduce((header, path) => {
    const longer = header === '' ? path : `${header}, ${path}`;
    return longer.length > limits.allowed_paths_chars_max ? header : longer;
  }, '');
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
