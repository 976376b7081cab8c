/**
 * Mounts handlers on the routes of the contract. Every request passes the same stages: Host and Origin, token, route,
 * policy, body, handler, response. This module knows nothing about resources; handlers call services, which apply the
 * policy.
 */
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { fieldPath } from '../api/field-path.ts';
import { isPublic, pathParams, type Route } from '../api/route.ts';
import { type OperationId, operationIds, routes } from '../api/routes.ts';
import { changesNothing, ignoredFieldsHeader, unknownFields } from '../api/unknown-fields.ts';
import { validate } from '../api/validate.ts';
import { withinLimits } from '../api/within-limits.ts';
import type { Connections } from '../base/connections.ts';
import { limits as sharedLimits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import { networkPrefix } from '../base/network.ts';
import type { Idempotency, StoredAnswer } from '../core/idempotency.ts';
import { limits as coreLimits } from '../core/limits.ts';
import { authorize } from '../core/policy.ts';
import { invalid, problems, unknownField } from '../core/problem.ts';
import type { Caller } from '../features/accounts/rules.ts';
import { parseBody, readBody } from './body.ts';
import type { Call, Handlers, ResourceChecks } from './call.ts';
import { clientAddress, isForwarded, isFromLoopback } from './guard.ts';
import { limits } from './limits.ts';
import { CALLER_HEADER } from './peers.ts';
import { multiplied, type Rate, type RateLimiter } from './rate.ts';

export interface MountOptions {
  /**
   * Returns the caller for a token. Called for every request. Throws `problems.invalidToken()`. Without a promise, the
   * request goes through all hooks in one turn, which takes 4 µs less.
   */
  authenticate(token: string, ip: string | null): Promise<Caller> | Caller;
  resources: ResourceChecks;
  idempotency: Idempotency;
  rate(): Rate;
  body_bytes_max(): number;
  /** Page size if a request has a cursor but no limit. */
  page_items_default(): number;
  behind_proxy: boolean;
  log: Logger;
  /** Validates every response against its schema and throws if it does not match; for tests. */
  check_answers?: boolean;
}

export interface MountContext extends MountOptions {
  limiter: RateLimiter;
  /** The connections of the public listener. */
  connections: Connections;
  draining: AbortSignal;
}

/** The handler types of all operations, without their individual parameters. */
type AnyCall = Call<OperationId>;
type AnyHandle = (call: AnyCall) => unknown;
interface AnyHandler {
  before: ((call: AnyCall) => Promise<void> | void) | null;
  handle: AnyHandle;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    operation?: OperationId;
  }
  interface FastifyRequest {
    /** Null on routes that are not in the table. */
    operation: OperationId | null;
    caller: Caller | null;
    ip_address: string | null;
  }
}

/** Adds a route for every operation, and 405 for the other methods of its path. */
export function mountRoutes(app: FastifyInstance, handlers: Handlers, options: MountContext): void {
  app.decorateRequest('caller', null);
  app.decorateRequest('ip_address', null);
  app.addHook('onRequest', (request, reply, done) => {
    const { operation } = request;
    request.ip_address = clientAddress(request.raw, options.behind_proxy);
    if (operation === null && !isApiPath(request.url)) return done();
    const route: Route | null = operation && routes[operation];
    if (route !== null && isPublic(route)) {
      if (!route.limits_rate) options.limiter.take(addressKey(request), options.rate());
      return done();
    }
    const admit = (caller: Caller) => {
      request.caller = caller;
      if (isForwarded(request.raw)) reply.header(CALLER_HEADER, caller.user_id);
      else options.connections.find(request.raw.socket)?.own(caller.user_id);
      done();
    };
    const caller = signIn(request, options);
    if (caller instanceof Promise) caller.then(admit, done);
    else admit(caller);
  });

  const methodsOf = new Map<string, Set<string>>();
  for (const operation of operationIds) {
    const route: Route = routes[operation];
    const url = route.path.replace(/\{[a-z_]+\*\}$/, '*').replace(/\{([a-z_]+)\}/g, ':$1');
    const method = route.method === 'GET' ? ['GET', 'HEAD'] : [route.method];
    const handler_or_pair = handlers[operation];
    const handler = (
      typeof handler_or_pair === 'function' ? { before: null, handle: handler_or_pair } : handler_or_pair
    ) as AnyHandler;
    const params = pathParams(route.path);
    const mounted = { operation, route, handler, params, default_query: defaultQuery(route) };
    app.route({
      method,
      url,
      exposeHeadRoute: false,
      config: { operation },
      handler: (request, reply) => answer(mounted, options, request, reply),
    });
    const methods = methodsOf.get(url) ?? new Set();
    for (const name of method) methods.add(name);
    methodsOf.set(url, methods);
  }
  for (const [url, methods] of methodsOf) {
    const allow = [...methods].join(', ');
    app.route({
      method: app.supportedMethods.filter((name) => !methods.has(name)),
      url,
      exposeHeadRoute: false,
      handler: (_request, reply) => {
        reply.header('allow', allow);
        throw problems.methodNotAllowed();
      },
    });
  }
}

