/** Passes any number of values to a statement as one parameter. */
import { type RawBuilder, sql } from 'kysely';

/** A table expression with the strings in a JSON array; `key` is the index. */
export function jsonArrayTable(json: string): RawBuilder<{ key: number; value: string }> {
  return sql`json_each(${json})`;
}

/** A table expression with the numbers in a JSON array; `key` is the index. */
export function jsonNumbers(json: string): RawBuilder<{ key: number; value: number }> {
  return sql`json_each(${json})`;
}
