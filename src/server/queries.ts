/** Queries for the responses stored under an `Idempotency-Key`, at most one per user and key. */
import type { Reader, Tx } from '../store/store.ts';
import type { Tables } from '../store/tables.ts';

export type ResponseRow = Tables['idempotency'];

export function findResponse(reader: Reader, user_id: string, key: string): Promise<ResponseRow | undefined> {
  return reader.get(
    reader.sql.selectFrom('idempotency').selectAll().where('user_id', '=', user_id).where('key', '=', key),
  );
}

/** Stores a row in place of an earlier one of the same user and key. */
export async function putResponse(tx: Tx, { user_id, key, ...row }: ResponseRow): Promise<void> {
  await tx.run(
    tx.sql
      .insertInto('idempotency')
      .values({ user_id, key, ...row })
      .onConflict((conflict) => conflict.columns(['user_id', 'key']).doUpdateSet(row)),
  );
}

/** Changes nothing if there is no row for this user and key. */
export async function updateResponse(
  tx: Tx,
  user_id: string,
  key: string,
  changes: Partial<Omit<ResponseRow, 'user_id' | 'key'>>,
): Promise<void> {
  await tx.run(
    tx.sql.updateTable('idempotency').set(changes).where('user_id', '=', user_id).where('key', '=', key),
  );
}

/** Deletes the row, unless it has a response. */
export async function deleteUnanswered(tx: Tx, user_id: string, key: string): Promise<void> {
  const row = tx.sql.deleteFrom('idempotency').where('user_id', '=', user_id).where('key', '=', key);
  await tx.run(row.where('status', 'is', null));
}

/** Deletes rows that were created at `before` (Unix milliseconds) or earlier; returns how many. */
export async function deleteResponsesBefore(tx: Tx, before: number): Promise<number> {
  return (await tx.run(tx.sql.deleteFrom('idempotency').where('created_at', '<=', before))).changes;
}
