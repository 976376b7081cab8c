/**
 * The typed client, made from the route table: for the CLI, tests and the web. It throws the server's own `Problem`s,
 * and follows streams across lost connections without losing or repeating an event. It keeps no token anywhere.
 */
import { createParser } from 'eventsource-parser';
import { sleep } from '../base/async.ts';
import { clientLimits } from '../base/limits.ts';
import { pendingKinds } from '../domain/agent.ts';
import { Problem } from '../domain/problem.ts';
import { operations } from './gen/operations.ts';
import type { Answer, Params, Query, SentBody } from './route.ts';
import type { OperationId, RouteOf } from './routes.ts';
import { kindOf } from './status.ts';

export interface ClientOptions {
  /** `http(s)://host:port`. */
  url: string;
  /** Bearer token; null for operations that need none. */
  token?: string | null;
  fetch?: typeof fetch;
  /** Called with each warning that an answer carries, a line that may hold text of others. */
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

/** Arguments may be left out where none is needed. */
type Args<Op extends OperationId> =
  Record<never, never> extends CallArgs<Op> ? [args?: CallArgs<Op>] : [args: CallArgs<Op>];

type Item<T> = T extends { items: (infer I)[] } ? I : never;
type ListOperation = {
  [Op in OperationId]: Item<Answer<RouteOf<Op>>> extends never ? never : Op;
}[OperationId];
type StreamOperation = {
  [Op in OperationId]: RouteOf<Op> extends { raw: 'sse' } ? Op : never;
}[OperationId];

/** One frame of an event stream. */
export interface Frame {
  /** The position that a client resumes from; null before the first. */
  id: string | null;
  event: string;
  data: { type: string; [field: string]: unknown };
}

export type StreamState = 'connecting' | 'connected' | 'reconnecting';

export interface FollowOptions {
  /** Resume after this event. */
  last_event_id?: string | undefined;
  /** Told at every change, for people who watch; with `reconnecting`: how long until the next attempt. */
  onState?: (state: StreamState, wait_ms?: number) => void;
  /** Waits between attempts; the last one repeats. */
  backoff_ms?: readonly number[];
  /** A connection that is silent for so long is taken for dead. */
  silence_ms?: number;
  /** So many connections may end one after the other without a new position; the next end is thrown. Default: any. */
  fruitless_max?: number;
  nudges?: Nudges;
}

/** Hurries streams along: for whoever knows that an attempt is worth more now than it was a moment ago. */
export class Nudges {
  readonly #heard = new Set<(renew: boolean) => void>();

  /** What waits tries again after the first wait at most; with `renew` a connection is given up for a new one. */
  nudge(renew = false): void {
    for (const hear of [...this.#heard]) hear(renew);
  }

  listen(hear: (renew: boolean) => void): () => void {
    this.#heard.add(hear);
    return () => this.#heard.delete(hear);
  }
}

/** Nobody answered: no network, no listener, or a connection that broke before the answer. */
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
    // A browser's own may not be called as a method of ours.
    const given = options.fetch;
    this.#fetch = given ? (...args) => given(...args) : (...args) => fetch(...args);
  }

  /** Calls an operation; throws the server's `Problem`, or `Unreachable`. */
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

