/** Queries about facts and the cursors of their consumers. */
import { type Insertable, type Selectable, sql } from 'kysely';
import { jsonArrayTable, jsonNumberTable } from '../../store/dialects.ts';
import { preparedInsert, preparedQuery } from '../../store/prepared-query.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';
import { limits } from '../limits.ts';

export type FactRow = Selectable<Tables['facts']>;

const newFact = preparedInsert('facts');

export function insertFact(tx: Tx, row: Insertable<Tables['facts']>): void {
  tx.queue(newFact(tx, row));
}

/** Identifies a cursor. */
export interface CursorName {
  consumer: string;
  kind: string;
}

/**
 * Ensures that consumers have cursors for kinds, and returns the numbers of these cursors in no particular order. A new one
 * starts before the oldest fact, or where the consumer was before it had a cursor for each kind. `now`: Unix milliseconds.
 */
export async function putCursors(
  tx: Tx,
  names: readonly CursorName[],
  now: number,
): Promise<(CursorName & { num: number })[]> {
  if (names.length === 0) return [];
  const before = tx.sql.selectFrom('fact_cursors').select(['consumer', 'fact_id']).where('kind', '=', '');
  const earlier = new Map((await tx.all(before)).map(({ consumer, fact_id }) => [consumer, fact_id]));
  const rows = names.map((name) => ({ ...name, fact_id: earlier.get(name.consumer) ?? 0, used_at: now }));
  return tx.all(
    tx.sql
      .insertInto('fact_cursors')
      .values(rows)
      .onConflict((conflict) => conflict.columns(['kind', 'consumer']).doUpdateSet({ used_at: now }))
      .returning(['consumer', 'kind', 'num']),
  );
}

const isPassed = sql<boolean>`NOT EXISTS (
  SELECT 1 FROM fact_cursors AS c WHERE c.kind = facts.kind AND c.fact_id < facts.id
)`;

/** Records that a program still uses these cursors, given by number. `now`: Unix milliseconds. */
export async function touchCursors(tx: Tx, cursors: readonly number[], now: number): Promise<void> {
  await tx.run(tx.sql.updateTable('fact_cursors').set({ used_at: now }).where('num', 'in', cursors));
}

/** Deletes the cursors that no program has used since `before` (Unix milliseconds). */
export async function deleteUnusedCursors(tx: Tx, before: number): Promise<void> {
  await tx.run(tx.sql.deleteFrom('fact_cursors').where('used_at', '<', before));
}

const isClaimed = sql<boolean>`facts.kind IN (SELECT kind FROM fact_cursors)`;
/** A consumer has passed the fact, or another one about the same record, without handling it. */
const isHeld = sql<boolean>`EXISTS (
  SELECT 1 FROM fact_cursors AS c JOIN timers AS t ON t.kind = 'fact_retry' AND t.ref = c.consumer || ' ' || facts.ref
  WHERE c.kind = facts.kind
)`;

function deletionOfPassed(tx: Tx) {
  return tx.sql
    .deleteFrom('facts')
    .where(isPassed)
    .where(({ not }) => not(isHeld));
}

/**
 * Deletes the facts that every cursor of their kind has passed, and that no timer holds. Facts of kinds without a cursor are
 * deleted if they were recorded before `before` (Unix milliseconds).
 */
export async function deletePassedFacts(tx: Tx, before: number): Promise<void> {
  await tx.run(deletionOfPassed(tx).where(({ or, eb }) => or([isClaimed, eb('ts', '<', before)])));
}

/** The same for facts about one record, of kinds with a cursor. */
export async function deletePassedFactsOf(tx: Tx, ref: string): Promise<void> {
  await tx.run(deletionOfPassed(tx).where('ref', '=', ref).where(isClaimed));
}

/**
 * The facts about a record that a consumer has passed, from `fact_id` on, oldest first: one more than
 * `limits.facts_per_transaction` at most.
 */
export function heldFacts(
  reader: Reader,
  { consumer, about, fact_id }: { consumer: string; about: string; fact_id: number },
): Promise<FactRow[]> {
  return reader.all(
    reader.sql
      .selectFrom('facts')
      .innerJoin('fact_cursors', 'fact_cursors.kind', 'facts.kind')
      .selectAll('facts')
      .where('facts.id', '>=', fact_id)
      .where('facts.ref', '=', about)
      .where('fact_cursors.consumer', '=', consumer)
      .whereRef('fact_cursors.fact_id', '>=', 'facts.id')
      .orderBy('facts.id')
      .limit(limits.facts_per_transaction + 1),
  );
}

const allCursors = preparedQuery((builder) =>
  builder.selectFrom('fact_cursors').select(['num', 'fact_id']).where('kind', '!=', ''),
);

/** The id of the last fact that each cursor has passed, by the cursor's number. */
export async function getCursors(reader: Reader): Promise<Map<number, number>> {
  return new Map((await reader.all(allCursors(reader))).map(({ num, fact_id }) => [num, fact_id]));
}

const nextFacts = preparedQuery((builder, after: number, up_to: number, kinds: string) =>
  builder
    .selectFrom('facts')
    .selectAll()
    .where('id', '>', after)
    .where('id', '<=', up_to)
    .where('kind', 'in', builder.selectFrom(jsonArrayTable({ sql: builder }, kinds)).select('each.value'))
    .orderBy('id')
    .limit(limits.facts_per_transaction),
);

/** Facts of these kinds from `after` (exclusive) to `up_to`, oldest first, at most `limits.facts_per_transaction`. */
export function factsAfter(
  reader: Reader,
  after: number,
  up_to: number,
  kinds: readonly string[],
): Promise<FactRow[]> {
  return reader.all(nextFacts(reader, after, up_to, JSON.stringify(kinds)));
}

const movedCursors = preparedQuery((builder, cursors: string, fact_id: number) =>
  builder
    .updateTable('fact_cursors')
    .set({ fact_id })
    .where('fact_id', '<', fact_id)
    .where('num', 'in', builder.selectFrom(jsonNumberTable({ sql: builder }, cursors)).select('each.value')),
);
const passedFacts = preparedQuery((builder, ids: string) =>
  builder
    .deleteFrom('facts')
    .where('id', 'in', builder.selectFrom(jsonNumberTable({ sql: builder }, ids)).select('each.value'))
    .where(isPassed),
);

/** Moves cursors to a fact, and deletes those of the facts with these ids that every cursor of their kind has passed. */
export async function passFacts(
  tx: Tx,
  cursors: readonly number[],
  last_id: number,
  ids: readonly number[],
): Promise<void> {
  await tx.run(movedCursors(tx, JSON.stringify(cursors), last_id));
  await tx.run(passedFacts(tx, JSON.stringify(ids)));
}

/** The number of facts of other kinds than these. */
export async function countFactsExcept(reader: Reader, kinds: readonly string[]): Promise<number> {
  const others = reader.sql.selectFrom('facts').where('kind', 'not in', kinds);
  return (await reader.get(others.select((fn) => fn.fn.countAll<number>().as('facts'))))!.facts;
}
