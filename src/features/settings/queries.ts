/** Queries about settings that root changed while the service ran. */
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';

export type SettingRow = Tables['settings'];

export function listSettings(reader: Reader): Promise<SettingRow[]> {
  return reader.all(reader.sql.selectFrom('settings').selectAll());
}

/** Stores a setting in place of an earlier value. `value`: JSON. */
export async function putSetting(tx: Tx, { key, value }: SettingRow): Promise<void> {
  await tx.run(
    tx.sql
      .insertInto('settings')
      .values({ key, value })
      .onConflict((conflict) => conflict.column('key').doUpdateSet({ value })),
  );
}

export async function deleteSetting(tx: Tx, key: string): Promise<void> {
  await tx.run(tx.sql.deleteFrom('settings').where('key', '=', key));
}