/** Whether a path belongs to the API, however it is spelled. */
function isApiPath(url: string): boolean {
  const path = url.split('?', 1)[0]!;
  try {
    return /^\/+api(\/|$)/i.test(decodeURIComponent(path));
  } catch {
    return true;
  }
}

/** Counts requests by token and by user, and failures by address. A promise only if the token is not in memory. */
function signIn(request: FastifyRequest, options: MountContext): Caller | Promise<Caller> {
  const count = (caller: Caller) => {
    const rate = options.rate();
    options.limiter.take(`token ${caller.token_id}`, rate);
    options.limiter.take(`user ${caller.user_id}`, multiplied(rate, coreLimits.requests_user_factor));
    return caller;
  };
  const refuse = (error: unknown): never => {
    options.limiter.take(addressKey(request), options.rate());
    throw error;
  };
  let caller: Caller | Promise<Caller>;
  try {
    caller = bearerCaller(request, options);
  } catch (error) {
    return refuse(error);
  }
  return caller instanceof Promise ? caller.then(count, refuse) : count(caller);
}

/** Finds the caller of a request by its bearer token; see `MountOptions.authenticate`. */
export function bearerCaller(request: FastifyRequest, options: MountOptions): Caller | Promise<Caller> {
  const header = request.headers.authorization;
  if (header === undefined) throw problems.missingToken();
  const token = /^Bearer +([\x21-\x7e]{1,512})$/i.exec(header)?.[1];
  if (token === undefined) throw problems.invalidToken();
  return options.authenticate(token, request.ip_address);
}

/** Each public operation has its own bucket, and so have failures of all others, so that no flood keeps people from signing in. */
function addressKey({ operation, ip_address }: FastifyRequest): string {
  const name = operation !== null && isPublic(routes[operation]) ? operation : 'failures';
  return `${name} ${networkPrefix(ip_address)}`;
}

interface MountedRoute {
  operation: OperationId;
  route: Route;
  handler: AnyHandler;
  params: { name: string; rest: boolean }[];
  default_query: object | null;
}

async function answer(
  mounted: MountedRoute,
  options: MountContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const { route, handler } = mounted;
  authorize(request.caller, route.action);
  if (route.loopback && !isFromLoopback(request.raw)) throw problems.notAllowed();
  const call = new RequestCall(mounted, request, reply, options.draining);
  if (handler.before) await handler.before(call as unknown as AnyCall);

  let raw: Buffer | null;
  try {
    raw = await readInput(mounted, options, request, reply, call);
  } catch (error) {
    await checkResources(mounted, options, call);
    throw error;
  }
  const run = () => handler.handle(call as unknown as AnyCall);
  if (route.also) reply.header('vary', 'accept');
  if (route.raw || call.also !== null) {
    await runRaw(run, request, call, options.log);
    return call.hijacked ? reply : undefined;
  }
  const key = route.idempotent ? idempotencyKey(request.raw) : null;
  const response =
    key === null || request.caller === null
      ? shape(route, await run(), options)
      : await runOnce(options, request, key, raw, call, route, async () =>
          shape(route, await run(), options),
        );
  for (const [name, text] of Object.entries(response.headers ?? {})) reply.header(name, text);
  if (response.location !== null) reply.header('location', response.location);
  reply.code(response.status);
  return response.body;
}

