/** Many rows by one statement, however many they are: their values as one parameter. */
import { type RawBuilder, sql } from 'kysely';

/** As a table of a query: what a JSON array of texts has, by its place (`key`). */
export function listed(json: string): RawBuilder<{ key: number; value: string }> {
  return sql`json_each(${json})`;
}
