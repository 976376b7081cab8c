/**
 * The tokens that nodes join with. The one of the configuration is good for any number of nodes. Without it the plane
 * makes them: one hour, one node, no more. Their text follows from an id and the plane's key, so that the database
 * alone joins nobody. A spent token still lets the same node try again until its hour is over: an answer may get lost.
 */
import { createHmac } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { rfc3339 } from '../../base/clock.ts';
import { newSecret } from '../../base/ids.ts';
import { limits } from '../../base/limits.ts';
import { nodeToml } from '../../contract/node-toml.ts';
import { problems } from '../../domain/problem.ts';
import type { Caller } from '../../domain/user.ts';
import type { Reader, Store, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';
import type { Audit } from '../audit.ts';

export interface BootstrapDeps {
  store: Store;
  clock: Clock;
  audit: Audit;
  /** 32 bytes, see `secret-key.ts`. */
  key: Uint8Array;
  /** `internal_grpc.bootstrap.token`. */
  configured: string | null;
}

export interface ShownToken {
  token: string;
  toml: string;
  /** RFC 3339; null for the configured one. */
  expires_at: string | null;
}

/** A token that a node may prove itself with. */
export interface UsableToken {
  /** For `spend`; null for the configured one. */
  id: string | null;
  token: string;
}

type Row = Tables['bootstrap_tokens'];

export class Bootstrap {
  readonly #deps: BootstrapDeps;

  constructor(deps: BootstrapDeps) {
    this.#deps = deps;
  }

  /** The token for the next node; a fresh one when the last is spent or near its end. */
  async show(caller: Caller): Promise<ShownToken> {
    const { store, audit, configured } = this.#deps;
    const id = newSecret(12);
    return store.write((tx) => {
      const row = configured === null ? (this.#newest(tx) ?? this.#make(tx, id)) : null;
      const details = { token_id: row?.id ?? null, configured: row === null };
      audit.record(tx, { event: 'bootstrap_token_shown', user_id: caller.user_id, ip: caller.ip, details });
      return this.#shown(row);
    });
  }

  /** A fresh token; every one before it ends, also for a node that has begun to join with it. */
  async rotate(caller: Caller): Promise<ShownToken> {
    const { store, audit, configured } = this.#deps;
    if (configured !== null) throw problems.bootstrapConfigured();
    const id = newSecret(12);
    return store.write((tx) => {
      tx.run(tx.sql.deleteFrom('bootstrap_tokens'));
      const row = this.#make(tx, id);
      const { user_id, ip } = caller;
      audit.record(tx, { event: 'bootstrap_token_rotated', user_id, ip, details: { token_id: id } });
      return this.#shown(row);
    });
  }

  /** The tokens that this node may join with now, newest first: often one, none when all are spent or over. */
  async usable(node_id: string): Promise<UsableToken[]> {
    const { store, clock, configured } = this.#deps;
    if (configured !== null) return [{ id: null, token: configured }];
    const rows = await store.read((reader) => live(reader, clock.now()));
    return rows
      .filter(({ spent_by }) => spent_by === null || spent_by === node_id)
      .map(({ id }) => ({ id, token: this.#text(id) }));
  }

  /**
   * Before a certificate is given for a token: true when it is this node's from now on. False when it went to another
   * node, is over, or was rotated away.
   */
  async spend(id: string | null, node_id: string): Promise<boolean> {
    const { store, clock, configured } = this.#deps;
    if (id === null) return configured !== null;
    return store.write((tx) => {
      const now = clock.now();
      const row = live(tx, now).find((one) => one.id === id);
      if (!row || (row.spent_by !== null && row.spent_by !== node_id)) return false;
      if (row.spent_by === null) {
        const spent = tx.sql.updateTable('bootstrap_tokens').set({ spent_at: now, spent_by: node_id });
        tx.run(spent.where('id', '=', id));
      }
      return true;
    });
  }

  #newest(tx: Tx): Row | undefined {
    const until = this.#deps.clock.now() + limits.bootstrap_token_spare_ms;
    return live(tx, until).find(({ spent_by }) => spent_by === null);
  }

  #make(tx: Tx, id: string): Row {
    const now = this.#deps.clock.now();
    tx.run(tx.sql.deleteFrom('bootstrap_tokens').where('expires_at', '<=', now));
    const row: Row = {
      id,
      created_at: now,
      expires_at: now + limits.bootstrap_token_ms,
      spent_at: null,
      spent_by: null,
    };
    tx.run(tx.sql.insertInto('bootstrap_tokens').values(row));
    return row;
  }

  #shown(row: Row | null): ShownToken {
    const token = row === null ? this.#deps.configured! : this.#text(row.id);
    return { token, toml: nodeToml({ token }), expires_at: row === null ? null : rfc3339(row.expires_at) };
  }

  #text(id: string): string {
    return createHmac('sha256', this.#deps.key).update(`bootstrap:${id}`).digest('base64url');
  }
}

/** Tokens that are not over at `at_ms`, newest first. */
function live(reader: Reader, at_ms: number): Row[] {
  return reader.all(
    reader.sql
      .selectFrom('bootstrap_tokens')
      .selectAll()
      .where('expires_at', '>', at_ms)
      .orderBy('expires_at', 'desc')
      .orderBy('id'),
  );
}
