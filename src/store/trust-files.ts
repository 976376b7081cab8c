/** The encrypted files of `cert_dir`, which planes that share the database share too. */
import type { Selectable } from 'kysely';
import type { Reader, Tx } from './store.ts';
import type { Tables } from './tables.ts';

export type TrustFile = Selectable<Tables['trust_files']>;

export function listTrustFiles(reader: Reader): Promise<TrustFile[]> {
  return reader.all(reader.sql.selectFrom('trust_files').selectAll().orderBy('name'));
}

export async function putTrustFile(tx: Tx, { name, sealed }: TrustFile): Promise<void> {
  const insert = tx.sql.insertInto('trust_files').values({ name, sealed });
  await tx.run(insert.onConflict((conflict) => conflict.column('name').doUpdateSet({ sealed })));
}

export async function deleteTrustFile(tx: Tx, name: string): Promise<void> {
  await tx.run(tx.sql.deleteFrom('trust_files').where('name', '=', name));
}
