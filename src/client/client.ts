/**
 * The typed HTTP client for the CLI, tests and the web UI, derived from the route table. It throws the server's `Problem`s,
 * and follows streams across lost connections without losing or repeating an event. It does not store tokens.
 */
import { createParser } from 'eventsource-parser';
import type { Answer, Params, Query, SentBody } from '../api/route.ts';
import type { OperationId, RouteOf } from '../api/routes.ts';
import { kindOf } from '../api/status.ts';
import { sleep } from '../base/async.ts';
import { clientLimits } from '../base/limits.ts';
import { Problem } from '../core/problem.ts';
import { pendingKinds } from '../features/agents/rules.ts';
import { operations } from './operations.ts';

export interface ClientOptions {
  /** `http(s)://host:port`. */
  url: string;
  /** Bearer token; null for operations that need none. */
  token?: string | null;
  fetch?: typeof fetch;
  /** Called with each warning of a response: one line, which may contain untrusted text. */
  onWarning?: (message: string) => void;
}

export type CallArgs<Op extends OperationId> = {
  query?: Partial<Query<RouteOf<Op>>>;
  headers?: Record<string, string>;
  idempotency_key?: string;
  signal?: AbortSignal;
} & (keyof Params<RouteOf<Op>> extends never ? { params?: undefined } : { params: Params<RouteOf<Op>> }) &
  ([SentBody<RouteOf<Op>>] extends [never]
    ? { body?: undefined }
    : Record<never, never> extends SentBody<RouteOf<Op>>
      ? { body?: SentBody<RouteOf<Op>> }
      : { body: SentBody<RouteOf<Op>> });

/** The arguments may be omitted if none is required. */
type Args<Op extends OperationId> =
  Record<never, never> extends CallArgs<Op> ? [args?: CallArgs<Op>] : [args: CallArgs<Op>];

interface Page<T> {
  items: T[];
  next_cursor?: string;
}
type Item<T> = T extends { items: (infer I)[] } ? I : never;
type ListOperation = {
  [Op in OperationId]: Item<Answer<RouteOf<Op>>> extends never ? never : Op;
}[OperationId];
type StreamOperation = {
  [Op in OperationId]: RouteOf<Op> extends { raw: 'sse' } ? Op : never;
}[OperationId];

/** One frame of an event stream. */
export interface Frame {
  /** The position that a client resumes from; null before the first event. */
  id: string | null;
  event: string;
  data: { type: string; [field: string]: unknown };
}

export type StreamState = 'connecting' | 'connected' | 'reconnecting';

export interface FollowOptions {
  /** Resume after this event. */
  last_event_id?: string | undefined;
  /** Called at every state change; `wait_ms` with `reconnecting`: time until the next attempt. */
  onState?: (state: StreamState, wait_ms?: number) => void;
  /** Waits between attempts in milliseconds; the last one repeats. */
  backoff_ms?: readonly number[];
  /** A connection without any data for this long, in milliseconds, is treated as dead. */
  silence_ms?: number;
  /** Maximum number of consecutive connections without a new position; the next failure is thrown. Default: no limit. */
  fruitless_max?: number;
  reconnect_signal?: ReconnectSignal;
}

/** Shortens the waits of streams when a reconnection is likely to succeed, for example when the network returns. */
export class ReconnectSignal {
  readonly #listeners = new Set<(renew: boolean) => void>();

