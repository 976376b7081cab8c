/**
 * Bearer tokens: opaque, 256 random bits, stored as SHA-256. `session` tokens come from a sign-in and expire when idle or old.
 * `api` tokens are named, and last until they are revoked or expire. A refresh changes the secret and keeps the record, so
 * that open streams, which are bound to the record's id, stay open. Revoking a token also deletes the devices that were
 * subscribed to notifications with it; expiry does not.
 */

import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../../base/clock.ts';
import { rfc3339, rfc3339OrNull } from '../../base/clock.ts';
import { newId, newSecret } from '../../base/ids.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import type { Logger } from '../../base/log.ts';
import type { Limits, Scope } from '../../core/grant.ts';
import { type Page, type PageRequest, pageOfRows, readCursor } from '../../core/page.ts';
import { decide, type GrantRequest, newGrant } from '../../core/policy.ts';
import { invalid, problems } from '../../core/problem.ts';
import { agentResource, teamResource } from '../../store/resources.ts';
import type { Reader, Store, Tx } from '../../store/store.ts';
import type { Caller } from '../accounts/rules.ts';
import { findAgent } from '../agents/queries/agents.ts';
import type { Audit } from '../audit/service.ts';
import type { Extensions } from '../feature.ts';
import { findTeam } from '../teams/queries.ts';
import { limits } from './limits.ts';
import { type LiveToken, LiveTokens, toGrant } from './live-tokens.ts';
import {
  countApiTokens,
  deleteToken,
  expiredTokens,
  findToken,
  insertToken,
  listTokenIds,
  listTokens,
  signInsBeyond,
  type TokenKind,
  type TokenRow,
  updateToken,
} from './queries.ts';

export interface Issued {
  token: string;
  /** Seconds until the token expires if it is not used. */
  expires_in: number;
}

export interface SignIn {
  id: string;
  user_agent: string | null;
  ip: string | null;
  created_at: string;
  last_used_at: string;
  expires_at: string;
  current: boolean;
}

export interface ApiToken {
  id: string;
  name: string;
  scopes: Scope[];
  /** Null, like `team_ids`: not limited. */
  agent_ids: string[] | null;
  team_ids: string[] | null;
  created_at: string;
  last_used_at: string | null;
  expires_at: string | null;
}

/** The requested properties of a new API token. */
export interface TokenRequest extends GrantRequest {
  /** The id derived from an idempotency key. */
  id?: string | undefined;
  name: string;
  /** Unix milliseconds; null: it does not expire. */
  expires_at: number | null;
}

export interface Client {
  ip: string | null;
  user_agent: string | null;
}

/** The address and user agent of a sign-in. */
export function readClient(call: { ip: string | null; headers: IncomingHttpHeaders }): Client {
  return { ip: call.ip, user_agent: call.headers['user-agent'] ?? null };
}

export interface TokensDeps {
  store: Store;
  clock: Clock;
  log: Logger;
  audit: Audit;
  extensions: Pick<Extensions, 'onTokenRevoked' | 'onTokensRevoked'>;
}

const TOKEN = /^svc_[A-Za-z0-9_-]{43}$/;

export class Tokens {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #audit: Audit;
  readonly #extensions: TokensDeps['extensions'];
  readonly #live: LiveTokens;
  /** The hashed secret that each caller presented: a refresh ends exactly that one. */
  readonly #presented = new WeakMap<Caller, string>();
  /** The last caller with each token. To create one and to note its secret takes 0.5 µs. */
  readonly #callers = new WeakMap<LiveToken, Caller>();

  constructor(deps: TokensDeps) {
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#audit = deps.audit;
    this.#extensions = deps.extensions;
    this.#live = new LiveTokens(deps);
  }

