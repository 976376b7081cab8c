/** Queries about intents in the outbox. Within a lane, they are ordered by id. */
import type { Insertable, Selectable } from 'kysely';
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';

export type IntentRow = Selectable<Tables['outbox']>;

/** All intents, in order. */
export function listIntents(reader: Reader): IntentRow[] {
  return reader.all(reader.sql.selectFrom('outbox').selectAll().orderBy('id'));
}

/** Returns the intent's id. */
export function insertIntent(tx: Tx, row: Insertable<Tables['outbox']>): number {
  return tx.get(tx.sql.insertInto('outbox').values(row).returning('id'))!.id;
}

export function hasIntent(reader: Reader, lane: string, kind: string): boolean {
  const intents = reader.sql.selectFrom('outbox').select('id').where('lane', '=', lane);
  return reader.get(intents.where('kind', '=', kind)) !== undefined;
}

export function deleteIntent(tx: Tx, id: number): void {
  tx.run(tx.sql.deleteFrom('outbox').where('id', '=', id));
}

/** Deletes the intents of these kinds in a lane. */
export function deleteIntents(tx: Tx, lane: string, kinds: readonly string[]): void {
  tx.run(tx.sql.deleteFrom('outbox').where('lane', '=', lane).where('kind', 'in', kinds));
}
