/**
 * Tokens in memory, because every request asks for one. Holds what the database holds, and when each was last used,
 * which is written down about once a minute. A transaction that ends or changes a token takes it out of here right
 * after its commit, before anybody hears of the commit; a read that began earlier cannot bring it back.
 */
import type { Clock } from '../base/clock.ts';
import { limits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import type { Grant, Scope } from '../domain/grant.ts';
import type { Role } from '../domain/user.ts';
import type { Reader, Store, Tx } from '../store/store.ts';
import type { Tables } from '../store/tables.ts';

export interface LiveToken {
  id: string;
  /** SHA-256 of the secret, base64url. */
  digest: string;
  user_id: string;
  username: string;
  role: Role;
  kind: 'session' | 'api';
  /** Null for sign-ins: everything that the role allows. */
  grant: Grant | null;
  last_used_at: number;
  idle_expires_at: number | null;
  expires_at: number | null;
  ip: string | null;
}

interface Kept extends LiveToken {
  written_at: number;
}

export class LiveTokens {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #byDigest = new Map<string, Kept>();
  readonly #byId = new Map<string, Kept>();
  readonly #used = new Map<string, Kept>();
  /** Moves with every commit that ends or changes tokens: rows read before it may be stale. */
  #generation = 0;

  constructor(deps: { store: Store; clock: Clock; log: Logger }) {
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#log = deps.log;
  }

  async byDigest(digest: string): Promise<LiveToken | undefined> {
    return this.#byDigest.get(digest) ?? (await this.#load('hash', Buffer.from(digest, 'base64url')));
  }

  async byId(id: string): Promise<LiveToken | undefined> {
    return this.#byId.get(id) ?? (await this.#load('id', id));
  }

  /** When a token was last used, as far as it is not written down yet. */
  use(id: string): Pick<LiveToken, 'last_used_at' | 'idle_expires_at'> | undefined {
    const kept = this.#byId.get(id);
    return kept && { last_used_at: kept.last_used_at, idle_expires_at: kept.idle_expires_at };
  }

  touch(id: string, now: number, ip: string | null): void {
    const kept = this.#byId.get(id);
    if (!kept) return;
    kept.last_used_at = now;
    kept.ip = ip;
    if (kept.kind === 'session') kept.idle_expires_at = now + limits.token_idle_ms;
    this.#used.set(id, kept);
    if (now - kept.written_at >= limits.token_touch_ms) this.#flushSoon();
  }

  /** Called in the transaction that ends or changes these tokens. */
  changed(tx: Tx, ids: string[]): void {
    if (ids.length === 0) return;
    tx.afterCommit(() => {
      this.#generation += 1;
      for (const id of ids) this.forget(id);
    });
  }

  forget(id: string): void {
    const kept = this.#byId.get(id);
    if (!kept) return;
    this.#byId.delete(id);
    this.#byDigest.delete(kept.digest);
    this.#used.delete(id);
  }

  async flush(): Promise<void> {
    const used = [...this.#used.values()];
    this.#used.clear();
    if (used.length === 0) return;
    const now = this.#clock.now();
    for (const kept of used) kept.written_at = now;
    await this.#store.write((tx) => {
      for (const { id, last_used_at, idle_expires_at, ip, kind } of used)
        tx.run(
          tx.sql
            .updateTable('tokens')
            .set({ last_used_at, idle_expires_at, ...(kind === 'session' && { ip }) })
            .where('id', '=', id),
        );
    });
  }

  #flushSoon(): void {
    this.flush().catch((error: unknown) => this.#log.error({ err: error }, 'token use was not written down'));
  }

  async #load(column: 'hash' | 'id', value: Uint8Array | string): Promise<Kept | undefined> {
    for (;;) {
      const generation = this.#generation;
      const row = await this.#store.read((reader) => find(reader, column, value));
      if (generation !== this.#generation) continue;
      if (!row) return undefined;
      const known = this.#byId.get(row.id);
      if (known) return known;
      const { hash, scopes, agent_ids, team_ids, ...rest } = row;
      const grant = grantOf({ kind: row.kind, scopes, agent_ids, team_ids });
      const digest = Buffer.from(hash).toString('base64url');
      const kept = { ...rest, grant, digest, written_at: row.last_used_at };
      this.#keep(kept);
      return kept;
    }
  }

  #keep(kept: Kept): void {
    const oldest = this.#byId.size >= limits.tokens_cached_max ? this.#byId.values().next().value : undefined;
    if (oldest) {
      if (this.#used.has(oldest.id)) this.#flushSoon();
      this.#byId.delete(oldest.id);
      this.#byDigest.delete(oldest.digest);
    }
    this.#byId.set(kept.id, kept);
    this.#byDigest.set(kept.digest, kept);
  }
}

function find(reader: Reader, column: 'hash' | 'id', value: Uint8Array | string) {
  return reader.get(
    reader.sql
      .selectFrom('tokens')
      .innerJoin('users', 'users.id', 'tokens.user_id')
      .select(['tokens.id', 'tokens.hash', 'tokens.user_id', 'tokens.kind', 'tokens.ip'])
      .select(['tokens.scopes', 'tokens.agent_ids', 'tokens.team_ids'])
      .select(['tokens.last_used_at', 'tokens.idle_expires_at', 'tokens.expires_at'])
      .select(['users.username', 'users.role'])
      .where(`tokens.${column}`, '=', value),
  );
}

/** Null for sign-ins. An API token without scopes may do nothing. */
export function grantOf({
  kind,
  scopes,
  agent_ids,
  team_ids,
}: Pick<Tables['tokens'], 'kind' | 'scopes' | 'agent_ids' | 'team_ids'>): Grant | null {
  if (kind === 'session') return null;
  const [agents, teams] = [listOf(agent_ids), listOf(team_ids)];
  return {
    scopes: (listOf(scopes) as Scope[] | null) ?? [],
    limits: agents || teams ? { agent_ids: agents ?? [], team_ids: teams ?? [] } : null,
  };
}

function listOf(json: string | null): string[] | null {
  return json === null ? null : (JSON.parse(json) as string[]);
}
