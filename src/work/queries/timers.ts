/** Queries about timers. There is at most one per kind and ref. */
import { preparedQuery } from '../../store/prepared-query.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';

export type TimerRow = Tables['timers'];

const setTimer = preparedQuery((builder, kind: string, ref: string, due_at: number, payload: string) =>
  builder
    .insertInto('timers')
    .values({ kind, ref, due_at, payload })
    .onConflict((conflict) => conflict.columns(['kind', 'ref']).doUpdateSet({ due_at, payload })),
);

/** Sets a timer, or moves the one of this kind and ref. */
export function putTimer(tx: Tx, { kind, ref, due_at, payload }: TimerRow): void {
  tx.run(setTimer(tx, kind, ref, due_at, payload));
}

const earliestTimer = preparedQuery((builder) =>
  builder.selectFrom('timers').selectAll().orderBy('due_at').limit(1),
);

/** The timer that is due first. */
export function firstTimer(reader: Reader): TimerRow | undefined {
  return reader.get(earliestTimer(reader));
}

/** Returns whether there is such a timer. */
export function moveTimer(tx: Tx, kind: string, ref: string, due_at: number): boolean {
  const moved = tx.sql.updateTable('timers').set({ due_at }).where('kind', '=', kind).where('ref', '=', ref);
  return tx.run(moved).changes > 0;
}

const deletedTimer = preparedQuery((builder, kind: string, ref: string) =>
  builder.deleteFrom('timers').where('kind', '=', kind).where('ref', '=', ref),
);

/** Idempotent. */
export function deleteTimer(tx: Tx, kind: string, ref: string): void {
  tx.run(deletedTimer(tx, kind, ref));
}
