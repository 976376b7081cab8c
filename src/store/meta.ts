/** Values that a database keeps about itself. */
import { preparedQuery } from './prepared-query.ts';
import type { Reader, Writer } from './store.ts';

const metaValue = preparedQuery((sql, key: string) =>
  sql.selectFrom('meta').select('value').where('key', '=', key),
);

/** Undefined if it was never set. */
export async function findMeta(reader: Reader, key: string): Promise<string | undefined> {
  return (await reader.get(metaValue(reader, key)))?.value;
}

export async function setMeta(writer: Writer, key: string, value: string): Promise<void> {
  const insert = writer.sql.insertInto('meta').values({ key, value });
  await writer.run(insert.onConflict((conflict) => conflict.column('key').doUpdateSet({ value })));
}

export async function deleteMeta(writer: Writer, key: string): Promise<void> {
  await writer.run(writer.sql.deleteFrom('meta').where('key', '=', key));
}
