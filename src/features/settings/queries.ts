/** Queries about settings that root changed while the service ran. */
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';

export type SettingRow = Tables['settings'];

export function listSettings(reader: Reader): SettingRow[] {
  return reader.all(reader.sql.selectFrom('settings').selectAll());
}

/** Stores a setting in place of an earlier value. `value`: JSON. */
export function putSetting(tx: Tx, { key, value }: SettingRow): void {
  tx.run(
    tx.sql
      .insertInto('settings')
      .values({ key, value })
      .onConflict((conflict) => conflict.column('key').doUpdateSet({ value })),
  );
}

export function deleteSetting(tx: Tx, key: string): void {
  tx.run(tx.sql.deleteFrom('settings').where('key', '=', key));
}
