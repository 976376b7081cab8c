/** Queries about facts and the cursors of their consumers. */
import { type Insertable, type Selectable, sql } from 'kysely';
import { preparedQuery } from '../../store/prepared-query.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';

export type FactRow = Selectable<Tables['facts']>;

export function insertFact(tx: Tx, row: Insertable<Tables['facts']>): void {
  tx.run(tx.sql.insertInto('facts').values(row));
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

const cursorOf = preparedQuery((sql, consumer: string) =>
  sql.selectFrom('fact_cursors').select('fact_id').where('consumer', '=', consumer),
);
const factAfter = preparedQuery((sql, id: number) =>
  sql.selectFrom('facts').selectAll().where('id', '>', id).orderBy('id').limit(1),
);

/** The oldest fact that a consumer has not passed. */
export function nextFact(reader: Reader, consumer: string): FactRow | undefined {
  const cursor = reader.get(cursorOf(reader, consumer))?.fact_id ?? 0;
  return reader.get(factAfter(reader, cursor));
}

/** Moves a consumer's cursor past a fact, and deletes the facts that every consumer has passed. */
export function passFact(tx: Tx, consumer: string, fact_id: number): void {
  tx.run(tx.sql.updateTable('fact_cursors').set({ fact_id }).where('consumer', '=', consumer));
  tx.run(tx.sql.deleteFrom('facts').where('id', '<=', sql<number>`(SELECT min(fact_id) FROM fact_cursors)`));
}