/** Reads and validates the query and the body. Returns the bytes of the body. */
async function readInput(
  { route, default_query }: MountedRoute,
  options: MountContext,
  request: FastifyRequest,
  reply: FastifyReply,
  call: RequestCall,
): Promise<Buffer | null> {
  const raw = route.method === 'GET' ? null : await readBody(request.raw, bodyBytesMax(route, options));
  const value = raw === null ? {} : parseBody(raw);
  checkFields(route, request.query, route.body ? withinLimits(route.body, value) : value, reply);
  if (route.query) call.query = readQuery(route.query, request.query as object, default_query, options);
  if (route.body) call.body = validate(route.body, value, 'body');
  return raw;
}

function bodyBytesMax(route: Route, options: MountOptions): number {
  const max = options.body_bytes_max();
  return isPublic(route) ? Math.min(limits.public_body_bytes_max, max) : max;
}

/**
 * Throws if the path names something that the caller may not see or change. This takes precedence over what is wrong with
 * the request. For valid requests, the handlers check it.
 */
async function checkResources(
  { route, params }: MountedRoute,
  { resources }: MountContext,
  call: RequestCall,
): Promise<void> {
  if (call.caller === null) return;
  for (const { name } of params) await resources[name]?.(call.caller, route.action, call.params);
}

const NO_FIELDS = z.object({});

/** Reports unknown fields to the client or rejects them. Rejects an update that has only unknown fields. */
function checkFields(route: Route, query: unknown, body: unknown, reply: FastifyReply): void {
  const fields = unknownFields(route.body ?? NO_FIELDS, body);
  if (route.unknown_fields === 'refused' && fields[0]) throw unknownField(fieldPath(fields[0]));
  const parameters = unknownFields(route.query ?? NO_FIELDS, query).map(([name]) => String(name));
  if (fields.length + parameters.length > 0)
    reply.header('x-ignored-fields', ignoredFieldsHeader(fields, parameters));
  const updates = route.method === 'PATCH' || route.method === 'PUT';
  if (updates && route.body && changesNothing(route.body, body)) throw problems.nothingToChange();
}

/** The query of a request without parameters; null if the route requires one. */
function defaultQuery({ query }: Route): object | null {
  return query?.safeParse({}).data ?? null;
}

function readQuery(
  schema: NonNullable<Route['query']>,
  raw_query: object,
  default_query: object | null,
  options: MountOptions,
): unknown {
  // Most requests have no parameters, and validation takes 1 µs.
  if (default_query !== null && Object.keys(raw_query).length === 0) return { ...default_query };
  const query = validate(schema, raw_query, 'query');
  return query.cursor === undefined || query.limit !== undefined
    ? query
    : { ...query, limit: options.page_items_default() };
}

/**
 * Runs a handler that writes the response itself. After the handler has taken over the response, an error only ends
 * the connection.
 */
async function runRaw(
  run: () => unknown,
  request: FastifyRequest,
  call: RequestCall,
  log: Logger,
): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (!call.hijacked) throw error;
    log.error(
      { err: error, request_id: request.id, operation: call.operation },
      'a response was interrupted',
    );
    request.raw.socket.destroy();
  }
  if (!call.hijacked) throw new Error(`${call.operation} did not write a response`);
}

function shape(route: Route, result: unknown, options: MountOptions): StoredAnswer {
  if (result === undefined) return { status: 204, location: null };
  const { answers } = route;
  if ('201' in answers) {
    const { location, body } = result as { location: string; body: unknown };
    if (options.check_answers) answers[201].parse(body);
    return { status: 201, location, body };
  }
  if ('202' in answers) {
    if (options.check_answers) answers[202].parse(result);
    return { status: 202, location: null, body: result };
  }
  if (!('200' in answers)) throw new Error('a handler returned a body for a response without one');
  if (options.check_answers) answers[200].parse(result);
  return { status: 200, location: null, body: result };
}

function idempotencyKey(request: IncomingMessage): string | null {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return null;
  if (
    typeof key !== 'string' ||
    !/^[\x21-\x7e]+$/.test(key) ||
    key.length > sharedLimits.idempotency_key_chars_max
  ) {
    throw invalid(
      `Idempotency-Key must be 1 to ${sharedLimits.idempotency_key_chars_max} visible ASCII characters`,
      'invalid_idempotency_key',
    );
  }
  return key;
}