  /** Waiting streams retry after at most the first backoff; `renew` also replaces open connections. */
  send(renew = false): void {
    for (const listener of [...this.#listeners]) listener(renew);
  }

  listen(listener: (renew: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** No response: no network, no listener, or a connection that broke before the response. */
export class Unreachable extends Error {
  constructor(url: string, cause: unknown) {
    super(`${url} does not answer`, { cause });
    this.name = 'Unreachable';
  }
}

export class Client {
  readonly url: string;
  readonly #token: string | null;
  readonly #fetch: typeof fetch;
  readonly #onWarning: ((message: string) => void) | undefined;

  constructor(options: ClientOptions) {
    this.url = options.url.replace(/\/+$/, '');
    this.#token = options.token ?? null;
    this.#onWarning = options.onWarning;
    // A browser's `fetch` must not be called as a method of another object.
    const custom_fetch = options.fetch;
    this.#fetch = custom_fetch ? (...args) => custom_fetch(...args) : (...args) => fetch(...args);
  }

  /** Calls an operation. Throws the server's `Problem`, or `Unreachable`. */
  async call<Op extends OperationId>(operation: Op, ...[args]: Args<Op>): Promise<Answer<RouteOf<Op>>> {
    const response = await this.open(operation, args ?? ({} as CallArgs<Op>));
    try {
      if (response.status === 204) return undefined as Answer<RouteOf<Op>>;
      return (await response.json()) as Answer<RouteOf<Op>>;
    } catch (error) {
      if (args?.signal?.aborted) throw error;
      throw new Unreachable(this.url, error);
    }
  }

  /**
   * Iterates over all items of a list, page by page. Waits while the server limits requests. Throws the server's `Problem`, or
   * `Unreachable`. The pages of `getLog` with `before` and without `after` go backwards, each with its oldest event first.
   */
  async *all<Op extends ListOperation>(
    operation: Op,
    ...[args]: Args<Op>
  ): AsyncGenerator<Item<Answer<RouteOf<Op>>>, void, undefined> {
    let cursor: string | undefined;
    do {
      const query = {
        limit: clientLimits.page_items_max,
        ...args?.query,
        ...(cursor !== undefined && { cursor }),
      };
      const call_args = [{ ...args, query }] as unknown as Args<Op>;
      const answer = await retryRateLimited(() => this.call(operation, ...call_args), args?.signal);
      const page = answer as Page<Item<Answer<RouteOf<Op>>>>;
      yield* page.items;
      cursor = page.next_cursor;
    } while (cursor !== undefined);
  }

  /** Returns the raw response, for bytes and streams; throws unless its status is a success. */
  async open<Op extends OperationId>(operation: Op, args: CallArgs<Op>): Promise<Response> {
    const { method, path, open } = operations[operation];
    const target = new URL(this.url + buildPath(path, args.params ?? {}));
    for (const [name, value] of Object.entries(args.query ?? {})) {
      if (value === undefined || value === null) continue;
      for (const item of [value].flat()) target.searchParams.append(name, String(item));
    }
    const headers = new Headers(args.headers);
    if (this.#token !== null && !open) headers.set('authorization', `Bearer ${this.#token}`);
    if (args.idempotency_key !== undefined) headers.set('idempotency-key', args.idempotency_key);
    if (args.body !== undefined) headers.set('content-type', 'application/json');
    let response: Response;
    try {
      response = await this.#fetch(target, {
        method,
        headers,
        redirect: 'error',
        ...(args.body !== undefined && { body: JSON.stringify(args.body) }),
        ...(args.signal && { signal: args.signal }),
      });
    } catch (error) {
      if (args.signal?.aborted) throw error;
      throw new Unreachable(this.url, error);
    }
    const ignored = response.headers.get('x-ignored-fields');
    if (ignored) this.#onWarning?.(`the service ignored unknown fields: ${ignored}`);
    const warning = response.headers.get('x-warning');
    if (warning) this.#onWarning?.(warning);
    if (!response.ok) throw await readProblem(response);
    return response;
  }

  /**
   * Yields the frames of a stream. A connection that ends, breaks or falls silent is opened again after the last event. Ends
   * when the signal aborts, or when the caller leaves the loop. Throws a `Problem` that another attempt would not solve.
   */
  async *follow<Op extends StreamOperation>(
    operation: Op,
    call_args: CallArgs<Op>,
    options: FollowOptions = {},
  ): AsyncGenerator<Frame, void, undefined> {
    const args = { ...call_args, signal: call_args.signal ?? new AbortController().signal };
    const backoff_ms = options.backoff_ms ?? clientLimits.reconnect_backoff_ms;
    let last = options.last_event_id;
    let failures = 0;
    let fruitless = 0;
    const stopListening = options.reconnect_signal?.listen(() => {
      failures = 0;
    });
    const backoffFor = (failure: number) => backoff_ms[Math.min(failure, backoff_ms.length - 1)] ?? 0;
    let opened_at = Number.POSITIVE_INFINITY;
    const onState = (state: StreamState, wait_ms?: number) => {
      opened_at = state === 'connected' ? performance.now() : Number.POSITIVE_INFINITY;
      options.onState?.(state, wait_ms);
    };
    onState('connecting');
    try {
      while (!args.signal.aborted) {
        let not_before = 0;
        let ended: unknown = new Unreachable(this.url, 'the stream ended');
        try {
          for await (const frame of this.#connection(operation, args, last, { ...options, onState })) {
            if (args.signal.aborted) return;
            failures = 0;
            if (frame.id !== null && frame.id !== last) {
              last = frame.id;
              fruitless = 0;
            }
            yield frame;
          }
        } catch (error) {
          if (args.signal.aborted) return;
          if (!isTemporary(error)) throw error;
          const retry_after_ms = error instanceof Problem ? (error.retry_after_s ?? 0) * 1000 : 0;
          not_before = performance.now() + retry_after_ms;
          ended = error;
        }
        if (args.signal.aborted) return;
        if (fruitless++ === options.fruitless_max) throw ended;
        // The connection was open for a while without events: count this as a new interruption.
        if (performance.now() - opened_at > backoffFor(0)) failures = 0;
        const wait = (most_ms: number) => {
          const wait_ms = Math.max(not_before - performance.now(), Math.min(backoffFor(failures++), most_ms));
          onState('reconnecting', wait_ms);
          return wait_ms;
        };
        await pause(wait, args.signal, options.reconnect_signal);
      }
    } finally {
      stopListening?.();
    }
  }

  /** Reads one connection to its end. Throws `Unreachable` if it breaks. */
  async *#connection<Op extends StreamOperation>(
    operation: Op,
    args: CallArgs<Op> & { signal: AbortSignal },
    last: string | undefined,
    options: FollowOptions,
  ): AsyncGenerator<Frame, void, undefined> {
    const silence = new AbortController();
    const silence_ms = options.silence_ms ?? clientLimits.client_silence_ms;
    let heard_at = performance.now();
    // Not a new timer for each read: 0.34 µs in Node, and 0.06 µs for this.
    const listen = () => {
      const left_ms = heard_at + silence_ms - performance.now();
      if (left_ms > 0) timer = setTimeout(listen, left_ms);
      else silence.abort();
    };
    let timer = setTimeout(listen, silence_ms);
    const headers = { ...args.headers, ...(last !== undefined && { 'last-event-id': last }) };
    const signal = AbortSignal.any([args.signal, silence.signal]);
    const stopListening = options.reconnect_signal?.listen((renew) => renew && silence.abort());
    try {
      const response = await this.open(operation, { ...args, headers, signal });
      options.onState?.('connected');
      const ready: Frame[] = [];
      const parser = createParser({
        onEvent: ({ id, event, data }) =>
          ready.push({ id: id ?? null, event: event ?? 'message', data: JSON.parse(data) as Frame['data'] }),
      });
      const text = new TextDecoder();
      // Not every browser supports async iteration of a body.
      const reader = response.body?.getReader();
      for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) {
        heard_at = performance.now();
        parser.feed(text.decode(read.value, { stream: true }));
        yield* ready.splice(0);
      }
    } catch (error) {
      if (error instanceof Problem || error instanceof Unreachable || args.signal.aborted) throw error;
      throw new Unreachable(this.url, error);
    } finally {
      clearTimeout(timer);
      stopListening?.();
      silence.abort();
    }
  }
}

/** Repeats `attempt` while the server answers `rate_limited`, each time after as long as the server asks. */
export async function retryRateLimited<T>(attempt: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Problem && error.kind === 'rate_limited')) throw error;
      await sleep((error.retry_after_s ?? 1) * 1000, signal);
    }
  }
}

