/** Queries about timers. There is at most one per kind and ref. */
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';

export type TimerRow = Tables['timers'];

/** Sets a timer, or moves the one of this kind and ref. */
export function putTimer(tx: Tx, { kind, ref, ...values }: TimerRow): void {
  tx.run(
    tx.sql
      .insertInto('timers')
      .values({ kind, ref, ...values })
      .onConflict((conflict) => conflict.columns(['kind', 'ref']).doUpdateSet(values)),
  );
}

/** The timer that is due first. */
export function firstTimer(reader: Reader): TimerRow | undefined {
  return reader.get(reader.sql.selectFrom('timers').selectAll().orderBy('due_at').limit(1));
}

/** Returns whether there is such a timer. */
export function moveTimer(tx: Tx, kind: string, ref: string, due_at: number): boolean {
  const moved = tx.sql.updateTable('timers').set({ due_at }).where('kind', '=', kind).where('ref', '=', ref);
  return tx.run(moved).changes > 0;
}

export function deleteTimer(tx: Tx, kind: string, ref: string): void {
  tx.run(tx.sql.deleteFrom('timers').where('kind', '=', kind).where('ref', '=', ref));
}
