/** Compares the schemas of both databases, so that they cannot drift apart. */
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect } from 'vitest';
import { createDatabase, execute, postgresTest, type TestDatabase } from '../../testing/postgres.ts';
import { migrate } from '../migrate.ts';

/** Tables that only one of the databases needs. */
const sqlite_only = "name LIKE 'sqlite%' OR name LIKE 'messages_words%'";
const postgres_only = "'gate', 'plane_claim', 'schema_version', 'segment_blocks'";

let sqlite: DatabaseSync;
let postgres: TestDatabase | undefined;

beforeAll(() => {
  sqlite = new DatabaseSync(':memory:');
  migrate(sqlite, 'test');
  sqlite.exec(
    `CREATE TEMP VIEW tables AS SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND NOT (${sqlite_only})`,
  );
});
afterAll(async () => {
  sqlite.close();
  await postgres?.drop();
});

/** Each test compares the lines that these two queries return. */
async function compare(in_sqlite: string, in_postgres: string): Promise<void> {
  postgres ??= await createDatabase();
  const lines = (rows: Record<string, unknown>[]) => rows.map(({ line }) => String(line)).toSorted();
  const expected = lines(sqlite.prepare(in_sqlite).all());
  expect(expected.length).toBeGreaterThan(10);
  expect(lines(await execute(postgres.url, in_postgres))).toEqual(expected);
}

postgresTest('has the same columns, with the same types and defaults', () =>
  compare(
    `SELECT tables.name || '.' || columns.name || ' ' || columns.type
        || iif(columns."notnull" OR columns.pk, ' not null', '') || coalesce(' ' || dflt_value, '') AS line
      FROM tables, pragma_table_info(tables.name) AS columns`,
    `SELECT table_name || '.' || column_name
        || CASE data_type WHEN 'text' THEN ' TEXT' WHEN 'bytea' THEN ' BLOB' ELSE ' INTEGER' END
        || CASE is_nullable WHEN 'NO' THEN ' not null' ELSE '' END
        || coalesce(' ' || regexp_replace(column_default, '::.*', ''), '') AS line
      FROM information_schema.columns
      WHERE table_schema = 'public' AND table_name NOT IN (${postgres_only})
        AND data_type IN ('text', 'bytea', 'bigint', 'smallint')`,
  ),
);

postgresTest('has the same unique keys', () =>
  compare(
    `SELECT tables.name || '(' || group_concat(columns.name ORDER BY columns.seqno) || ')' AS line
      FROM tables, pragma_index_list(tables.name) AS indexes, pragma_index_info(indexes.name) AS columns
      WHERE indexes."unique" GROUP BY tables.name, indexes.name
      UNION SELECT tables.name || '(' || columns.name || ')'
      FROM tables, pragma_table_info(tables.name) AS columns
      WHERE columns.pk = 1 AND columns.type = 'INTEGER' AND tables.sql LIKE '% INTEGER PRIMARY KEY%'
        AND tables.name <> 'events'`,
    indexesInPostgres('indisunique', "''"),
  ),
);

postgresTest('has the same indexes', () =>
  compare(
    `SELECT indexes.name || ' ' || tables.name || '(' || group_concat(columns.name ORDER BY columns.seqno) || ')'
        || iif(indexes.partial, ' partial', '') AS line
      FROM tables, pragma_index_list(tables.name) AS indexes, pragma_index_info(indexes.name) AS columns
      WHERE NOT indexes."unique" GROUP BY tables.name, indexes.name`,
    indexesInPostgres("NOT indisunique AND indexes.relname <> 'messages_words'", "indexes.relname || ' '"),
  ),
);

function indexesInPostgres(condition: string, prefix: string): string {
  return `SELECT ${prefix} || tables.relname || '(' || string_agg(attname, ',' ORDER BY number) || ')'
        || CASE WHEN indpred IS NULL THEN '' ELSE ' partial' END AS line
      FROM pg_index JOIN pg_class AS indexes ON indexes.oid = indexrelid JOIN pg_class AS tables ON tables.oid = indrelid,
        unnest(indkey::int2[]) WITH ORDINALITY AS keys(attnum, number)
        JOIN LATERAL (SELECT attname FROM pg_attribute
          WHERE attrelid = indrelid AND pg_attribute.attnum = keys.attnum) AS attributes ON true
      WHERE tables.relnamespace = 'public'::regnamespace AND tables.relname NOT IN (${postgres_only}) AND ${condition}
      GROUP BY indexes.relname, tables.relname, indpred IS NULL`;
}

postgresTest('has the same foreign keys', () =>
  compare(
    `SELECT tables.name || '.' || keys."from" || ' ' || keys."table" || ' ' || keys.on_delete AS line
      FROM tables, pragma_foreign_key_list(tables.name) AS keys`,
    `SELECT conrelid::regclass || '.' || attname || ' ' || confrelid::regclass
        || CASE confdeltype WHEN 'c' THEN ' CASCADE' WHEN 'n' THEN ' SET NULL' END AS line
      FROM pg_constraint JOIN pg_attribute ON attrelid = conrelid AND attnum = conkey[1] WHERE contype = 'f'`,
  ),
);

postgresTest('allows the same values', async () => {
  postgres ??= await createDatabase();
  const line = (table: unknown, check: unknown) =>
    `${table} ${[...String(check).matchAll(/'\w+'/g)].map(String).toSorted()}`;
  const in_sqlite = sqlite
    .prepare('SELECT name, sql FROM tables')
    .all()
    .flatMap(({ name, sql }) =>
      [...String(sql).matchAll(/CHECK\s*\(\w+ IN \(([^)]*)\)/g)].map(([, values]) => line(name, values)),
    );
  const in_postgres = await execute(
    postgres.url,
    `SELECT conrelid::regclass AS name, pg_get_constraintdef(oid) AS check FROM pg_constraint
      WHERE contype = 'c' AND conrelid <> 0 AND pg_get_constraintdef(oid) LIKE '%ANY%'`,
  );
  expect(in_sqlite.length).toBeGreaterThan(10);
  expect(in_postgres.map(({ name, check }) => line(name, check)).toSorted()).toEqual(in_sqlite.toSorted());
});

postgresTest('compares texts by their bytes', async () => {
  postgres ??= await createDatabase();
  const others = await execute(
    postgres.url,
    `SELECT table_name, column_name FROM information_schema.columns
      WHERE table_schema = 'public' AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'`,
  );
  expect(others).toEqual([]);
});