  /**
   * The caller for a token; a promise only if the token is not in memory. Throws `invalid token` if it is malformed, expired
   * or revoked.
   */
  authenticate(token: string, ip: string | null): Caller | Promise<Caller> {
    if (!TOKEN.test(token)) throw problems.invalidToken();
    const digest = hash('sha256', token, 'base64url');
    const live = this.#live.byDigest(digest);
    return live instanceof Promise
      ? live.then((loaded) => this.#admit(loaded, digest, ip))
      : this.#admit(live, digest, ip);
  }

  #admit(live: LiveToken | undefined, digest: string, ip: string | null): Caller {
    const now = this.#clock.now();
    if (!live || isOver(live, now)) {
      if (live) this.#live.forget(live.id);
      throw problems.invalidToken();
    }
    this.#live.touch(live.id, now, ip);
    const last = this.#callers.get(live);
    if (last?.ip === ip && this.#presented.get(last) === digest) return last;
    const caller = {
      user_id: live.user_id,
      username: live.username,
      role: live.role,
      token_id: live.id,
      grant: live.grant,
      ip,
    };
    this.#presented.set(caller, digest);
    this.#callers.set(live, caller);
    return caller;
  }

  /** Whether the token of an open stream is still valid; the check does not count as use. */
  async isLive(token_id: string): Promise<boolean> {
    const live = await this.#live.byId(token_id);
    return live !== undefined && !isOver(live, this.#clock.now());
  }

  /**
   * Creates a session token, in the transaction of a sign-in with a password or a passkey. Above the limit, the user's least
   * recently used sign-in ends.
   */
  async issue(
    tx: Tx,
    user_id: string,
    token: string,
    client: Client,
    by: 'password' | 'passkey',
  ): Promise<Issued & { token_id: string }> {
    const now = this.#clock.now();
    await this.#end(tx, await signInsBeyond(tx, user_id, limits.tokens_per_user - 1, limits.tokens_per_user));
    const id = newId('tok');
    const expires_at = now + limits.token_absolute_ms;
    const idle_expires_at = now + limits.token_idle_ms;
    await insertToken(tx, {
      id,
      user_id,
      kind: 'session',
      hash: hashToken(token),
      name: null,
      user_agent: client.user_agent?.slice(0, sharedLimits.user_agent_chars_max) ?? null,
      ip: client.ip,
      created_at: now,
      last_used_at: now,
      idle_expires_at,
      expires_at,
      password_at: by === 'password' ? now : null,
      ...NO_GRANT,
    });
    return { token_id: id, token, expires_in: seconds(now, idle_expires_at, expires_at) };
  }

  /**
   * Whether the caller's sign-in verified the password within the last ten minutes. Throws `invalid token` if it has ended,
   * and a 403 for API tokens, which never verify one.
   */
  async hasRecentPassword(reader: Reader, caller: Caller): Promise<boolean> {
    const row = await findToken(reader, caller.token_id);
    if (!row) throw problems.invalidToken();
    if (row.kind !== 'session') throw problems.notAllowed();
    return row.password_at !== null && row.password_at > this.#clock.now() - limits.password_recent_ms;
  }

  /** Records that the sign-in of this token has just verified the password. */
  async recordPasswordVerified(tx: Tx, token_id: string): Promise<void> {
    await updateToken(tx, token_id, { password_at: this.#clock.now() });
  }

  /** Revokes the token that the caller presented. Throws `invalid token` if it has been revoked in the meantime. */
  async logout(caller: Caller): Promise<void> {
    await this.#store.write(async (tx) => {
      if ((await this.#end(tx, [caller.token_id])) === 0) throw problems.invalidToken();
      await this.#extensions.onTokenRevoked(tx, caller.token_id);
      await this.#audit.record(tx, {
        event: 'user_logout',
        user_id: caller.user_id,
        ip: caller.ip,
        details: { token_id: caller.token_id },
      });
    });
  }

  /**
   * Changes the secret of the caller's sign-in; its absolute expiry stays. Of concurrent refreshes with one token, one
   * succeeds and the others get `invalid token`. Throws a 403 for API tokens, which have no idle expiry.
   */
  async refresh(caller: Caller): Promise<Issued> {
    const token = newToken();
    return await this.#store.write(async (tx) => {
      const row = await findToken(tx, caller.token_id);
      if (!row || encode(row.hash) !== this.#presented.get(caller)) throw problems.invalidToken();
      if (row.kind !== 'session') throw problems.notAllowed();
      const now = this.#clock.now();
      const idle_expires_at = now + limits.token_idle_ms;
      await updateToken(tx, caller.token_id, { hash: hashToken(token), last_used_at: now, idle_expires_at });
      await this.#audit.record(tx, {
        event: 'token_refreshed',
        user_id: caller.user_id,
        ip: caller.ip,
        details: { token_id: caller.token_id },
      });
      this.#live.changed(tx, [caller.token_id]);
      return { token, expires_in: seconds(now, idle_expires_at, row.expires_at) };
    });
  }

  /** Revokes all tokens of a user except `keep`, including API tokens; returns how many. For password and role changes. */
  async endAll(tx: Tx, user_id: string, keep: string | null = null): Promise<number> {
    const ids = await listTokenIds(tx, user_id);
    await this.#extensions.onTokensRevoked(tx, user_id, keep);
    return this.#end(
      tx,
      ids.filter((id) => id !== keep),
    );
  }

  /** Reloads the user's tokens with the user's new name. */
  async renamed(tx: Tx, user_id: string): Promise<void> {
    this.#live.changed(tx, await listTokenIds(tx, user_id));
  }

  /** The caller's sign-ins, newest first. */
  listSignIns(caller: Caller, request: PageRequest): Promise<Page<SignIn>> {
    return this.#list(caller, 'session', request, (row) => ({
      id: row.id,
      user_agent: row.user_agent,
      ip: row.ip,
      created_at: rfc3339(row.created_at),
      last_used_at: rfc3339(row.last_used_at),
      expires_at: rfc3339(Math.min(row.expires_at ?? Infinity, row.idle_expires_at ?? Infinity)),
      current: row.id === caller.token_id,
    }));
  }

  /** Ends one of the caller's own sign-ins. Throws a 404 for any other token. */
  async endSignIn(caller: Caller, id: string): Promise<void> {
    await this.#store.write(async (tx) => {
      if (!(await this.#owns(tx, caller, 'session', id))) throw problems.sessionNotFound();
      await this.#end(tx, [id]);
      await this.#extensions.onTokenRevoked(tx, id);
      await this.#record(tx, 'session_ended', caller, { token_id: id });
    });
  }

  /** The caller's API tokens, newest first. */
  listApi(caller: Caller, request: PageRequest): Promise<Page<ApiToken>> {
    return this.#list(caller, 'api', request, shapeApi);
  }

  /**
   * Creates a named token, whose secret is only in this result. If a token with this `id` was created within the lifetime of
   * its key, the first response was lost, and the record gets a new secret. Throws a 403 for API tokens, which cannot create
   * others, and a 400 for scopes that the caller's role does not have or agents and teams that the caller cannot see.
   */
  async createApi(caller: Caller, token_request: TokenRequest): Promise<ApiToken & { token: string }> {
    const { scopes, limits: limited } = newGrant(caller.role, token_request);
    const grant = {
      scopes: JSON.stringify(scopes),
      agent_ids: limited && JSON.stringify(limited.agent_ids),
      team_ids: limited && JSON.stringify(limited.team_ids),
    };
    const token = newToken();
    const spare = newId('tok');
    return await this.#store.write(async (tx) => {
      if (!(await this.#owns(tx, caller, 'session', caller.token_id))) throw problems.notAllowed();
      const now = this.#clock.now();
      if (token_request.expires_at !== null && token_request.expires_at <= now) throw problems.expiryPassed();
      const before = token_request.id === undefined ? undefined : await findToken(tx, token_request.id);
      if (before && before.created_at > now - sharedLimits.idempotency_keep_ms) {
        const expected = { name: token_request.name, expires_at: token_request.expires_at, ...grant };
        if (!isSame(before, expected)) throw problems.idempotencyReused();
        await updateToken(tx, before.id, { hash: hashToken(token) });
        this.#live.changed(tx, [before.id]);
        return { ...shapeApi(before), token };
      }
      if ((await countApiTokens(tx, caller.user_id)) >= limits.tokens_per_user)
        throw problems.tooManyTokens();
      if (limited) await refuseUnknown(tx, caller, limited);
      const row = {
        id: before ? spare : (token_request.id ?? spare),
        user_id: caller.user_id,
        name: token_request.name,
        created_at: now,
        last_used_at: now,
        idle_expires_at: null,
        expires_at: token_request.expires_at,
        user_agent: null,
        ip: null,
        password_at: null,
        kind: 'api' as const,
        ...grant,
      };
      await insertToken(tx, { ...row, hash: hashToken(token) });
      const details = { token_id: row.id, name: row.name, expires_at: rfc3339OrNull(row.expires_at) };
      await this.#record(tx, 'api_token_created', caller, { ...details, scopes, ...limited });
      return { ...shapeApi(row), token };
    });
  }

  /** Revokes one of the caller's own API tokens. Throws a 404 for any other token. */
  async deleteApi(caller: Caller, id: string): Promise<void> {
    await this.#store.write(async (tx) => {
      if (!(await this.#owns(tx, caller, 'api', id))) throw problems.tokenNotFound();
      await this.#end(tx, [id]);
      await this.#extensions.onTokenRevoked(tx, id);
      await this.#record(tx, 'api_token_deleted', caller, { token_id: id });
    });
  }

  /** Saves when tokens were last used, including those that are no longer in use. */
  flush(): Promise<void> {
    return this.#live.flush();
  }

  /** Deletes expired tokens; resolves to their number. */
  async sweep(): Promise<number> {
    const now = this.#clock.now();
    await this.flush();
    return await this.#store.write(async (tx) => this.#end(tx, await expiredTokens(tx, now)));
  }

  async #record(
    tx: Tx,
    event: 'session_ended' | 'api_token_created' | 'api_token_deleted',
    { user_id, ip }: Caller,
    details: Record<string, unknown>,
  ): Promise<void> {
    await this.#audit.record(tx, { event, user_id, ip, details });
  }

  async #owns(tx: Tx, caller: Caller, kind: TokenKind, id: string): Promise<boolean> {
    const row = await findToken(tx, id);
    return row?.user_id === caller.user_id && row.kind === kind;
  }

  async #end(tx: Tx, ids: string[]): Promise<number> {
    let ended = 0;
    for (const id of ids) if (await deleteToken(tx, id)) ended++;
    this.#live.changed(tx, ids);
    return ended;
  }

  #list<Item>(
    caller: Caller,
    kind: TokenKind,
    request: PageRequest,
    shape: (row: TokenRow) => Item,
  ): Promise<Page<Item>> {
    const limit =
      request.limit ??
      (request.cursor === undefined ? limits.tokens_per_user : sharedLimits.page_items_default);
    const after = readCursor(request.cursor, 'number', 'string');
    const now = this.#clock.now();
    return this.#store.read(async (reader) => {
      const stored = await listTokens(reader, caller.user_id, kind, { after, limit: limit + 1 });
      const rows = stored.map((row) => ({ ...row, ...this.#live.use(row.id) }));
      const { items, ...rest } = pageOfRows(rows, limit, (row) => [row.created_at, row.id]);
      return { items: items.filter((row) => !isOver(row, now)).map(shape), ...rest };
    });
  }
}

