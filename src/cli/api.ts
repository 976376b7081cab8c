/** Connects commands to the plane: chooses the URL and the token, and wraps the typed client. Ctrl-C aborts calls. */

import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import type { Answer } from '../api/route.ts';
import type { OperationId, RouteOf } from '../api/routes.ts';
import { sleep } from '../base/async.ts';
import { clientLimits } from '../base/limits.ts';
import { type CallArgs, Client, isTemporary, retryRateLimited } from '../client/client.ts';
import { Problem } from '../core/problem.ts';
import type { Context, Io } from './context.ts';
import { readCredentials } from './credentials.ts';
import { exitCodes, Failure, failed, usage } from './failure.ts';
import { type LocalOptions, localFlags } from './options.ts';
import { printStatus } from './output.ts';
import { printable } from './terminal.ts';

export interface ApiOptions extends LocalOptions {
  url?: string | undefined;
}

/** When a command stops waiting, by `performance.now()`, and its error message then. */
export interface TimeLimit {
  at_ms: number;
  still: string;
}
const NO_LIMIT: TimeLimit = { at_ms: Number.POSITIVE_INFINITY, still: '' };

type Item<T> = T extends { items: (infer I)[] } ? I : never;

export class Api {
  readonly url: string;
  readonly client: Client;
  readonly #token: string | null;
  readonly #io: Pick<Io, 'stderr' | 'signal'>;
  readonly #fetch: typeof fetch;

  /**
   * `openApi` makes one for a URL. Writes warnings from the service to `io.stderr`. `io.signal` aborts calls. `send`: sends
   * requests.
   */
  constructor(url: string, token: string | null, io: Pick<Io, 'stderr' | 'signal'>, send: typeof fetch) {
    this.url = url;
    this.#token = token;
    this.#io = io;
    this.#fetch = send;
    this.client = new Client({
      url,
      token,
      fetch: send,
      onWarning: (message) => printStatus(io, `svc: warning: ${printable(message)}`),
    });
  }