  /** Every item of a list, read page by page. */
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
      const response = await this.open(operation, { ...args, query } as unknown as CallArgs<Op>);
      const page = (await response.json()) as { items: Item<Answer<RouteOf<Op>>>[]; next_cursor?: string };
      yield* page.items;
      cursor = page.next_cursor;
    } while (cursor !== undefined);
  }

  /** The response itself, for bytes and streams. Its status is a success. */
  async open<Op extends OperationId>(operation: Op, args: CallArgs<Op>): Promise<Response> {
    const { method, path, open } = operations[operation];
    const target = new URL(this.url + pathOf(path, args.params ?? {}));
    for (const [name, value] of Object.entries(args.query ?? {})) {
      if (value === undefined || value === null) continue;
      for (const one of [value].flat()) target.searchParams.append(name, String(one));
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
    if (!response.ok) throw await problemOf(response);
    return response;
  }

  /**
   * Frames of a stream for as long as the signal allows: a connection that ends, breaks or falls silent is opened again
   * from the last event. Ends when the signal aborts; throws a `Problem` that another attempt would not heal.
   */
  async *follow<Op extends StreamOperation>(
    operation: Op,
    args: CallArgs<Op> & { signal: AbortSignal },
    options: FollowOptions = {},
  ): AsyncGenerator<Frame, void, undefined> {
    const backoff_ms = options.backoff_ms ?? clientLimits.reconnect_backoff_ms;
    let last = options.last_event_id;
    let failures = 0;
    let fruitless = 0;
    const stopListening = options.nudges?.listen(() => {
      failures = 0;
    });
    const backoffOf = (failure: number) => backoff_ms[Math.min(failure, backoff_ms.length - 1)] ?? 0;
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
          if (error instanceof Problem && !isPassing(error)) throw error;
          if (!(error instanceof Problem) && !(error instanceof Unreachable)) throw error;
          const asked_ms = error instanceof Problem ? (error.retry_after_s ?? 0) * 1000 : 0;
          not_before = performance.now() + asked_ms;
          ended = error;
        }
        if (args.signal.aborted) return;
        if (fruitless++ === options.fruitless_max) throw ended;
        // Nothing came, but it was open for a while: this is another interruption, not the same one.
        if (performance.now() - opened_at > backoffOf(0)) failures = 0;
        const wait = (most_ms: number) => {
          const wait_ms = Math.max(not_before - performance.now(), Math.min(backoffOf(failures++), most_ms));
          onState('reconnecting', wait_ms);
          return wait_ms;
        };
        await pause(wait, args.signal, options.nudges);
      }
    } finally {
      stopListening?.();
    }
  }

  /** One connection, to its end. A break is `Unreachable`. */
  async *#connection<Op extends StreamOperation>(
    operation: Op,
    args: CallArgs<Op> & { signal: AbortSignal },
    last: string | undefined,
    options: FollowOptions,
  ): AsyncGenerator<Frame, void, undefined> {
    const silence = new AbortController();
    const silence_ms = options.silence_ms ?? clientLimits.client_silence_ms;
    let timer = setTimeout(() => silence.abort(), silence_ms);
    const headers = { ...args.headers, ...(last !== undefined && { 'last-event-id': last }) };
    const signal = AbortSignal.any([args.signal, silence.signal]);
    const stopListening = options.nudges?.listen((renew) => renew && silence.abort());
    try {
      const response = await this.open(operation, { ...args, headers, signal });
      options.onState?.('connected');
      const ready: Frame[] = [];
      const parser = createParser({
        onEvent: ({ id, event, data }) =>
          ready.push({ id: id ?? null, event: event ?? 'message', data: JSON.parse(data) as Frame['data'] }),
      });
      const text = new TextDecoder();
      // Not every browser iterates a body.
      const reader = response.body?.getReader();
      for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) {
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), silence_ms);
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

function pathOf(path: string, params: Record<string, string>): string {
  return path.replace(/\{([a-z_]+)\*?\}/g, (_, name: string) => {
    const value = params[name];
    if (value === undefined || value === '') throw new Error(`${name} is missing`);
    return encodeURIComponent(value);
  });
}

async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text().catch(() => '');
  const kind = kindOf(response.status) ?? (response.status >= 500 ? 'unavailable' : 'invalid');
  const allowed = response.headers.get('x-allowed-paths');
  const retry_after_s = Number(response.headers.get('retry-after')) || undefined;
  const kept = response.headers.get('x-pending');
  const pending = pendingKinds.find((known) => known === kept);
  return new Problem(
    kind,
    response.headers.get('x-error-code') ?? `http_${response.status}`,
    messageIn(text) ?? `the server answered ${response.status}`,
    {
      ...(retry_after_s !== undefined && { retry_after_s }),
      ...(allowed !== null && { allowed_paths: allowed.split(', ').map(decoded) }),
      ...(pending && { pending }),
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

function messageIn(text: string): string | null {
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    return typeof error === 'string' ? error : null;
  } catch {
    return null;
  }
}

/** Waits as long as `next` says, which is asked again, with what is left of the wait, whenever somebody nudges. */
async function pause(next: (most_ms: number) => number, signal: AbortSignal, nudges?: Nudges): Promise<void> {
  let left_ms = Number.POSITIVE_INFINITY;
  let nudged: AbortController;
  do {
    const wait_ms = next(left_ms);
    const until = performance.now() + wait_ms;
    const nudge = new AbortController();
    nudged = nudge;
    const stopListening = nudges?.listen(() => nudge.abort());
    await sleep(wait_ms, nudges ? AbortSignal.any([signal, nudge.signal]) : signal);
    stopListening?.();
    left_ms = Math.max(0, until - performance.now());
  } while (nudged.signal.aborted && !signal.aborted);
}

/** Errors that time heals. */
function isPassing(problem: Problem): boolean {
  return ['rate_limited', 'bad_gateway', 'unavailable'].includes(problem.kind);
}
