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
import { BODIES_RUN_TWICE, type Caller } from '../body.ts';
import { storageFailed } from '../problems.ts';
import type { ServerCounts } from '../store.ts';
import type { LocalWakes } from '../wakes.ts';
import type { Claim } from './claim.ts';
import { CommitOrder, type Place } from './commit-order.ts';
import type { Connection, ConnectionPool, PostgresOptions } from './connection.ts';
import { Again, canRunAgain, Disconnected } from './errors.ts';
import { limits } from './limits.ts';
import type { Reads } from './reads.ts';
import { type EndSlot, Slots } from './slots.ts';
import { WriteTransaction } from './transaction.ts';

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
  #closed = false;
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

  /** Looks for no more outcomes of transactions. */
  close(): void {
    this.#closed = true;
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
    let is_lost = false;
    try {
      failpoint('commit');
      try {
        await tx.commit();
      } catch (error) {
        if (!(error instanceof Disconnected)) throw error;
        if (tx.xid === null) throw new Again(error);
        // It would occupy a place in the pool.
        connection.release();
        const outcome = await this.#findOutcome(tx.xid, connection);
        if (outcome === 'aborted') throw new Again(error);
        if (outcome !== 'committed') {
          this.#counts.unknown_commits++;
          this.#log.error({ err: error, xid: tx.xid }, 'it is not known whether a transaction was committed');
          is_lost = outcome === null;
          if (is_lost) void this.#followUp(tx, connection, place);
          throw storageFailed();
        }
      }
      failpoint('committed');
      // Before the wait: a transaction in an earlier place may need a connection to find out its outcome.
      connection.release();
      await place.reached;
      tx.runAfterCommit(this.#wakes, this.#log);
    } finally {
      if (!is_lost) place.leave();
    }
  }

  /** What became of a transaction whose commit was not answered. Null if the server cannot be reached for `lost_ms_max`. */
  async #findOutcome(xid: string, lost: Connection): Promise<Outcome | null> {
    const end_ms = performance.now() + this.#lost_ms_max;
    do {
      const outcome = await this.#outcome(xid, lost);
      if (outcome !== null) return outcome;
      await sleep(limits.reconnect_ms);
    } while (performance.now() < end_ms);
    return null;
  }

  /**
   * Finishes a transaction whose caller was told that its outcome is not known. If the server says later that it was committed,
   * its callbacks and wakes run after all: otherwise, this process would keep what the transaction has changed, such as a
   * revoked token. Later transactions are answered after it. Never rejects.
   */
  async #followUp(tx: WriteTransaction, lost: Connection, place: Place): Promise<void> {
    try {
      let outcome: Outcome | null = null;
      while (outcome === null && !this.#closed) {
        await sleep(limits.reconnect_ms);
        outcome = await this.#outcome(tx.xid!, lost);
      }
      await place.reached;
      if (outcome === 'committed') tx.runAfterCommit(this.#wakes, this.#log);
    } catch (error) {
      this.#log.error({ err: error }, 'cannot find out whether a transaction was committed');
    } finally {
      place.leave();
    }
  }

  /** Null if the server cannot be reached, or has not decided yet. */
  async #outcome(xid: string, lost: Connection): Promise<Outcome | null> {
    let connection: Connection;
    try {
      connection = await this.#pool.acquire();
    } catch (error) {
      // Otherwise, the server has failed over, and transaction ids of the old one mean nothing.
      return error instanceof Disconnected ? null : 'unknown';
    }
    try {
      const { rows } = await connection.query('SELECT pg_xact_status($1::xid8) AS status', [xid]);
      const { status } = (rows as { status: Outcome | 'in progress' | null }[])[0]!;
      if (status !== 'in progress') return status ?? 'unknown';
      // The server has not noticed yet that the connection is lost, and waits for the commit.
      await connection.query(TERMINATE, [lost.process_id, xid]);
      return null;
    } catch (error) {
      if (error instanceof Disconnected) return null;
      throw error;
    } finally {
      connection.release();
    }
  }
}

/** `unknown`: the server does not know the transaction. */
type Outcome = 'committed' | 'aborted' | 'unknown';

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
