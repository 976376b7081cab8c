/**
 * Runs transactions that change rows until they are committed or fail for good. Transactions run again after conflicts,
 * and after the connection was lost. If the answer to a commit was lost, the server is asked whether it was committed, so
 * that no body takes effect twice.
 *
 * A write that runs alone, or conflicts again and again, locks the table `gate` exclusively, which waits for all other writes
 * and keeps new ones out. All others lock it in a mode that excludes only that. A lock may be taken before the snapshot.
 */
import { sleep } from '../../base/async.ts';
import { failpoint } from '../../base/failpoint.ts';
import type { Logger } from '../../base/log.ts';
import type { Caller } from '../body.ts';
import { storageFailed } from '../problems.ts';
import type { ServerCounts } from '../store.ts';
import type { LocalWakes } from '../wakes.ts';
import type { Claim } from './claim.ts';
import { CommitOrder } from './commit-order.ts';
import type { Connection, ConnectionPool, PostgresOptions } from './connection.ts';
import { Again, canRunAgain, Disconnected } from './errors.ts';
import { limits } from './limits.ts';
import type { Reads } from './reads.ts';
import { type EndSlot, Slots } from './slots.ts';
import { BODIES_RUN_TWICE, WriteTransaction } from './transaction.ts';

export interface Write<T> {
  isolation: 'SERIALIZABLE' | 'READ COMMITTED';
  body: (tx: WriteTransaction) => Promise<T> | T;
  caller?: Caller;
  /** See `WriteOptions`. */
  alone?: boolean;
}

export class Writes {
  readonly #database: object;
  readonly #pool: ConnectionPool;
  readonly #claim: Claim;
  readonly #reads: Reads;
  readonly #counts: ServerCounts;
  readonly #wakes: LocalWakes;
  readonly #log: Logger;
  readonly #lost_ms_max: number;
  readonly #order = new CommitOrder();
  /** For serializable transactions. */
  readonly slots: Slots;

  /** `database` identifies the store. */
  constructor(of: {
    database: object;
    pool: ConnectionPool;
    claim: Claim;
    reads: Reads;
    counts: ServerCounts;
    wakes: LocalWakes;
    options: PostgresOptions;
  }) {
    const { database, pool, claim, reads, counts, wakes, options } = of;
    this.#database = database;
    this.#pool = pool;
    this.#claim = claim;
    this.#reads = reads;
    this.#counts = counts;
    this.#wakes = wakes;
    this.#log = options.log;
    this.#lost_ms_max = lostMsMax(options);
    this.slots = new Slots(pool.size);
  }

  /**
   * Resolves to what the body returned, after the commit, the body's callbacks and its wakes. Throws what the body throws, the
   * database's error, the problem `claim_lost` if another plane writes to the database, or the problem `unavailable` if it
   * is not known whether the body was committed. A serializable write uses `slot` first, if it is given, and ends it.
   */
  run<T>(write: Write<T>, slot?: EndSlot): Promise<T> {
    let given = slot;
    return untilDone(this.#lost_ms_max, this.#counts, async (number) => {
      const endSlot = given ?? (await this.#slotFor(write));
      given = undefined;
      return this.attempt(write, endSlot, { number, undo: BODIES_RUN_TWICE && number === 1 });
    });
  }

