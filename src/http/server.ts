/**
 * The public HTTP listener: socket limits, the order of checks that every request passes, the form of every error, and
 * the end. What it serves comes from `mount.ts` and the small doors beside it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { newSecret } from '../base/ids.ts';
import { limits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import { routes } from '../contract/routes.ts';
import { INTERNAL_ERROR, statusOf } from '../contract/status.ts';
import { invalid, Problem, problems } from '../domain/problem.ts';
import { dropRest } from './body.ts';
import type { Handlers } from './call.ts';
import { mountDocs } from './docs.ts';
import { Guard } from './guard.ts';
import { mountHealth, notReady } from './health.ts';
import { Metrics } from './metrics.ts';
import { type MountOptions, mountRoutes } from './mount.ts';
import { mountPages, servePage, wrongHostPage } from './pages.ts';
import { RateLimiter } from './rate.ts';
import { listenToTwin } from './twin.ts';

export interface HttpOptions extends MountOptions {
  /** Address to bind; port 0 takes a free one. */
  host: string;
  port: number;
  /** PEM texts; null: plain HTTP. */
  tls: { cert: string; key: string } | null;
  /** `web.rp_origin`: the origin that people use. */
  public_origin: string | null;
  handlers: Handlers;
  /** Where the built web UI lies. */
  web: string;
  /** Whether the parts behind are up; asked by `/readyz`. */
  ready(): boolean;
  /** How long a client may take; `limits` unless a test is in a hurry. */
  timeouts?: Partial<Record<keyof typeof patience, number>>;
  /** Shared by other parts of the plane that count things. */
  metrics?: Metrics;
  /** `metrics.open`: whether `/metrics` answers without a token. */
  metrics_open(): boolean;
}

const patience = {
  headers_ms: limits.headers_timeout_ms,
  request_ms: limits.request_timeout_ms,
  check_ms: limits.connections_check_ms,
  stall_ms: limits.response_stall_ms,
  cut_ms: limits.requests_cut_ms,
};

export interface HttpServer {
  /** `http(s)://host:port`, as a process on this machine reaches it. */
  url: string;
  address: AddressInfo;
  /** Another program answers to `localhost` with our port too. */
  localhost_taken: boolean;
  /** Requests that are being answered, streams included. */
  requests_open(): number;
  /**
   * Refuses new requests (503), ends streams politely, waits for the rest up to `limits.requests_cut_ms`, cuts what is left.
   */
  drain(): Promise<void>;
}

/** Headers of every answer. The policy lets a page load from here and nowhere else. */
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

export async function openHttp(options: HttpOptions): Promise<HttpServer> {
  const metrics = options.metrics ?? new Metrics();
  const draining = new AbortController();
  const boot = newSecret(6);
  let requests = 0;
  let requests_open = 0;
  const timeouts = { ...patience, ...options.timeouts };
  const socketLimits = {
    maxHeaderSize: limits.header_bytes_max,
    headersTimeout: timeouts.headers_ms,
    requestTimeout: timeouts.request_ms,
    connectionsCheckingInterval: timeouts.check_ms,
    requireHostHeader: false,
  };
  const app = fastify({
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
    routerOptions: { maxParamLength: limits.path_chars_max },
    genReqId: () => `req_${boot}${(requests++).toString(36)}`,
    clientErrorHandler: (error, socket) => refuseAtSocket(error as NodeJS.ErrnoException, socket as Socket),
    frameworkErrors: (error, request, reply) =>
      sendError(error, request as FastifyRequest, reply as FastifyReply, options.log),
  }) as unknown as FastifyInstance;

  app.server.setTimeout(timeouts.stall_ms, endStalled);
  // A connection in its TLS handshake is not yet one that the HTTP server knows and could cut.
  const connections = new Set<Socket>();
  app.server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });

  // For the name that people use, not for a `localhost` that other programs serve too.
  const strict = options.tls !== null && options.public_origin?.startsWith('https:') === true;
  let guard: Guard | null = null;
  app.addHook('onRequest', async (request, reply) => {
    requests_open += 1;
    reply.raw.once('close', () => {
      requests_open -= 1;
    });
    reply.headers(SECURITY_HEADERS);
    if (strict) reply.header('strict-transport-security', 'max-age=31536000');
    reply.header('x-request-id', request.id);
    if (draining.signal.aborted) {
      reply.header('connection', 'close');
      throw problems.draining();
    }
    if (guard === null) throw notReady();
    guard.check(request.raw, !request.url.startsWith('/api'));
  });
  app.addHook('onResponse', async (request, reply) => {
    const operation = request.routeOptions.config.operation ?? 'none';
    const streams = operation !== 'none' && 'raw' in routes[operation] && routes[operation].raw === 'sse';
    metrics.request(operation, reply.statusCode, streams ? null : reply.elapsedTime / 1000);
    if (!options.log.isLevelEnabled('debug')) return;
    options.log.debug(
      {
        request_id: request.id,
        operation,
        method: request.method,
        status: reply.statusCode,
        ip: request.ip_address,
      },
      'request',
    );
  });
  app.setErrorHandler((error, request, reply) => sendError(error, request, reply, options.log));
  app.setNotFoundHandler((request, reply) => servePage(options.web, request, reply));
  // Bodies are read by `body.ts`, after authorization.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));

  mountRoutes(app, options.handlers, { ...options, limiter: new RateLimiter(), draining: draining.signal });
  mountHealth(app, { ...options, metrics });
  mountDocs(app);
  await mountPages(app, options.web);

  await app.listen({ host: options.host, port: options.port });
  const address = app.server.address() as AddressInfo;
  const twin = await listenToTwin(app.server, address);
  const scheme = options.tls === null ? 'http' : 'https';
  guard = new Guard({ scheme, host: options.host, port: address.port, public_origin: options.public_origin });

  const drain = async () => {
    draining.abort();
    const closed = Promise.all([app.close(), twin.close()]);
    // Connections become idle one by one, as their last answers end.
    const idle = setInterval(() => app.server.closeIdleConnections(), limits.drain_look_ms);
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
    localhost_taken: twin.taken,
    requests_open: () => requests_open,
    drain: () => (drained ??= drain()),
  };
}

