/** Parts of queries that are different SQL in SQLite and in PostgreSQL. */
import {
  type AliasedRawBuilder,
  type Expression,
  type Kysely,
  PostgresAdapter,
  type RawBuilder,
  type SqlBool,
  sql,
} from 'kysely';
import { ftsQuery } from './fts.ts';
import type { Reader } from './store.ts';
import type { Tables } from './tables.ts';

/** Whether this is the query builder of a PostgreSQL database. */
export function isPostgres(builder: Kysely<Tables>): boolean {
  return builder.getExecutor().adapter instanceof PostgresAdapter;
}

/**
 * A table expression with the strings in a JSON array, named `each`, which passes any number of values as one parameter.
 * `key` grows with the index.
 */
export function jsonArrayTable(
  { sql: builder }: Pick<Reader, 'sql'>,
  json: string,
): AliasedRawBuilder<{ key: number; value: string }, 'each'> {
  return isPostgres(builder)
    ? sql<never>`json_array_elements_text(${json}::json) WITH ORDINALITY`.as<'each'>(sql`"each"(value, key)`)
    : sql<never>`json_each(${json})`.as('each');
}

/** The same for the numbers in a JSON array. */
export function jsonNumberTable(
  { sql: builder }: Pick<Reader, 'sql'>,
  json: string,
): AliasedRawBuilder<{ key: number; value: number }, 'each'> {
  return isPostgres(builder)
    ? sql<never>`(SELECT text::bigint, key FROM json_array_elements_text(${json}::json) WITH ORDINALITY AS numbers(text, key))`.as<'each'>(
        sql`"each"(value, key)`,
      )
    : sql<never>`json_each(${json})`.as('each');
}

/** Whether the JSON object in a column has a property with this value, which is a string. */
export function hasJsonProperty(
  { sql: builder }: Pick<Reader, 'sql'>,
  column: string,
  name: string,
  value: string,
): RawBuilder<SqlBool> {
  const object = sql.ref(column);
  return isPostgres(builder)
    ? sql`${object}::json ->> ${name}::text = ${value}`
    : sql`EXISTS (SELECT 1 FROM json_each(${object}) WHERE key = ${name} AND value = ${value})`;
}

/** Whether a text contains a word, without regard to the case of ASCII letters. */
export function containsWord(
  { sql: builder }: Pick<Reader, 'sql'>,
  text: Expression<string>,
  word: string,
): RawBuilder<SqlBool> {
  const position = isPostgres(builder) ? sql`strpos` : sql`instr`;
  return sql`${position}(lower(${text}), lower(${word})) > 0`;
}

/**
 * Whether the text of a row of `messages` contains all of these words and phrases, of which there is at least one. It uses
 * the full-text index. `after_num`: only rows with larger numbers are selected.
 */
export function messageContains(
  { sql: builder }: Pick<Reader, 'sql'>,
  phrases: readonly string[],
  after_num: number,
): RawBuilder<SqlBool> {
  if (!isPostgres(builder))
    return sql`messages.num IN (SELECT rowid FROM messages_words WHERE messages_words MATCH ${ftsQuery(phrases)} AND rowid > ${after_num})`;
  const queries = phrases.map((phrase) => sql`search_phrase(${phrase})`);
  return sql`search_words(messages.text) @@ (${sql.join(queries, sql` && `)})`;
}
