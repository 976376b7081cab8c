/** Queries about facts and the cursors of their consumers. */
import { type Insertable, type Selectable, sql } from 'kysely';
import { jsonArrayTable } from '../../store/json-array-table.ts';
import { preparedInsert, preparedQuery } from '../../store/prepared-query.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';
import { limits } from '../limits.ts';

export type FactRow = Selectable<Tables['facts']>;

const newFact = preparedInsert('facts');

export function insertFact(tx: Tx, row: Insertable<Tables['facts']>): void {
  tx.run(newFact(tx, row));
}

/** Ensures that exactly these consumers have a cursor; a new one starts before the oldest fact. */
export function putConsumers(tx: Tx, names: readonly string[]): void {
  tx.run(tx.sql.deleteFrom('fact_cursors').where('consumer', 'not in', names));
  for (const consumer of names) {
    tx.run(
      tx.sql
        .insertInto('fact_cursors')
        .values({ consumer, fact_id: 0 })
        .onConflict((conflict) => conflict.doNothing()),
    );
  }
}

const allCursors = preparedQuery((builder) => builder.selectFrom('fact_cursors').selectAll());

/** The id of the last fact that each consumer has passed. */
export function getCursors(reader: Reader): Map<string, number> {
  return new Map(reader.all(allCursors(reader)).map(({ consumer, fact_id }) => [consumer, fact_id]));
}

const nextFacts = preparedQuery((builder, id: number) =>
  builder
    .selectFrom('facts')
    .selectAll()
    .where('id', '>', id)
    .orderBy('id')
    .limit(limits.facts_per_transaction),
);

/** Facts after this one, oldest first, at most `limits.facts_per_transaction`. */
export function factsAfter(reader: Reader, id: number): FactRow[] {
  return reader.all(nextFacts(reader, id));
}

const movedCursors = preparedQuery((builder, names: string, fact_id: number) =>
  builder
    .updateTable('fact_cursors')
    .set({ fact_id })
    .where('fact_id', '<', fact_id)
    .where('consumer', 'in', builder.selectFrom(jsonArrayTable(names).as('each')).select('each.value')),
);
const passedFacts = preparedQuery((builder) =>
  builder.deleteFrom('facts').where('id', '<=', sql<number>`(SELECT min(fact_id) FROM fact_cursors)`),
);

/** Moves the cursors of these consumers to a fact, and deletes the facts that every consumer has passed. */
export function passFacts(tx: Tx, consumers: readonly string[], fact_id: number): void {
  tx.run(movedCursors(tx, JSON.stringify(consumers), fact_id));
  tx.run(passedFacts(tx));
}
