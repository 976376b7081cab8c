/** What a transfer copies: the tables that SQLite and PostgreSQL have in common, as the current schema has them. */
import { DatabaseSync } from 'node:sqlite';
import { migrate } from '../migrate.ts';

/** The values of a row in the order of the table's columns: null, numbers, strings and byte arrays. */
export type Row = readonly unknown[];

export interface TransferTable {
  name: string;
  columns: readonly string[];
}

/** The blocks of segments: rows in PostgreSQL, files in SQLite. */
export const BLOCKS = 'segment_blocks';
const blocks: TransferTable = { name: BLOCKS, columns: ['agent_num', 'path', 'at', 'data'] };

/**
 * The control planes that run, with the numbers of their claims. Another database counts claims anew, so a new control plane
 * would have the number of an old one.
 */
const PLANES = 'planes';

/** All tables to copy. Those to which a table has foreign keys come before it. */
export function transferTables(): TransferTable[] {
  const db = new DatabaseSync(':memory:');
  try {
    migrate(db, ':memory:');
    const texts = (sql: string, ...values: string[]) =>
      db
        .prepare(sql)
        .all(...values)
        .map(({ name }) => String(name));
    // Indexes for full-text search are virtual tables with tables of their own; the messages fill them.
    const names = texts(
      `SELECT name FROM pragma_table_list
        WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name`,
    );
    const parents = new Map(
      names.map((name) => [name, texts('SELECT "table" AS name FROM pragma_foreign_key_list(?)', name)]),
    );
    parents.delete(PLANES);
    const tables = parentsFirst(parents).map((name) => {
      return { name, columns: texts('SELECT name FROM pragma_table_info(?) ORDER BY cid', name) };
    });
    return [...tables, blocks];
  } finally {
    db.close();
  }
}

function parentsFirst(parents: ReadonlyMap<string, readonly string[]>): string[] {
  const sorted: string[] = [];
  while (sorted.length < parents.size) {
    const next = [...parents].find(
      ([name, needed]) =>
        !sorted.includes(name) && needed.every((parent) => parent === name || sorted.includes(parent)),
    );
    if (next === undefined) throw new Error('the foreign keys of the schema form a cycle');
    sorted.push(next[0]);
  }
  return sorted;
}

/** Quotes a name for SQL, because some columns are named like keywords. */
export function quoted(name: string): string {
  return `"${name}"`;
}

export function columnList({ columns }: TransferTable): string {
  return columns.map(quoted).join();
}
