/**
 * A PostgreSQL database as the original or the copy of a transfer, in one transaction. The caller has the claim on the
 * database, and no other plane gets it before the transaction ends.
 */
import type pg from 'pg';
import { silentLog } from '../../base/log.ts';
import { limits as store_limits } from '../limits.ts';
import { MOVE_KEY, type MoveState, PLACE_KEY } from '../move-state.ts';
import { DATA_DIR_KEY } from '../plane-id.ts';
import type { PostgresServer } from '../store.ts';
import {
  BLOCKS,
  columnList,
  quoted,
  type Row,
  type TransferTable,
  transferTables,
} from '../transfer/tables.ts';
import type { TransferSource, TransferTarget } from '../transfer/transfer.ts';
import { toParameter, types } from './dialect.ts';
import { PLACE } from './history.ts';
import { openClient } from './open-client.ts';
import { Server } from './server.ts';

/**
 * A snapshot for the whole transfer, on a connection that may be silent while the other database works. A new claim changes the
 * gate's lock, see claim.ts.
 */
const OPENING = `
  BEGIN ISOLATION LEVEL REPEATABLE READ;
  SET LOCAL idle_in_transaction_session_timeout = 0;
  SET LOCAL statement_timeout = 0;
  SET LOCAL enable_sort = off;
  LOCK TABLE gate IN ROW SHARE MODE`;

export class PostgresCopy implements TransferSource, TransferTarget {
  readonly #client: pg.Client;

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  /** The caller closes it. Throws the driver's error. */
  static async open(server: PostgresServer): Promise<PostgresCopy> {
    const client = await openClient(server, new Server({ ...server, log: silentLog }), { types });
    try {
      await client.query(OPENING);
      return new PostgresCopy(client);
    } catch (error) {
      await client.end().catch(() => {});
      throw error;
    }
  }

  async *batches(table: TransferTable): AsyncGenerator<readonly Row[]> {
    const is_blocks = table.name === BLOCKS;
    // A block without a segment was left by a seal that was interrupted.
    const recorded = `WHERE EXISTS (SELECT FROM segments
      WHERE segments.agent_num = segment_blocks.agent_num AND segments.path = segment_blocks.path)
      ORDER BY agent_num, path, at`;
    const rows_max = is_blocks ? store_limits.transfer_blocks : store_limits.transfer_rows;
    const query = `SELECT ${columnList(table)} FROM ${quoted(table.name)} ${is_blocks ? recorded : ''}`;
    await this.#client.query(`DECLARE copied NO SCROLL CURSOR FOR ${query}`);
    for (;;) {
      const { rows } = await this.#client.query<unknown[]>({
        text: `FETCH ${rows_max} FROM copied`,
        rowMode: 'array',
      });
      yield rows;
      if (rows.length < rows_max) break;
    }
    await this.#client.query('CLOSE copied');
  }

  stored(value: unknown): unknown {
    return typeof value === 'string' ? toParameter(value) : value;
  }

  async insert(table: TransferTable, rows: readonly Row[]): Promise<void> {
    const { length } = table.columns;
    const sets = rows.map(
      (_, row) => `(${table.columns.map((__, at) => `$${row * length + at + 1}`).join()})`,
    );
    const text = `INSERT INTO ${quoted(table.name)} (${columnList(table)}) VALUES ${sets.join()}`;
    await this.#client.query(text, rows.flat().map(toParameter));
  }

  async lastNumbers(): Promise<Map<string, number>> {
    const last = new Map<string, number>();
    for (const { table, column, sequence } of await this.#numbered()) {
      const { rows } = await this.#client.query<{ number: number }>(
        `SELECT greatest(pg_sequence_last_value('${sequence}'), max(${column})) AS number FROM ${table}`,
      );
      last.set(table, rows[0]!.number ?? 0);
    }
    return last;
  }

  async continueNumbers(last: ReadonlyMap<string, number>): Promise<void> {
    const known = await this.lastNumbers();
    for (const { table, sequence } of await this.#numbered()) {
      const number = Math.max(last.get(table) ?? 0, known.get(table) ?? 0);
      // Not RESTART: readers of settled numbers need a last value.
      if (number > 0) await this.#client.query(`SELECT setval('${sequence}', ${number})`);
    }
  }

  /** Whether no table has a row. */
  async isEmpty(): Promise<boolean> {
    const conditions = transferTables().map(({ name }) => `EXISTS (SELECT FROM ${quoted(name)})`);
    const { rows } = await this.#client.query<{ found: number }>(
      `SELECT ${conditions.join(' OR ')} AS found`,
    );
    return rows[0]!.found === 0;
  }

  /** Whether a move of the data directory with this fingerprint was interrupted before the data directory used the copy. */
  async isUnfinishedMove(data_dir: string): Promise<boolean> {
    const { rows } = await this.#client.query<{ key: string; value: string }>('SELECT key, value FROM meta');
    const meta = new Map(rows.map(({ key, value }) => [key, value]));
    const arriving: MoveState = 'arriving';
    return meta.get(MOVE_KEY) === arriving && meta.get(DATA_DIR_KEY) === data_dir;
  }

  /**
   * Commits the copy for the data directory with this fingerprint. The database is recorded to be where it is now, so that the
   * numbers of events continue without a gap. Planes refuse it until `setMoveState`.
   */
  async commit(data_dir: string): Promise<void> {
    const { rows } = await this.#client.query<{ place: string }>(PLACE);
    const state: MoveState = 'arriving';
    const values = { [PLACE_KEY]: rows[0]!.place, [DATA_DIR_KEY]: data_dir, [MOVE_KEY]: state };
    for (const entry of Object.entries(values)) {
      await this.#client.query(
        'INSERT INTO meta VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
        entry,
      );
    }
    await this.#client.query('COMMIT');
  }

  /** Deletes all rows, even those of the audit log. */
  async clear(): Promise<void> {
    await this.#client.query(`
      ALTER TABLE audit DISABLE TRIGGER audit_append_only;
      TRUNCATE ${transferTables()
        .map(({ name }) => quoted(name))
        .join()};
      ALTER TABLE audit ENABLE TRIGGER audit_append_only`);
  }

  /** Rolls back what was not committed. Idempotent. */
  async close(): Promise<void> {
    await this.#client.end().catch(() => {});
  }

  async #numbered(): Promise<{ table: string; column: string; sequence: string }[]> {
    const { rows } = await this.#client.query<{ table: string; column: string; sequence: string }>(`
      SELECT table_name::text AS table, column_name::text AS column,
        pg_get_serial_sequence(table_name::text, column_name::text) AS sequence
      FROM information_schema.columns WHERE table_schema = current_schema() AND is_identity = 'YES'`);
    return rows;
  }
}