function localUrl(scheme: string, address: AddressInfo): string {
  const local = { '0.0.0.0': '127.0.0.1', '::': '[::1]' }[address.address];
  return `${scheme}://${local ?? (address.family === 'IPv6' ? `[${address.address}]` : address.address)}:${address.port}`;
}

type Answering = Socket & { _httpMessage?: (ServerResponse & { req: IncomingMessage }) | null };

/**
 * Asked when nothing has moved on a connection for a while: it ends when the client takes nothing of what waits for it,
 * or when there is nothing to wait for. An answer may take its time.
 */
function endStalled(socket: Answering): void {
  if (!socket._httpMessage || socket.writableLength > 0) socket.destroy();
}

/** Fastify's own complaints, in the contract's words. */
const frameworkProblems: Record<string, () => Problem> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: problems.unsupportedMediaType,
  FST_ERR_BAD_URL: () => invalid('request path is not valid', 'invalid_path'),
  FST_ERR_MAX_PARAM_LENGTH: problems.notFound,
};

/** Who may have read such a request in another way, as a proxy in front, gets no further on the same connection. */
const UNCLEAR: ReadonlySet<string> = new Set(['missing_host', 'duplicate_host', 'invalid_target']);

function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply, log: Logger): void {
  const code = (error as { code?: unknown } | null)?.code;
  const problem =
    error instanceof Problem ? error : typeof code === 'string' ? frameworkProblems[code]?.() : undefined;
  if (problem === undefined) {
    log.error(
      { err: error, request_id: request.id, operation: request.routeOptions.config.operation },
      'request failed',
    );
  }
  reply.header('x-request-id', request.id);
  reply.header('x-error-code', problem?.code ?? INTERNAL_ERROR.code);
  if (problem?.kind === 'unauthenticated') reply.header('www-authenticate', 'Bearer');
  if (problem && UNCLEAR.has(problem.code)) reply.header('connection', 'close');
  if (problem?.pending !== undefined) reply.header('x-pending', problem.pending);
  if (problem?.retry_after_s !== undefined) reply.header('retry-after', String(problem.retry_after_s));
  const allowed = allowedPathsHeader(problem?.allowed_paths ?? []);
  if (allowed !== '') reply.header('x-allowed-paths', allowed);
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

/** Paths separated by commas, everything but slashes and plain characters percent-encoded; those that fit. */
function allowedPathsHeader(paths: readonly string[]): string {
  const encoded = paths.map((path) => path.split('/').map(encodeURIComponent).join('/'));
  return encoded.reduce((header, path) => {
    const longer = header === '' ? path : `${header}, ${path}`;
    return longer.length > limits.allowed_paths_chars_max ? header : longer;
  }, '');
}

/** What is not HTTP, too long or too slow never becomes a request: one plain answer, and the connection ends. */
function refuseAtSocket(error: NodeJS.ErrnoException, socket: Socket): void {
  // Without a TLS handshake nothing can be written, and what waits to be written keeps the connection.
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
  // A response that is under way on this connection must not get another one in its middle.
  if ((socket as Answering)._httpMessage?.headersSent) {
    socket.destroy();
    return;
  }
  const body = JSON.stringify({ error: message });
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nX-Error-Code: ${code}\r\nConnection: close\r\n\r\n${body}`,
    () => socket.destroySoon(),
  );
}
