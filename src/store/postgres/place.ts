/** Where a database is, so that a plane notices if it was restored or copied, or if the server has failed over. */
import { sql } from 'kysely';
import { headsWithEvents } from '../event-rows/heads.ts';
import { limits } from '../limits.ts';
import { findMeta, setMeta } from '../meta.ts';
import { PLACE_KEY as KEY } from '../move-state.ts';
import { recordRestore, skipNumbers, skipStreamNumbers } from '../restored.ts';
import type { Store } from '../store.ts';
import { hasOnlyFailedOver, PLACE } from './history.ts';
import { settledArguments } from './schema/numbers.ts';

export interface MoveOptions {
  now_ms: number;
  /** A failover loses no commits, because the server replicates them synchronously. */
  synchronous: boolean;
}

/**
 * If the database is not where a plane used it last, it may lack the last commits. Then every log and stream continues far above
 * the numbers that may have been assigned, and a new incarnation begins. Returns whether that was necessary. Idempotent.
 */
export function continueAfterMove(store: Store, { now_ms, synchronous }: MoveOptions): Promise<boolean> {
  return store.write(async (tx) => {
    const query = { compile: () => sql<{ place: string }>`${sql.raw(PLACE)}`.compile(tx.sql) };
    const { place } = (await tx.get(query))!;
    const known = await findMeta(tx, KEY);
    if (known === place) return false;
    await setMeta(tx, KEY, place);
    if (known === undefined || (synchronous && hasOnlyFailedOver(known, place))) return false;
    for (const { agent_num, last_seq } of await headsWithEvents(tx)) {
      await skipNumbers(tx, { agent_num, last_seq }, last_seq + limits.restore_jump_events, now_ms);
    }
    await skipStreamNumbers(tx, async (table) => {
      const { sequence } = settledArguments(table);
      const jump = sql.lit(limits.restore_jump_events);
      const setval = sql<{
        last: number;
      }>`SELECT setval(${sequence}, coalesce(pg_sequence_last_value(${sequence}), 0) + ${jump}) AS last`;
      return (await tx.get({ compile: () => setval.compile(tx.sql) }))!.last;
    });
    await recordRestore(tx, now_ms);
    return true;
  });
}
