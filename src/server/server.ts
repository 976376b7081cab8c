/**
 * The HTTP server: the order of checks for every request, the format of errors, and shutdown. `listener.ts` opens its socket.
 * `mount.ts` and the other modules of this folder define what it serves.
 */
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { routes } from '../api/routes.ts';
import { toJson } from '../base/kept-json.ts';
import { limits as sharedLimits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import { invalid, Problem, problems } from '../core/problem.ts';
import { dropRest } from './body.ts';
import type { Handlers } from './call.ts';
import { isForwarded } from './guard.ts';
import { mountHealth } from './health.ts';
import { Listener, type ListenerOptions } from './listener.ts';
import { Metrics } from './metrics.ts';
import { type MountOptions, mountRoutes } from './mount.ts';
import { mountPages, servePage } from './pages.ts';
import { errorResponse, requestIds } from './problem-response.ts';
import { RateLimiter } from './rate.ts';

export interface HttpOptions extends MountOptions, ListenerOptions {
  /** An open listener, which was opened with the same `ListenerOptions`; by default, `openHttp` opens one. */
  listener?: Listener;
  handlers: Handlers;
  /** The folder of the built web UI. */
  web: string;
  /** Whether the parts behind the server are up, for `/readyz`. */
  ready(): boolean;
  /** Whether the database's server answers, for `/readyz`. Absent: the database is embedded. */
  database_up?: () => boolean;
  /** Shared with other parts of the plane that have metrics. */
  metrics?: Metrics;
  /** `metrics.open`: whether `/metrics` answers without a token. */
  metrics_open(): boolean;
}

export interface HttpServer {
  /** The public listener. */
  listener: Listener;
  /** `http(s)://host:port` at which processes on this machine reach it. */
  url: string;
  address: AddressInfo;
  /** Whether another program answers to `localhost` on the same port. */
  localhost_taken: boolean;
  /** Answers requests of the public listener, and of other listeners that pass their requests on. */
  handler: RequestListener;
  /** The number of requests in progress, including streams. */
  requests_open(): number;
  /**
   * Rejects new requests with 503, ends streams, waits for other requests up to `limits.requests_cut_ms`, and then
   * closes their connections. Closes the listener, even if it was passed in `HttpOptions.listener`.
   */
  drain(): Promise<void>;
}

/**
 * Opens the listener, unless it is open already, and resolves when it passes requests to the handlers. Rejects if the address
 * cannot be bound. Requests that arrive before it resolves get 503, or the answer of what the listener served before.
 */
export async function openHttp(options: HttpOptions): Promise<HttpServer> {
  const metrics = options.metrics ?? new Metrics();
  const draining = new AbortController();
  const listener = options.listener ?? new Listener(options);
  const gate: Gate = { listener, draining: draining.signal, requests_open: 0 };
  const { app, handler } = createApp(options.log, listener);
  app.decorateRequest('operation', null);
  checkRequests(app, gate, (request, reply, ms) => recordResponse(request, reply, ms, options.log, metrics));
  app.setReplySerializer(toJson);
  app.setErrorHandler((error, request, reply) => sendError(error, request, reply, options.log));
  app.setNotFoundHandler((request, reply) => servePage(options.web, request, reply));
  // `body.ts` reads bodies after authorization.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));

  mountRoutes(app, options.handlers, {
    ...options,
    limiter: new RateLimiter(),
    connections: listener.connections,
    draining: draining.signal,
  });
  mountHealth(app, { ...options, metrics });
  await mountPages(app, options.web);

  await app.ready();
  if (options.listener === undefined) await listener.open();
  listener.serve(handler);

  const drain = async () => {
    draining.abort();
    await Promise.all([app.close(), listener.close()]);
  };
  let drained: Promise<void> | null = null;
  const { url, address, localhost_taken } = listener;
  return {
    listener,
    url,
    address,
    localhost_taken,
    handler,
    requests_open: () => gate.requests_open,
    drain: () => (drained ??= drain()),
  };
}

/** The Fastify instance, without hooks and routes, and what passes requests to it. */
function createApp(log: Logger, listener: Listener): { app: FastifyInstance; handler: RequestListener } {
  let handler: RequestListener | null = null;
  const app = fastify({
    serverFactory: (handle) => {
      handler = handle;
      return listener.server;
    },
    forceCloseConnections: false,
    return503OnClosing: false,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: sharedLimits.path_chars_max },
    genReqId: requestIds(),
    // The listener handles these.
    clientErrorHandler: () => {},
    frameworkErrors: (error, request, reply) =>
      sendError(error, request as FastifyRequest, reply as FastifyReply, log),
  }) as unknown as FastifyInstance;
  return { app, handler: handler! };
}

/** What decides whether requests are admitted. */
interface Gate {
  readonly listener: Listener;
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
  gate: Gate,
  answered: (request: FastifyRequest, reply: FastifyReply, ms: number) => void,
): void {
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
    reply.headers(gate.listener.headers);
    reply.header('x-request-id', request.id);
    if (gate.draining.aborted) {
      reply.header('connection', 'close');
      throw problems.draining();
    }
    if (!isForwarded(request.raw)) gate.listener.guard.check(request.raw, !request.url.startsWith('/api'));
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

/** Errors that Fastify throws, by code, as Problems of the contract. */
const frameworkProblems: Record<string, () => Problem> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: problems.unsupportedMediaType,
  FST_ERR_BAD_URL: () => invalid('request path is not valid', 'invalid_path'),
  FST_ERR_MAX_PARAM_LENGTH: problems.notFound,
};

function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply, log: Logger): void {
  const code = (error as { code?: unknown } | null)?.code;
  const problem =
    error instanceof Problem ? error : typeof code === 'string' ? frameworkProblems[code]?.() : undefined;
  if (problem === undefined) {
    log.error({ err: error, request_id: request.id, operation: request.operation }, 'request failed');
  }
  const { status, headers, type, body } = errorResponse(problem, request);
  reply.header('x-request-id', request.id);
  reply.headers(headers);
  dropRest(request.raw);
  void reply.code(status).type(type).send(body);
}
