/** Writes that overlap, for tests with PostgreSQL. */
import { sql } from 'kysely';
import type { Store, Tx } from '../store/store.ts';

/** See `SVC_TEST_RUN_BODIES_TWICE`. */
const RUNS = process.env.SVC_TEST_RUN_BODIES_TWICE === '1' ? 2 : 1;

export interface HeldWrite {
  /** Resolves when the write is committed. */
  commit(): Promise<void>;
  rollBack(): Promise<void>;
}

/** Starts a write that has run `body`, and does not end before the caller says so. */
export async function holdWrite(store: Store, body: (tx: Tx) => unknown): Promise<HeldWrite> {
  const { promise: held, resolve: hold, reject: fail } = Promise.withResolvers<void>();
  const undone = new Error('rolled back by the test');
  let end: 'commit' | 'roll back' | null = null;
  let runs = 0;
  const write = store.write(async (tx) => {
    await body(tx);
    if (++runs < RUNS) return;
    hold();
    // A body may wait for its own statements only.
    const pause = tx.sql.selectFrom(sql`pg_sleep(0.005)`.as('pause')).select(sql`1`.as('one'));
    while (end === null) await tx.get(pause);
    if (end === 'roll back') throw undone;
  });
  write.catch(fail);
  await held;
  return {
    commit: () => {
      end = 'commit';
      return write;
    },
    rollBack: async () => {
      end = 'roll back';
      const error: unknown = await write.then(
        () => null,
        (reason: unknown) => reason,
      );
      if (error !== undone) throw error ?? new Error('the write was committed');
    },
  };
}
