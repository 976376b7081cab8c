/** Queries about intents in the outbox. Within a lane, they are ordered by id. */
import type { Insertable, Selectable } from 'kysely';
import { preparedInsert, preparedQuery } from '../../store/prepared-query.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';

export type IntentRow = Selectable<Tables['outbox']>;

/** All intents, in order. */
export function listIntents(reader: Reader): IntentRow[] {
  return reader.all(reader.sql.selectFrom('outbox').selectAll().orderBy('id'));
}

/** The number of intents of other kinds than these. */
export function countIntentsExcept(reader: Reader, kinds: readonly string[]): number {
  const others = reader.sql.selectFrom('outbox').where('kind', 'not in', kinds);
  return reader.get(others.select((fn) => fn.fn.countAll<number>().as('intents')))!.intents;
}

const newIntent = preparedInsert('outbox', 'id');

/** Returns the intent's id. */
export function insertIntent(tx: Tx, row: Insertable<Tables['outbox']>): number {
  return tx.get(newIntent(tx, row))!.id;
}

const intentOfLane = preparedQuery((builder, lane: string, kind: string) =>
  builder.selectFrom('outbox').select('id').where('lane', '=', lane).where('kind', '=', kind),
);

export function hasIntent(reader: Reader, lane: string, kind: string): boolean {
  return reader.get(intentOfLane(reader, lane, kind)) !== undefined;
}

const intentDeletion = preparedQuery((builder, id: number) =>
  builder.deleteFrom('outbox').where('id', '=', id),
);

/** Idempotent. */
export function deleteIntent(tx: Tx, id: number): void {
  tx.run(intentDeletion(tx, id));
}

/** Deletes the intents of these kinds in a lane. */
export function deleteIntents(tx: Tx, lane: string, kinds: readonly string[]): void {
  tx.run(tx.sql.deleteFrom('outbox').where('lane', '=', lane).where('kind', 'in', kinds));
}
