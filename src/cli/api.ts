/**
 * The plane as commands see it: which one is meant, with which token, and typed calls by the contract's route table.
 * Errors are the server's own messages; a plane that does not answer is one line with its address.
 */
import { kindOf } from '../contract/errors.ts';
import type { Answer, Params, Route, SentBody } from '../contract/route.ts';
import { type OperationId, type RouteOf, routes } from '../contract/routes.ts';
import { Problem } from '../domain/problem.ts';
import type { Context } from './context.ts';
import { readCredentials } from './credentials.ts';
import { exitCodes, Failure, failed, usage } from './failure.ts';
import { type LocalOptions, localFlags } from './options.ts';

export interface ApiOptions extends LocalOptions {
  url?: string | undefined;
}

export type CallArgs<Op extends OperationId> = {
  query?: Record<string, string | number | boolean | undefined>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  body?: SentBody<RouteOf<Op>>;
} & (keyof Params<RouteOf<Op>> extends never ? { params?: undefined } : { params: Params<RouteOf<Op>> });

/** Page answers come in two forms; the client always asks for pages and sees `{items, next_cursor?}`. */
type Item<T> = T extends { items: (infer I)[] } ? I : never;

export class Api {
  readonly url: string;
  readonly #token: string | null;
  readonly #signal: AbortSignal;

  constructor(url: string, token: string | null, signal: AbortSignal) {
    this.url = url;
    this.#token = token;
    this.#signal = signal;
  }

  async call<Op extends OperationId>(op: Op, args: CallArgs<Op>): Promise<Answer<RouteOf<Op>>> {
    const response = await this.open(op, args);
    if (response.status === 204) return undefined as Answer<RouteOf<Op>>;
    return (await response.json()) as Answer<RouteOf<Op>>;
  }

  /** Every item of a list, page by page. */
  async all<Op extends OperationId>(op: Op, args: CallArgs<Op>): Promise<Item<Answer<RouteOf<Op>>>[]> {
    const items: Item<Answer<RouteOf<Op>>>[] = [];
    let cursor: string | undefined;
    do {
      const query = { limit: 200, ...args.query, cursor };
      const page = (await this.call(op, { ...args, query })) as { items: typeof items; next_cursor?: string };
      items.push(...page.items);
      cursor = page.next_cursor;
    } while (cursor !== undefined);
    return items;
  }

  /** The response itself, for streams and bytes. Throws a Problem for any error status, `Unreachable` when nobody answers. */
  async open<Op extends OperationId>(op: Op, args: CallArgs<Op>): Promise<Response> {
    const route: Route = routes[op];
    const target = new URL(this.url + pathOf(route, args.params ?? {}));
    for (const [name, value] of Object.entries(args.query ?? {})) {
      if (value !== undefined) target.searchParams.set(name, String(value));
    }
    const headers: Record<string, string> = { ...args.headers };
    if (this.#token !== null && route.action !== 'session.open')
      headers.authorization = `Bearer ${this.#token}`;
    if (args.body !== undefined) headers['content-type'] = 'application/json';
    const signal = args.signal ? AbortSignal.any([args.signal, this.#signal]) : this.#signal;
    let response: Response;
    try {
      response = await fetch(target, {
        method: route.method,
        headers,
        body: args.body === undefined ? null : JSON.stringify(args.body),
        redirect: 'error',
        signal,
      });
    } catch (error) {
      if (signal.aborted) throw error;
      throw new Unreachable(this.url, error);
    }
    if (response.ok) return response;
    throw await problemOf(response);
  }
}

/** Nobody answers at the plane's address. */
export class Unreachable extends Failure {
  constructor(url: string, cause: unknown) {
    const { code, message } = ((cause as Error).cause ?? cause) as NodeJS.ErrnoException;
    super(exitCodes.failed, `cannot reach ${url}: ${code ?? message}`);
    this.name = 'Unreachable';
  }
}

async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text().catch(() => '');
  let message = `the server answered ${response.status}`;
  try {
    const { error } = JSON.parse(text);
    if (typeof error === 'string') message = error;
  } catch {
    // Not one of ours, for example a proxy's page: the status has to do.
  }
  const kind = kindOf(response.status) ?? 'unavailable';
  const retry = Number(response.headers.get('retry-after'));
  return new Problem(kind, response.headers.get('x-error-code') ?? 'unknown', message, {
    ...(retry > 0 && { retry_after_s: retry }),
  });
}

function pathOf(route: Route, params: Record<string, string>): string {
  return route.path.replace(/\{([a-z_]+)(\*?)\}/g, (_, name: string, rest: string) => {
    const value = params[name]!;
    return rest ? value.split('/').map(encodeURIComponent).join('/') : encodeURIComponent(value);
  });
}

/** Signed in to the plane that is meant, or exit 4. */
export async function connect(context: Context, options: ApiOptions): Promise<Api> {
  const url = await planeUrl(context, options);
  const { io } = context;
  const token = io.env.SVC_TOKEN || (await readCredentials(io)).hosts[url]?.token;
  if (!token) throw new Failure(exitCodes.unauthenticated, `not signed in to ${url}: run svc login ${url}`);
  return new Api(url, token, io.signal);
}

/** Without a token, for what needs none. */
export async function connectOpen(context: Context, options: ApiOptions): Promise<Api> {
  return new Api(await planeUrl(context, options), null, context.io.signal);
}

/** `--url`, else `SVC_URL`, else where `svc login` went last, else the plane of this machine. */
export async function planeUrl(context: Context, options: ApiOptions): Promise<string> {
  const { io } = context;
  const named = options.url ?? (io.env.SVC_URL || undefined) ?? (await readCredentials(io)).current;
  return named ? baseUrl(named) : localUrl(context, options);
}

/** Where the plane of this machine's data directory listens, running or not. */
export function localUrl({ local }: Context, options: LocalOptions): string {
  const config = local.loadConfig(localFlags(options));
  const holder = local.holderOf(config.get('data_dir'));
  const scheme = config.get('server.tls.cert') === null ? 'http' : 'https';
  return baseUrl(holder?.url ?? `${scheme}://${config.get('server.listen')}`);
}

export function baseUrl(text: string): string {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw usage(`${text} is not a URL: use http://host:port`);
  }
  if (!/^https?:$/.test(url.protocol)) throw usage(`${text} is not an http or https URL`);
  if (url.username || url.password || url.search || url.hash) throw usage(`${text} must be a plain base URL`);
  return url.origin + url.pathname.replace(/\/+$/, '');
}

/** An agent by id, or by its name when only one has it. */
export async function findAgent(api: Api, ref: string) {
  if (ref.startsWith('agt_')) {
    const found = await api.call('getAgent', { params: { agent_id: ref } }).catch((error) => {
      if (error instanceof Problem && error.kind === 'not_found') return null;
      throw error;
    });
    if (found) return found;
  }
  const named = await api.all('listAgents', { query: { name: ref } });
  if (named.length > 1) {
    throw failed(
      `${named.length} agents are called ${ref}: use an id (${named.map(({ id }) => id).join(', ')})`,
    );
  }
  if (!named[0]) throw failed(`agent not found: ${ref}`);
  return named[0];
}
export type AgentRecord = Awaited<ReturnType<typeof findAgent>>;