function buildPath(path: string, params: Record<string, string>): string {
  return path.replace(/\{([a-z_]+)\*?\}/g, (_, name: string) => {
    const value = params[name];
    if (value === undefined || value === '') throw new Error(`${name} is missing`);
    return encodeURIComponent(value);
  });
}

async function readProblem(response: Response): Promise<Problem> {
  const text = await response.text().catch(() => '');
  const kind = kindOf(response.status) ?? (response.status >= 500 ? 'unavailable' : 'invalid');
  const allowed = response.headers.get('x-allowed-paths');
  const refused = response.headers.get('x-refused-path');
  const retry_after_s = Number(response.headers.get('retry-after')) || undefined;
  const pending_header = response.headers.get('x-pending');
  const tries_left = response.headers.get('x-tries-left');
  const pending = pendingKinds.find((kind) => kind === pending_header);
  return new Problem(
    kind,
    response.headers.get('x-error-code') ?? `http_${response.status}`,
    parseMessage(text) ?? `the server answered ${response.status}`,
    {
      ...(retry_after_s !== undefined && { retry_after_s }),
      ...(allowed !== null && { allowed_paths: allowed.split(', ').map(decoded) }),
      ...(refused !== null && { refused_path: decoded(refused) }),
      ...(pending && { pending }),
      ...(tries_left !== null && { tries_left: Number(tries_left) }),
    },
  );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function parseMessage(text: string): string | null {
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    return typeof error === 'string' ? error : null;
  } catch {
    return null;
  }
}

/** Waits as long as `next` says; every signal calls it again with the remaining time. */
async function pause(
  next: (most_ms: number) => number,
  signal: AbortSignal,
  reconnect_signal?: ReconnectSignal,
): Promise<void> {
  let remaining_ms = Number.POSITIVE_INFINITY;
  let signaled: AbortController;
  do {
    const wait_ms = next(remaining_ms);
    const until = performance.now() + wait_ms;
    const wake = new AbortController();
    signaled = wake;
    const stopListening = reconnect_signal?.listen(() => wake.abort());
    await sleep(wait_ms, reconnect_signal ? AbortSignal.any([signal, wake.signal]) : signal);
    stopListening?.();
    remaining_ms = Math.max(0, until - performance.now());
  } while (signaled.signal.aborted && !signal.aborted);
}

/** Whether a later retry may succeed. */
export function isTemporary(error: unknown): boolean {
  if (error instanceof Unreachable) return true;
  return error instanceof Problem && ['rate_limited', 'bad_gateway', 'unavailable'].includes(error.kind);
}
