/** Queries about timers. There is at most one per kind and ref. */
import { sql } from 'kysely';
import { jsonArrayTable } from '../../store/dialects.ts';
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
  tx.queue(setTimer(tx, kind, ref, due_at, payload));
}

/** The expression keeps SQLite from using the index by kind, which would read and sort all timers of these kinds. */
const kind_without_index = sql<string>`kind || ''`;

const earliestTimer = preparedQuery((builder, kinds: string) =>
  builder
    .selectFrom('timers')
    .selectAll()
    .where(
      kind_without_index,
      'in',
      builder.selectFrom(jsonArrayTable({ sql: builder }, kinds)).select('each.value'),
    )
    .orderBy('due_at')
    .limit(1),
);

/** The timer of these kinds that is due first. */
export function firstTimer(reader: Reader, kinds: readonly string[]): Promise<TimerRow | undefined> {
  return reader.get(earliestTimer(reader, JSON.stringify(kinds)));
}

const timerOf = preparedQuery((builder, kind: string, ref: string) =>
  builder.selectFrom('timers').selectAll().where('kind', '=', kind).where('ref', '=', ref),
);

export function findTimer(reader: Reader, kind: string, ref: string): Promise<TimerRow | undefined> {
  return reader.get(timerOf(reader, kind, ref));
}

/** The refs of all timers of a kind. */
export async function timerRefs(reader: Reader, kind: string): Promise<string[]> {
  const timers = reader.sql.selectFrom('timers').select('ref').where('kind', '=', kind);
  return (await reader.all(timers)).map(({ ref }) => ref);
}

/** The number of timers of other kinds than these. */
export async function countTimersExcept(reader: Reader, kinds: readonly string[]): Promise<number> {
  const others = reader.sql.selectFrom('timers').where('kind', 'not in', kinds);
  return (await reader.get(others.select((fn) => fn.fn.countAll<number>().as('timers'))))!.timers;
}

/** Returns whether there is such a timer, due at `from`. */
export async function moveTimer(
  tx: Tx,
  kind: string,
  ref: string,
  { from, to }: { from: number; to: number },
): Promise<boolean> {
  const moved = tx.sql
    .updateTable('timers')
    .set({ due_at: to })
    .where('kind', '=', kind)
    .where('ref', '=', ref)
    .where('due_at', '=', from);
  return (await tx.run(moved)).changes > 0;
}

/** Moves the timers of a kind that are due after `due_at_max` to that time. Returns their refs. */
export async function capTimers(tx: Tx, kind: string, due_at_max: number): Promise<string[]> {
  const capped = tx.sql
    .updateTable('timers')
    .set({ due_at: due_at_max })
    .where('kind', '=', kind)
    .where('due_at', '>', due_at_max)
    .returning('ref');
  return (await tx.all(capped)).map(({ ref }) => ref);
}

const deletedTimer = preparedQuery((builder, kind: string, ref: string) =>
  builder.deleteFrom('timers').where('kind', '=', kind).where('ref', '=', ref),
);

/** Idempotent. */
export async function deleteTimer(tx: Tx, kind: string, ref: string): Promise<void> {
  await tx.run(deletedTimer(tx, kind, ref));
}
