/**
 * Bearer tokens: opaque, 256 random bits, SHA-256 at rest. `session` tokens come from a sign-in and end when idle or
 * old; `api` tokens are named, and end when told or when they say so. A refresh changes the secret and keeps the
 * record, so that open streams, which are bound to the record's id, stay. Devices that were subscribed to notifications with a
 * token go when somebody ends it; that it grows old does not matter to them.
 */
import { hash } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { rfc3339, rfc3339OrNull } from '../base/clock.ts';
import { newId, newSecret } from '../base/ids.ts';
import { limits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import type { Limits, Scope } from '../domain/grant.ts';
import { type AskedGrant, decide, newGrant } from '../domain/policy.ts';
import { invalid, problems } from '../domain/problem.ts';
import type { Caller } from '../domain/user.ts';
import { findAgent } from '../store/agents.ts';
import { endSubscriptionsOfToken, endSubscriptionsOfUser } from '../store/push.ts';
import type { Reader, Store, Tx } from '../store/store.ts';
import type { Tables } from '../store/tables.ts';
import { findTeam } from '../store/teams.ts';
import type { Audit } from './audit.ts';
import { grantOf, type LiveToken, LiveTokens } from './live-tokens.ts';
import { type Page, type PageRequest, page, readCursor } from './page.ts';
import { agentResource, teamResource } from './resources.ts';

export interface Issued {
  token: string;
  /** Seconds until the token ends when it is not used. */
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
  /** Null, as `team_ids` then: not limited. */
  agent_ids: string[] | null;
  team_ids: string[] | null;
  created_at: string;
  last_used_at: string | null;
  expires_at: string | null;
}

/** What a new API token is to be. */
export interface AskedToken extends AskedGrant {
  /** The one that an idempotency key stands for. */
  id?: string | undefined;
  name: string;
  /** Unix milliseconds; null: it does not expire. */
  expires_at: number | null;
}

export interface Client {
  ip: string | null;
  user_agent: string | null;
}

const TOKEN = /^svc_[A-Za-z0-9_-]{43}$/;

export class Tokens {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #audit: Audit;
  readonly #live: LiveTokens;
  /** The secret (hashed) that each caller came with: a refresh ends exactly that one. */
  readonly #presented = new WeakMap<Caller, string>();

  constructor(deps: { store: Store; clock: Clock; log: Logger; audit: Audit }) {
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#audit = deps.audit;
    this.#live = new LiveTokens(deps);
  }

  /** Who comes with this token. Throws `invalid token` for whatever is malformed, expired or ended. */
  async authenticate(token: string, ip: string | null): Promise<Caller> {
    if (!TOKEN.test(token)) throw problems.invalidToken();
    const digest = hash('sha256', token, 'base64url');
    const live = await this.#live.byDigest(digest);
    const now = this.#clock.now();
    if (!live || isOver(live, now)) {
      if (live) this.#live.forget(live.id);
      throw problems.invalidToken();
    }
    this.#live.touch(live.id, now, ip);
    const caller = {
      user_id: live.user_id,
      username: live.username,
      role: live.role,
      token_id: live.id,
      grant: live.grant,
      ip,
    };
    this.#presented.set(caller, digest);
    return caller;
  }

  /** Whether the token of an open stream still holds; looking does not count as use. */
  async isLive(token_id: string): Promise<boolean> {
    const live = await this.#live.byId(token_id);
    return live !== undefined && !isOver(live, this.#clock.now());
  }

  /**
   * A new session token, in the transaction of the sign-in that was made by a password or a passkey. The least recently
   * used one makes room.
   */
  issue(
    tx: Tx,
    user_id: string,
    token: string,
    client: Client,
    by: 'password' | 'passkey',
  ): Issued & { token_id: string } {
    const now = this.#clock.now();
    const crowd = tx.all(
      tx.sql
        .selectFrom('tokens')
        .select('id')
        .where('user_id', '=', user_id)
        .where('kind', '=', 'session')
        .orderBy('last_used_at', 'desc')
        .limit(limits.tokens_per_user)
        .offset(limits.tokens_per_user - 1),
    );
    this.#end(
      tx,
      crowd.map((row) => row.id),
    );
    const id = newId('tok');
    const expires_at = now + limits.token_absolute_ms;
    const idle_expires_at = now + limits.token_idle_ms;
    tx.run(
      tx.sql.insertInto('tokens').values({
        id,
        user_id,
        kind: 'session',
        hash: digestOf(token),
        name: null,
        user_agent: client.user_agent?.slice(0, limits.user_agent_chars_max) ?? null,
        ip: client.ip,
        created_at: now,
        last_used_at: now,
        idle_expires_at,
        expires_at,
        password_at: by === 'password' ? now : null,
        ...NO_GRANT,
      }),
    );
    return { token_id: id, token, expires_in: seconds(now, idle_expires_at, expires_at) };
  }

  /**
   * Whether the caller's sign-in has shown the password within the last ten minutes. Throws `invalid token` when it has
   * ended, and a 403 for API tokens, which never show one.
   */
  hasShownPassword(reader: Reader, caller: Caller): boolean {
    const row = rowOf(reader, caller.token_id);
    if (!row) throw problems.invalidToken();
    if (row.kind !== 'session') throw problems.notAllowed();
    return row.password_at !== null && row.password_at > this.#clock.now() - limits.password_recent_ms;
  }

  /** Notes that the sign-in of this token has just shown the password. */
  showedPassword(tx: Tx, token_id: string): void {
    const set = { password_at: this.#clock.now() };
    tx.run(tx.sql.updateTable('tokens').set(set).where('id', '=', token_id));
  }

  async logout(caller: Caller): Promise<void> {
    await this.#store.write((tx) => {
      if (this.#end(tx, [caller.token_id]) === 0) throw problems.invalidToken();
      endSubscriptionsOfToken(tx, caller.token_id);
      this.#audit.record(tx, {
        event: 'user_logout',
        user_id: caller.user_id,
        ip: caller.ip,
        details: { token_id: caller.token_id },
      });
    });
  }

  /**
   * A new secret for the caller's sign-in; the absolute end stays. Of two refreshes with one token one wins, the other
   * is told `invalid token`. API tokens have no idle end and are not refreshed: 403.
   */
  async refresh(caller: Caller): Promise<Issued> {
    const token = newToken();
    return await this.#store.write((tx) => {
      const row = tx.get(
        tx.sql.selectFrom('tokens').select(['kind', 'hash', 'expires_at']).where('id', '=', caller.token_id),
      );
      if (!row || encode(row.hash) !== this.#presented.get(caller)) throw problems.invalidToken();
      if (row.kind !== 'session') throw problems.notAllowed();
      const now = this.#clock.now();
      const idle_expires_at = now + limits.token_idle_ms;
      tx.run(
        tx.sql
          .updateTable('tokens')
          .set({ hash: digestOf(token), last_used_at: now, idle_expires_at })
          .where('id', '=', caller.token_id),
      );
      this.#audit.record(tx, {
        event: 'token_refreshed',
        user_id: caller.user_id,
        ip: caller.ip,
        details: { token_id: caller.token_id },
      });
      this.#live.changed(tx, [caller.token_id]);
      return { token, expires_in: seconds(now, idle_expires_at, row.expires_at) };
    });
  }

  /** Ends all tokens of a user but `keep`, API tokens too; answers how many. For password and role changes. */
  endAll(tx: Tx, user_id: string, keep: string | null = null): number {
    const rows = tx.all(tx.sql.selectFrom('tokens').select('id').where('user_id', '=', user_id));
    endSubscriptionsOfUser(tx, user_id, keep);
    return this.#end(
      tx,
      rows.map((row) => row.id).filter((id) => id !== keep),
    );
  }

  /** The user's tokens stay and are read anew, with the user's new name. */
  renamed(tx: Tx, user_id: string): void {
    const rows = tx.all(tx.sql.selectFrom('tokens').select('id').where('user_id', '=', user_id));
    this.#live.changed(
      tx,
      rows.map((row) => row.id),
    );
  }

  /** Where the caller is signed in, newest first. */
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

  async endSignIn(caller: Caller, id: string): Promise<void> {
    await this.#store.write((tx) => {
      if (!this.#owns(tx, caller, 'session', id)) throw problems.sessionNotFound();
      this.#end(tx, [id]);
      endSubscriptionsOfToken(tx, id);
      this.#record(tx, 'session_ended', caller, { token_id: id });
    });
  }

  listApi(caller: Caller, request: PageRequest): Promise<Page<ApiToken>> {
    return this.#list(caller, 'api', request, shapeApi);
  }

  /**
   * A named token, shown in this answer only. When `id` was made within the day of its key, the first answer was lost, and
   * the record gets a new secret. Throws a 403 for API tokens, which cannot make others, and a 400 for scopes that the
   * caller's role does not have, and for agents and teams that the caller does not see.
   */
  async createApi(caller: Caller, wanted: AskedToken): Promise<ApiToken & { token: string }> {
    const { scopes, limits: limited } = newGrant(caller.role, wanted);
    const grant = {
      scopes: JSON.stringify(scopes),
      agent_ids: limited && JSON.stringify(limited.agent_ids),
      team_ids: limited && JSON.stringify(limited.team_ids),
    };
    const token = newToken();
    const spare = newId('tok');
    return await this.#store.write((tx) => {
      if (!this.#owns(tx, caller, 'session', caller.token_id)) throw problems.notAllowed();
      const now = this.#clock.now();
      if (wanted.expires_at !== null && wanted.expires_at <= now) throw problems.expiryPassed();
      const before = wanted.id === undefined ? undefined : rowOf(tx, wanted.id);
      if (before && before.created_at > now - limits.idempotency_keep_ms) {
        const asked = { name: wanted.name, expires_at: wanted.expires_at, ...grant };
        if (!isSame(before, asked)) throw problems.idempotencyReused();
        tx.run(
          tx.sql
            .updateTable('tokens')
            .set({ hash: digestOf(token) })
            .where('id', '=', before.id),
        );
        this.#live.changed(tx, [before.id]);
        return { ...shapeApi(before), token };
      }
      if (this.#count(tx, caller.user_id) >= limits.tokens_per_user) throw problems.tooManyTokens();
      if (limited) refuseUnknown(tx, caller, limited);
      const row = {
        id: before ? spare : (wanted.id ?? spare),
        user_id: caller.user_id,
        name: wanted.name,
        created_at: now,
        last_used_at: now,
        idle_expires_at: null,
        expires_at: wanted.expires_at,
        user_agent: null,
        ip: null,
        password_at: null,
        kind: 'api' as const,
        ...grant,
      };
      tx.run(tx.sql.insertInto('tokens').values({ ...row, hash: digestOf(token) }));
      const details = { token_id: row.id, name: row.name, expires_at: rfc3339OrNull(row.expires_at) };
      this.#record(tx, 'api_token_created', caller, { ...details, scopes, ...limited });
      return { ...shapeApi(row), token };
    });
  }

  async deleteApi(caller: Caller, id: string): Promise<void> {
    await this.#store.write((tx) => {
      if (!this.#owns(tx, caller, 'api', id)) throw problems.tokenNotFound();
      this.#end(tx, [id]);
      endSubscriptionsOfToken(tx, id);
      this.#record(tx, 'api_token_deleted', caller, { token_id: id });
    });
  }

  /** Writes down when tokens were last used: happens about once a minute, and at the end of the service. */
  flush(): Promise<void> {
    return this.#live.flush();
  }

  /** Deletes tokens that are over. */
  async sweep(): Promise<number> {
    const now = this.#clock.now();
    await this.flush();
    return await this.#store.write((tx) => {
      const rows = tx.all(
        tx.sql
          .selectFrom('tokens')
          .select('id')
          .where((where) => where.or([where('expires_at', '<=', now), where('idle_expires_at', '<=', now)])),
      );
      return this.#end(
        tx,
        rows.map((row) => row.id),
      );
    });
  }

  #record(
    tx: Tx,
    event: 'session_ended' | 'api_token_created' | 'api_token_deleted',
    { user_id, ip }: Caller,
    details: Record<string, unknown>,
  ): void {
    this.#audit.record(tx, { event, user_id, ip, details });
  }

  #owns(tx: Tx, caller: Caller, kind: LiveToken['kind'], id: string): boolean {
    const row = rowOf(tx, id);
    return row?.user_id === caller.user_id && row.kind === kind;
  }

  #count(tx: Tx, user_id: string): number {
    const query = tx.sql.selectFrom('tokens').where('user_id', '=', user_id).where('kind', '=', 'api');
    return Number(tx.get(query.select((where) => where.fn.countAll().as('n')))!.n);
  }

  #end(tx: Tx, ids: string[]): number {
    let changes = 0;
    for (const id of ids) changes += tx.run(tx.sql.deleteFrom('tokens').where('id', '=', id)).changes;
    this.#live.changed(tx, ids);
    return changes;
  }

  #list<Item>(
    caller: Caller,
    kind: LiveToken['kind'],
    request: PageRequest,
    shape: (row: TokenRow) => Item,
  ): Promise<Page<Item>> {
    const limit =
      request.limit ?? (request.cursor === undefined ? limits.tokens_per_user : limits.page_items_default);
    const after = readCursor(request.cursor, 'number', 'string');
    const now = this.#clock.now();
    return this.#store.read((reader) => {
      let query = reader.sql
        .selectFrom('tokens')
        .selectAll()
        .where('user_id', '=', caller.user_id)
        .where('kind', '=', kind)
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc');
      if (after)
        query = query.where(({ eb, refTuple, tuple }) =>
          eb(refTuple('created_at', 'id'), '<', tuple(...after)),
        );
      const rows = reader.all(query.limit(limit + 1)).map((row) => ({ ...row, ...this.#live.use(row.id) }));
      const { items, ...rest } = page(
        rows,
        limit,
        (row) => row,
        (row) => [row.created_at, row.id],
      );
      return { items: items.filter((row) => !isOver(row, now)).map(shape), ...rest };
    });
  }
}

