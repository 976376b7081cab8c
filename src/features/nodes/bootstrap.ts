/**
 * The bootstrap tokens with which nodes join. A configured token is valid for any number of nodes. Without one, the plane
 * creates tokens that are valid for one hour and one node. Their text derives from an id and the plane's key, so the
 * database alone is not enough to let a node join. The node that used a token may use it again until the hour is over,
 * because a response may get lost.
 */
import { createHmac } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { rfc3339 } from '../../base/clock.ts';
import { newSecret } from '../../base/ids.ts';
import { nodeToml } from '../../core/node-toml.ts';
import { problems } from '../../core/problem.ts';
import type { Store, Tx } from '../../store/store.ts';
import type { Caller } from '../accounts/rules.ts';
import type { Audit } from '../audit/service.ts';
import { limits } from './limits.ts';
import {
  type BootstrapRow,
  deleteBootstrapTokens,
  insertBootstrapToken,
  liveBootstrapTokens,
  spendBootstrapToken,
} from './queries.ts';

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
  /** RFC 3339; null for the configured token. */
  expires_at: string | null;
}

/** A token that a node may use now. */
export interface UsableToken {
  /** The id to pass to `spend`; null for the configured token. */
  id: string | null;
  token: string;
}

export class Bootstrap {
  readonly #deps: BootstrapDeps;

  constructor(deps: BootstrapDeps) {
    this.#deps = deps;
  }

  /** The token for the next node; creates one if the last one is used or about to expire. */
  async show(caller: Caller): Promise<ShownToken> {
    const { store, audit, configured } = this.#deps;
    const id = newSecret(12);
    return store.write(async (tx) => {
      const row = configured === null ? ((await this.#newest(tx)) ?? (await this.#make(tx, id))) : null;
      const details = { token_id: row?.id ?? null, configured: row === null };
      await audit.record(tx, {
        event: 'bootstrap_token_shown',
        user_id: caller.user_id,
        ip: caller.ip,
        details,
      });
      return this.#shown(row);
    });
  }

  /** Creates a token. All earlier ones become invalid, even for a node that has started to join. */
  async rotate(caller: Caller): Promise<ShownToken> {
    const { store, audit, configured } = this.#deps;
    if (configured !== null) throw problems.bootstrapConfigured();
    const id = newSecret(12);
    return store.write(async (tx) => {
      await deleteBootstrapTokens(tx);
      const row = await this.#make(tx, id);
      const { user_id, ip } = caller;
      await audit.record(tx, { event: 'bootstrap_token_rotated', user_id, ip, details: { token_id: id } });
      return this.#shown(row);
    });
  }

  /** The tokens with which this node may join now, newest first. Usually one; none if all are used or expired. */
  async usable(node_id: string): Promise<UsableToken[]> {
    const { store, clock, configured } = this.#deps;
    if (configured !== null) return [{ id: null, token: configured }];
    const rows = await store.read((reader) => liveBootstrapTokens(reader, clock.now()));
    return rows
      .filter(({ spent_by }) => spent_by === null || spent_by === node_id)
      .map(({ id }) => ({ id, token: this.#text(id) }));
  }

  /**
   * Assigns a token to a node before the node gets a certificate. Returns true if it belongs to this node, and false if
   * another node has used it or it has expired or been rotated.
   */
  async spend(id: string | null, node_id: string): Promise<boolean> {
    const { store, clock, configured } = this.#deps;
    if (id === null) return configured !== null;
    return store.write(async (tx) => {
      const now = clock.now();
      const row = (await liveBootstrapTokens(tx, now)).find((token) => token.id === id);
      if (!row || (row.spent_by !== null && row.spent_by !== node_id)) return false;
      if (row.spent_by === null) await spendBootstrapToken(tx, id, node_id);
      return true;
    });
  }

  async #newest(tx: Tx): Promise<BootstrapRow | undefined> {
    const until = this.#deps.clock.now() + limits.bootstrap_token_spare_ms;
    return (await liveBootstrapTokens(tx, until)).find(({ spent_by }) => spent_by === null);
  }

  async #make(tx: Tx, id: string): Promise<BootstrapRow> {
    const now = this.#deps.clock.now();
    await deleteBootstrapTokens(tx, now);
    const row: BootstrapRow = {
      id,
      created_at: now,
      expires_at: now + limits.bootstrap_token_ms,
      spent_by: null,
    };
    await insertBootstrapToken(tx, row);
    return row;
  }

  #shown(row: BootstrapRow | null): ShownToken {
    const token = row === null ? this.#deps.configured! : this.#text(row.id);
    return { token, toml: nodeToml({ token }), expires_at: row === null ? null : rfc3339(row.expires_at) };
  }

  #text(id: string): string {
    return createHmac('sha256', this.#deps.key).update(`bootstrap:${id}`).digest('base64url');
  }
}