  async #slotFor({ isolation }: Write<unknown>): Promise<EndSlot> {
    return isolation === 'SERIALIZABLE' ? this.slots.take() : () => {};
  }

  /**
   * Like `run`, but throws the error that says that it can run again, and counts nothing. `number`: of the attempt. `undo`: the
   * body is rolled back, and has to run again.
   */
  async attempt<T>(
    { isolation, body, caller, alone }: Write<T>,
    endSlot: EndSlot,
    { number = 1, undo = false } = {},
  ): Promise<T> {
    let connection: Connection | null = null;
    try {
      connection = await this.#pool.acquire();
      const mode = alone || number >= limits.gate_attempt ? 'EXCLUSIVE' : 'ROW SHARE';
      const [database, claim, reads] = [this.#database, this.#claim, this.#reads];
      const opening = `BEGIN ISOLATION LEVEL ${isolation}; LOCK TABLE gate IN ${mode} MODE`;
      const tx = new WriteTransaction({ database, connection, opening, claim, reads });
      let value: T;
      try {
        value = await tx.execute(body, caller);
      } catch (error) {
        tx.finish();
        // The body may have thrown only because it conflicted with another write, or because it read what another plane wrote.
        await tx.claimed();
        await tx.answered();
        throw canRunAgain(tx.failure) ? tx.failure : error;
      }
      if (undo) {
        tx.finish();
        throw new Again(null);
      }
      await this.#commit(tx, connection);
      if (isolation === 'SERIALIZABLE') this.slots.succeeded();
      return value;
    } catch (error) {
      this.slots.failed(error);
      throw error;
    } finally {
      endSlot();
      connection?.release();
    }
  }

  async #commit(tx: WriteTransaction, connection: Connection): Promise<void> {
    const place = this.#order.enter();
    try {
      failpoint('commit');
      try {
        await tx.commit();
      } catch (error) {
        if (!(error instanceof Disconnected)) throw error;
        await this.#findOutcome(tx.xid, connection, error);
      }
      failpoint('committed');
      await place.reached;
      tx.runAfterCommit(this.#wakes, this.#log);
    } finally {
      place.leave();
    }
  }

  /**
   * Returns if a transaction whose commit was not answered was committed. Throws `Again` if it was not, and the problem
   * `unavailable` if that remains unknown.
   */
  async #findOutcome(xid: string | null, lost: Connection, cause: Disconnected): Promise<void> {
    if (xid === null) throw new Again(cause);
    // It would occupy a place in the pool.
    lost.release();
    const end_ms = performance.now() + this.#lost_ms_max;
    do {
      const outcome = await this.#outcome(xid, lost);
      if (outcome === 'committed') return;
      if (outcome === 'aborted') throw new Again(cause);
      if (outcome === 'unknown') break;
      await sleep(limits.reconnect_ms);
    } while (performance.now() < end_ms);
    this.#counts.unknown_commits++;
    this.#log.error({ err: cause, xid }, 'it is not known whether a transaction was committed');
    throw storageFailed();
  }

  /** Null if the server cannot be reached. */
  async #outcome(xid: string, lost: Connection): Promise<string | null> {
    let connection: Connection;
    try {
      connection = await this.#pool.acquire();
    } catch (error) {
      // Otherwise, the server has failed over, and transaction ids of the old one mean nothing.
      return error instanceof Disconnected ? null : 'unknown';
    }
    try {
      const { rows } = await connection.query('SELECT pg_xact_status($1::xid8) AS status', [xid]);
      const status = (rows as { status: string | null }[])[0]!.status ?? 'unknown';
      // The server may not have noticed yet that the connection is lost, and wait for the commit.
      if (status === 'in progress') await connection.query(TERMINATE, [lost.process_id, xid]);
      return status;
    } catch (error) {
      if (error instanceof Disconnected) return null;
      throw error;
    } finally {
      connection.release();
    }
  }
}

const TERMINATE = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_xid = ($2::xid8)::xid`;

export function lostMsMax({ lost_ms_max }: PostgresOptions): number {
  return lost_ms_max ?? limits.lost_ms_max;
}

export const noCounts = (): ServerCounts => ({
  transactions: 0,
  writes: 0,
  conflicts: 0,
  lost: 0,
  unknown_commits: 0,
});

/**
 * Calls `attempt` until it succeeds, fails with an error that will not go away, conflicts too often, or finds no
 * connection for `lost_ms_max`. The number counts the conflicts from 1. Counts the transaction and its repetitions in `counts`.
 */
export async function untilDone<T>(
  lost_ms_max: number,
  counts: ServerCounts,
  attempt: (number: number) => Promise<T>,
): Promise<T> {
  counts.transactions++;
  let lost_until_ms: number | undefined;
  for (let number = 1; ; ) {
    try {
      return await attempt(number);
    } catch (error) {
      if (!canRunAgain(error)) throw error;
      if (error instanceof Disconnected) {
        lost_until_ms ??= performance.now() + lost_ms_max;
        if (performance.now() >= lost_until_ms) throw error;
        counts.lost++;
        await sleep(limits.reconnect_ms);
      } else {
        if (number === limits.attempts_max) throw error;
        counts.conflicts++;
        number++;
      }
    }
  }
}