type TokenRow = Omit<Tables['tokens'], 'user_id' | 'hash'>;

/** Of sign-ins, which may do whatever their user's role allows. */
const NO_GRANT = { scopes: null, agent_ids: null, team_ids: null };

/** A new token, to be made outside of transactions. The prefix lets scanners find leaked ones. */
export function newToken(): string {
  return `svc_${newSecret()}`;
}

function rowOf(reader: Reader, id: string) {
  return reader.get(reader.sql.selectFrom('tokens').selectAll().where('id', '=', id));
}

function isSame<T extends object>(row: T, asked: Partial<T>): boolean {
  return Object.entries(asked).every(([key, value]) => row[key as keyof T] === value);
}

/** Throws unless the caller sees all of them. */
function refuseUnknown(reader: Reader, caller: Caller, { agent_ids, team_ids }: Limits): void {
  for (const id of agent_ids) {
    const agent = findAgent(reader, id);
    if (!agent || decide(caller, 'agent.read', agentResource(reader, agent)) !== 'allow')
      throw invalid(`agent_ids must name agents that you can see: ${id} is unknown`);
  }
  for (const id of team_ids) {
    const team = findTeam(reader, id);
    if (!team || decide(caller, 'team.read', teamResource(reader, team)) !== 'allow')
      throw invalid(`team_ids must name teams that you can see: ${id} is unknown`);
  }
}

function shapeApi(row: TokenRow): ApiToken {
  const grant = grantOf(row);
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

function digestOf(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}

function encode(digest: Uint8Array): string {
  return Buffer.from(digest).toString('base64url');
}
