/**
 * Keeps tokens in memory, because every request needs one. Caches database rows and the time of last use, which is written
 * to the database about once a minute. A transaction that revokes or changes a token removes it from the cache right after
 * its commit, before anything else observes the commit. A read that began earlier cannot put it back.
 */
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { Grant, Scope } from '../../core/grant.ts';
import type { Store, Tx } from '../../store/store.ts';
import type { Role } from '../accounts/rules.ts';
import { limits } from './limits.ts';
import { saveUse, type TokenKind, type TokenRow, tokenOfUser } from './queries.ts';

export interface LiveToken {
  id: string;
  /** SHA-256 of the secret, base64url. */
  digest: string;
  user_id: string;
  username: string;
  role: Role;
  kind: TokenKind;
  /** Null for sign-ins, which may do everything that the role allows. */
  grant: Grant | null;
  last_used_at: number;
  idle_expires_at: number | null;
  expires_at: number | null;
  ip: string | null;
}

interface CachedToken extends LiveToken {
  written_at: number;
}

export class LiveTokens {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #byDigest = new Map<string, CachedToken>();
  readonly #byId = new Map<string, CachedToken>();
  readonly #used = new Map<string, CachedToken>();
  /** Incremented by every commit that revokes or changes tokens. Rows that were read before may be stale. */
  #generation = 0;

  constructor(deps: { store: Store; clock: Clock; log: Logger }) {
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#log = deps.log;
    deps.store.wakes.on('tokens', (id) => this.#changed(id));
  }

  /** Undefined for an unknown token. Also returns expired tokens; so does `byId`. `digest`: SHA-256 of the secret, base64url. */
  byDigest(digest: string): LiveToken | Promise<LiveToken | undefined> {
    return this.#byDigest.get(digest) ?? this.#load({ hash: Buffer.from(digest, 'base64url') });
  }

  async byId(id: string): Promise<LiveToken | undefined> {
    return this.#byId.get(id) ?? (await this.#load({ id }));
  }

  /** The last use of a token if it has not been written to the database yet. */
  use(id: string): Pick<LiveToken, 'last_used_at' | 'idle_expires_at'> | undefined {
    const token = this.#byId.get(id);
    return token && { last_used_at: token.last_used_at, idle_expires_at: token.idle_expires_at };
  }

  /** Records a use, in memory at first. `now`: Unix milliseconds. */
  touch(id: string, now: number, ip: string | null): void {
    const token = this.#byId.get(id);
    if (!token) return;
    token.last_used_at = now;
    token.ip = ip;
    if (token.kind === 'session') token.idle_expires_at = now + limits.token_idle_ms;
    this.#used.set(id, token);
    if (now - token.written_at >= limits.token_touch_ms) this.#flushSoon();
  }

  /** Must be called in the transaction that revokes or changes these tokens. */
  changed(tx: Tx, ids: string[]): void {
    for (const id of ids) tx.wake('tokens', id);
  }

  /** Removes the token from the cache. The next request reads it from the database. */
  forget(id: string): void {
    const token = this.#byId.get(id);
    if (!token) return;
    this.#byId.delete(id);
    this.#byDigest.delete(token.digest);
    this.#used.delete(id);
  }

  /** Writes the times of last use to the database. */
  async flush(): Promise<void> {
    const used = [...this.#used.values()];
    this.#used.clear();
    if (used.length === 0) return;
    const now = this.#clock.now();
    for (const token of used) token.written_at = now;
    await this.#store.write(async (tx) => {
      for (const { id, last_used_at, idle_expires_at, ip, kind } of used)
        await saveUse(tx, id, { last_used_at, idle_expires_at, ...(kind === 'session' && { ip }) });
    });
  }

  #flushSoon(): void {
    this.flush().catch((error: unknown) =>
      this.#log.error({ err: error }, 'cannot save the last use of tokens'),
    );
  }

  /** Null: any token may have changed. */
  #changed(id: string | null): void {
    this.#generation += 1;
    for (const known of id === null ? [...this.#byId.keys()] : [id]) this.forget(known);
  }

  async #load(by: { hash: Uint8Array } | { id: string }): Promise<CachedToken | undefined> {
    for (;;) {
      const generation = this.#generation;
      const row = await this.#store.read((reader) => tokenOfUser(reader, by));
      if (generation !== this.#generation) continue;
      if (!row) return undefined;
      const known = this.#byId.get(row.id);
      if (known) return known;
      const { hash, scopes, agent_ids, team_ids, ...rest } = row;
      const grant = toGrant({ kind: row.kind, scopes, agent_ids, team_ids });
      const digest = Buffer.from(hash).toString('base64url');
      const token = { ...rest, grant, digest, written_at: row.last_used_at };
      this.#keep(token);
      return token;
    }
  }

  #keep(token: CachedToken): void {
    const oldest = this.#byId.size >= limits.tokens_cached_max ? this.#byId.values().next().value : undefined;
    if (oldest) {
      if (this.#used.has(oldest.id)) this.#flushSoon();
      this.#byId.delete(oldest.id);
      this.#byDigest.delete(oldest.digest);
    }
    this.#byId.set(token.id, token);
    this.#byDigest.set(token.digest, token);
  }
}

/** Null for sign-ins. An API token without scopes may do nothing. */
export function toGrant({
  kind,
  scopes,
  agent_ids,
  team_ids,
}: Pick<TokenRow, 'kind' | 'scopes' | 'agent_ids' | 'team_ids'>): Grant | null {
  if (kind === 'session') return null;
  const [agents, teams] = [parseList(agent_ids), parseList(team_ids)];
  return {
    scopes: (parseList(scopes) as Scope[] | null) ?? [],
    limits: agents || teams ? { agent_ids: agents ?? [], team_ids: teams ?? [] } : null,
  };
}

function parseList(json: string | null): string[] | null {
  return json === null ? null : (JSON.parse(json) as string[]);
}