async function runOnce(
  options: MountOptions,
  request: FastifyRequest,
  key: string,
  body: Buffer | null,
  call: RequestCall,
  route: Route,
  run: () => Promise<StoredAnswer>,
): Promise<StoredAnswer> {
  const caller = request.caller!;
  const hash = createHash('sha256')
    .update(`${route.method} ${request.url}\n`)
    .update(body ?? '')
    // The stored response depends on the rights of the token, because another token of the same user may have fewer rights.
    .update(caller.grant === null ? '' : `\n${JSON.stringify(caller.grant)}`)
    .digest();
  const begun = await options.idempotency.begin(caller, key, hash);
  if ('stored' in begun) return begun.stored;
  call.idempotency_key = key;
  let answered: StoredAnswer;
  try {
    answered = await run();
  } catch (error) {
    await begun.first.release();
    throw error;
  }
  const headers = call.response_headers;
  const response = Object.keys(headers).length === 0 ? answered : { ...answered, headers };
  // If this fails, the key stays with the request, because its changes are committed.
  await begun.first.keep(response);
  return response;
}

/** Whether a client names a media type in Accept; a wildcard gets JSON. */
function accepted(header: string | undefined, type: string): boolean {
  return (header ?? '').split(',').some((item) => item.split(';', 1)[0]!.trim().toLowerCase() === type);
}

/** Shared, because a new one would record a stack trace. */
const DISCONNECTED = new DOMException('the client disconnected', 'AbortError');

/** The request that a handler receives. */
class RequestCall {
  readonly operation: OperationId;
  readonly method: string;
  readonly caller: Caller | null;
  readonly params: Record<string, string>;
  readonly headers: IncomingMessage['headers'];
  readonly ip: string | null;
  readonly request_id: string;
  query: unknown = {};
  body: unknown;
  idempotency_key: string | null = null;
  readonly also: string | null;
  hijacked = false;
  /** Headers set by the handler, stored for replays. */
  readonly response_headers: Record<string, string> = {};
  readonly #reply: FastifyReply;
  readonly #draining: AbortSignal;
  #signal: AbortSignal | null = null;

  constructor(mounted: MountedRoute, request: FastifyRequest, reply: FastifyReply, draining: AbortSignal) {
    this.operation = mounted.operation;
    this.method = request.method;
    this.caller = request.caller;
    this.params = decodeParams(mounted, request.params as Record<string, string>);
    this.headers = request.headers;
    const { also } = mounted.route;
    this.also = also && accepted(request.headers.accept, also) ? also : null;
    this.ip = request.ip_address;
    this.request_id = request.id;
    this.#reply = reply;
    this.#draining = draining;
  }

  readonly warn = (message: string): void => {
    // Header values must be ASCII.
    this.setHeader('x-warning', message.replace(/[^\x20-\x7e]/g, '?'));
  };

  get signal(): AbortSignal {
    if (this.#signal === null) {
      const response = this.#reply.raw;
      const closed = new AbortController();
      response.once('close', () => {
        if (!response.writableFinished) closed.abort(DISCONNECTED);
      });
      if (response.destroyed) closed.abort(DISCONNECTED);
      this.#signal = AbortSignal.any([closed.signal, this.#draining]);
    }
    return this.#signal;
  }

  setHeader(name: string, value: string): void {
    this.response_headers[name] = value;
    this.#reply.header(name, value);
  }

  hijack(): ServerResponse {
    const response = this.#reply.raw;
    this.hijacked = true;
    this.#reply.hijack();
    for (const [name, value] of Object.entries(this.#reply.getHeaders())) {
      if (value !== undefined) response.setHeader(name, value);
    }
    return response;
  }
}

/** Maps path parameters to the names of the contract. A malformed id gives "not found". */
function decodeParams(mounted: MountedRoute, raw_params: Record<string, string>): Record<string, string> {
  const params: Record<string, string> = {};
  for (const { name, rest } of mounted.params) {
    const value = (rest ? raw_params['*'] : raw_params[name]) ?? '';
    if (value === '' || value.includes('\0')) throw problems.notFound();
    params[name] = value;
  }
  return params;
}
