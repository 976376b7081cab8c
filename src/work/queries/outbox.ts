/** Queries about intents in the outbox. Within a lane, they are ordered by id. */
import type { Insertable, Selectable } from 'kysely';
import { preparedInsert, preparedQuery } from '../../store/prepared-query.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';

export type IntentRow = Selectable<Tables['outbox']>;

/** All intents, in order. */
export function listIntents(reader: Reader): Promise<IntentRow[]> {
  return reader.all(reader.sql.selectFrom('outbox').selectAll().orderBy('id'));
}

/** The number of intents of other kinds than these. */
export async function countIntentsExcept(reader: Reader, kinds: readonly string[]): Promise<number> {
  const others = reader.sql.selectFrom('outbox').where('kind', 'not in', kinds);
  return (await reader.get(others.select((fn) => fn.fn.countAll<number>().as('intents'))))!.intents;
}

const newIntent = preparedInsert('outbox', 'id');

/** Returns the intent's id. */
export async function insertIntent(tx: Tx, row: Insertable<Tables['outbox']>): Promise<number> {
  return (await tx.get(newIntent(tx, row)))!.id;
}

const intentOfLane = preparedQuery((builder, lane: string, kind: string) =>
  builder.selectFrom('outbox').select('id').where('lane', '=', lane).where('kind', '=', kind),
);

export async function hasIntent(reader: Reader, lane: string, kind: string): Promise<boolean> {
  return (await reader.get(intentOfLane(reader, lane, kind))) !== undefined;
}

const intentDeletion = preparedQuery((builder, id: number) =>
  builder.deleteFrom('outbox').where('id', '=', id),
);

/** Idempotent. */
export async function deleteIntent(tx: Tx, id: number): Promise<void> {
  await tx.run(intentDeletion(tx, id));
}

/** Deletes the intents of these kinds in a lane. Returns their ids. */
export async function deleteIntents(tx: Tx, lane: string, kinds: readonly string[]): Promise<number[]> {
  const deleted = tx.sql.deleteFrom('outbox').where('lane', '=', lane).where('kind', 'in', kinds);
  return (await tx.all(deleted.returning('id'))).map(({ id }) => id);
}