  /** Returns a client of the same plane whose calls are aborted by `signal` instead. */
  withSignal(signal: AbortSignal): Api {
    return new Api(this.url, this.#token, { ...this.#io, signal }, this.#fetch);
  }

  call<Op extends OperationId>(op: Op, args: CallArgs<Op>): Promise<Answer<RouteOf<Op>>> {
    const call = this.client.call.bind(this.client) as (op: Op, args: CallArgs<Op>) => Promise<never>;
    return call(op, { ...args, signal: this.#io.signal });
  }

  /** Retries a call while the plane answers `rate_limited`, waiting as long as the plane asks. Lists do so anyway. */
  callWithRetry<Op extends OperationId>(op: Op, args: CallArgs<Op>): Promise<Answer<RouteOf<Op>>> {
    return retryRateLimited(() => this.call(op, args), this.#io.signal);
  }

  /**
   * Repeats a call that only reads until the plane answers, as event streams do: for commands that wait. At the time limit,
   * throws a `Failure` with exit code 124, even if the plane has not answered the last request. Without a limit, retries until
   * Ctrl-C.
   */
  async readWithRetry<Op extends OperationId>(
    op: Op,
    args: CallArgs<Op>,
    { at_ms, still }: TimeLimit = NO_LIMIT,
  ): Promise<Answer<RouteOf<Op>>> {
    const { signal } = this.#io;
    const left = () => Math.ceil(Math.max(0, at_ms - performance.now()));
    for (let failures = 0; ; failures++) {
      const timeout = at_ms === NO_LIMIT.at_ms ? null : AbortSignal.timeout(left());
      try {
        const api = timeout ? this.withSignal(AbortSignal.any([signal, timeout])) : this;
        return await api.call(op, args);
      } catch (error) {
        if (signal.aborted || !(timeout?.aborted || mayPass(error))) throw error;
        if (left() === 0) throw new Failure(exitCodes.timeout, still);
        await sleep(Math.min(retryDelay(error, failures), left()), signal);
        if (signal.aborted) throw new Failure(exitCodes.interrupted, '');
      }
    }
  }

  open<Op extends OperationId>(op: Op, args: CallArgs<Op>): Promise<Response> {
    return this.client.open(op, { ...args, signal: this.#io.signal });
  }

  /** Returns every item of a list. */
  async all<Op extends Parameters<Client['all']>[0]>(
    op: Op,
    args: CallArgs<Op>,
  ): Promise<Item<Answer<RouteOf<Op>>>[]> {
    const items: Item<Answer<RouteOf<Op>>>[] = [];
    for await (const item of this.each(op, args)) items.push(item);
    return items;
  }

  /** Iterates over a list and requests each page only when it is needed. */
  each<Op extends Parameters<Client['all']>[0]>(
    op: Op,
    args: CallArgs<Op>,
  ): AsyncIterable<Item<Answer<RouteOf<Op>>>> {
    const all = this.client.all.bind(this.client) as (op: Op, args: CallArgs<Op>) => AsyncIterable<never>;
    return all(op, { ...args, signal: this.#io.signal });
  }
}

/** Whether another attempt may succeed. A command that waits must not repeat an internal error of the plane forever. */
function mayPass(error: unknown): boolean {
  const is_internal = error instanceof Problem && ['internal_error', 'http_500'].includes(error.code);
  return isTemporary(error) && !is_internal;
}

/** How long to wait after `failures` earlier failures and this one, in milliseconds. */
function retryDelay(error: unknown, failures: number): number {
  if (error instanceof Problem && error.retry_after_s !== undefined) return error.retry_after_s * 1000;
  const { reconnect_backoff_ms: backoff_ms } = clientLimits;
  return backoff_ms[Math.min(failures, backoff_ms.length - 1)] ?? 0;
}

/** Returns a client with the stored or given token; fails with exit code 4 if none exists. */
export async function connect(context: Context, options: ApiOptions): Promise<Api> {
  const url = await planeUrl(context, options);
  const { io } = context;
  const token = io.env.SVC_TOKEN || (await readCredentials(io)).hosts[url]?.token;
  if (!token) {
    const command = (await hasNoUsers(context, options, url)) ? 'svc join' : `svc login ${url}`;
    throw new Failure(exitCodes.unauthenticated, `not signed in to ${url}: run ${command}`);
  }
  return openApi(context, options, url, token);
}

/** Returns a client of the plane at `url`. At the URL of this machine's plane, it trusts the certificate of that plane. */
export async function openApi(
  context: Context,
  options: LocalOptions,
  url: string,
  token: string | null,
): Promise<Api> {
  return new Api(url, token, context.io, await fetchFor(context, options, url));
}

async function fetchFor({ local }: Context, options: LocalOptions, url: string): Promise<typeof fetch> {
  if (!url.startsWith('https:')) return fetch;
  try {
    const holder = await local.holderOf((await local.loadConfig(localFlags(options))).get('data_dir'));
    if (!holder?.url || !holder.certificate || baseUrl(holder.url) !== url) return fetch;
    const { pinnedFetch } = await import('./pinned-fetch.ts');
    return pinnedFetch(holder.certificate);
  } catch {
    // Commands for planes on other machines need no valid configuration on this one.
    return fetch;
  }
}

/** Whether this machine's plane still waits for its first user, as far as the user of this command can read that. */
export async function hasNoUsers(context: Context, options: LocalOptions, url: string): Promise<boolean> {
  try {
    const data_dir = (await context.local.loadConfig(localFlags(options))).get('data_dir');
    await access(join(data_dir, 'join.json'), constants.R_OK);
    return url === (await localUrl(context, options));
  } catch {
    return false;
  }
}

/** `--url`, else `SVC_URL`, else the plane of the last `svc login`, else the plane on this machine. */
export async function planeUrl(context: Context, options: ApiOptions): Promise<string> {
  const { io } = context;
  const named = options.url ?? (io.env.SVC_URL || undefined) ?? (await readCredentials(io)).current;
  return named ? baseUrl(named) : localUrl(context, options);
}

/** The URL at which the plane of this machine's data directory listens, whether or not it is running. */
export async function localUrl({ local }: Context, options: LocalOptions): Promise<string> {
  const config = await local.loadConfig(localFlags(options));
  const holder = await local.holderOf(config.get('data_dir'));
  const scheme = config.get('server.tls.cert') === null ? 'http' : 'https';
  return baseUrl(holder?.url ?? `${scheme}://${config.get('server.listen')}`);
}

/** Where a browser opens the plane at `url`: at `web.rp_origin`, if it is the plane of this machine and has one, else at `url`. */
export async function browserUrl(context: Context, options: LocalOptions, url: string): Promise<string> {
  try {
    const config = await context.local.loadConfig(localFlags(options));
    const public_origin = config.get('web.rp_origin');
    if (public_origin !== null && url === (await localUrl(context, options))) return public_origin;
  } catch {
    // Commands for planes on other machines need no valid configuration on this one.
  }
  return url;
}

export function baseUrl(text: string): string {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw usage(`${withoutCredentials(text)} is not a URL: use http://host:port`);
  }
  if (!/^https?:$/.test(url.protocol)) throw usage(`${withoutCredentials(text)} is not an http or https URL`);
  const base_url = url.origin + url.pathname.replace(/\/+$/, '');
  if (url.username || url.password || url.search || url.hash)
    throw usage(`remove the credentials, query or fragment from the URL: use ${base_url}`);
  return base_url;
}

/** A URL, valid or not, without its credentials, query and fragment, for error messages. */
function withoutCredentials(text: string): string {
  const scheme = /^[a-z][a-z\d+.-]*:\/\//i.exec(text)?.[0] ?? '';
  const rest = text.slice(scheme.length);
  // The @ may end a password, or be part of a query.
  if (/[?#][\s\S]*@/.test(rest)) return `${scheme}…`;
  return scheme + rest.replace(/^[\s\S]*@/, '').replace(/[?#][\s\S]*$/, '');
}

/**
 * Finds an agent by id, or by name if only one agent has that name. Agents that are not archived take precedence; with
 * `archived`, archived ones do.
 */
export async function findAgent(api: Api, ref: string, { archived = false } = {}) {
  if (ref.startsWith('agt_')) {
    const found = await api.call('getAgent', { params: { agent_id: ref } }).catch((error) => {
      if (error instanceof Problem && error.kind === 'not_found') return null;
      throw error;
    });
    if (found) return found;
  }
  // Filtered here as well, because an older plane ignores the filter and returns every agent.
  const named = (await api.all('listAgents', { query: { name: ref } })).filter(({ name }) => name === ref);
  const preferred = named.filter(({ archived_at }) => Boolean(archived_at) === archived);
  return findByUniqueName(preferred.length > 0 ? preferred : named, ref, 'agent');
}
export type AgentRecord = Awaited<ReturnType<typeof findAgent>>;

/** Finds the one item with this name; throws if none exists, or more than one. */
export function findByUniqueName<T extends { id: string; name: string }>(
  listed: readonly T[],
  ref: string,
  noun: string,
): T {
  const named = listed.filter(({ name }) => name === ref);
  if (named.length > 1) {
    const ids = named.map(({ id }) => id).join(', ');
    throw failed(`${named.length} ${noun}s have the name ${ref}: use an id (${ids})`);
  }
  if (!named[0]) throw failed(`${noun} not found: ${ref}`);
  return named[0];
}