/** For sign-ins, which may do everything that their user's role allows. */
const NO_GRANT = { scopes: null, agent_ids: null, team_ids: null };

/** Generates a token; call it outside of transactions. The prefix lets secret scanners find leaked tokens. */
export function newToken(): string {
  return `svc_${newSecret()}`;
}

function isSame<T extends object>(row: T, expected: Partial<T>): boolean {
  return Object.entries(expected).every(([key, value]) => row[key as keyof T] === value);
}

/** Throws unless the caller can see all of them. */
async function refuseUnknown(reader: Reader, caller: Caller, { agent_ids, team_ids }: Limits): Promise<void> {
  for (const id of agent_ids) {
    const agent = await findAgent(reader, id);
    if (!agent || decide(caller, 'agent.read', await agentResource(reader, agent)) !== 'allow')
      throw invalid(`agent_ids must name agents that you can see: ${id} is unknown`);
  }
  for (const id of team_ids) {
    const team = await findTeam(reader, id);
    if (!team || decide(caller, 'team.read', await teamResource(reader, team)) !== 'allow')
      throw invalid(`team_ids must name teams that you can see: ${id} is unknown`);
  }
}

function shapeApi(row: Omit<TokenRow, 'hash'>): ApiToken {
  const grant = toGrant(row);
  return {
    id: row.id,
    name: row.name ?? '',
    scopes: [...(grant?.scopes ?? [])],
    agent_ids: grant?.limits ? [...grant.limits.agent_ids] : null,
    team_ids: grant?.limits ? [...grant.limits.team_ids] : null,
    created_at: rfc3339(row.created_at),
    last_used_at: row.last_used_at > row.created_at ? rfc3339(row.last_used_at) : null,
    expires_at: rfc3339OrNull(row.expires_at),
  };
}

function isOver(token: { idle_expires_at: number | null; expires_at: number | null }, now: number): boolean {
  return now >= (token.idle_expires_at ?? Infinity) || now >= (token.expires_at ?? Infinity);
}

function seconds(now: number, idle_expires_at: number, expires_at: number | null): number {
  return Math.max(0, Math.floor((Math.min(idle_expires_at, expires_at ?? Infinity) - now) / 1000));
}

function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}

function encode(digest: Uint8Array): string {
  return Buffer.from(digest).toString('base64url');
}
