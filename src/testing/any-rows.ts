/** Rows for every table of the schema, so that a test of all tables cannot forget a new one. */
import { DatabaseSync } from 'node:sqlite';
import { migrate } from '../store/migrate.ts';
import { BLOCKS, type Row, type TransferTable, transferTables } from '../store/transfer/tables.ts';

const ROWS = 3;
/** The name of a table with at most one row. */
const SINGLE = /CHECK \(id = 1\)/;

interface Column {
  name: string;
  type: string;
  parent: { table: string; column: string } | undefined;
  values: string[];
}

/**
 * Some rows of each table, parents first. Texts have several alphabets and depend on table, column and row, references lead to
 * rows of the same number, and every other row has null where that is allowed.
 */
export function anyRows(): Map<TransferTable, Row[]> {
  const db = new DatabaseSync(':memory:');
  try {
    migrate(db, ':memory:');
    const made = new Map<TransferTable, Row[]>();
    for (const table of transferTables()) {
      if (table.name === BLOCKS) continue;
      const { sql } = db.prepare('SELECT sql FROM sqlite_schema WHERE name = ?').get(table.name)!;
      const columns = columnsOf(db, table.name, String(sql));
      const count = SINGLE.test(String(sql)) ? 1 : ROWS;
      made.set(
        table,
        Array.from({ length: count }, (_, row) =>
          columns.map((column) => anyValue(table.name, column, row + 1)),
        ),
      );
    }
    return made;
  } finally {
    db.close();
  }
}

function columnsOf(db: DatabaseSync, table: string, sql: string): (Column & { nullable: boolean })[] {
  const keys = db.prepare('SELECT "from", "table", "to" FROM pragma_foreign_key_list(?)').all(table);
  return db
    .prepare('SELECT name, type, "notnull", pk FROM pragma_table_info(?) ORDER BY cid')
    .all(table)
    .map((column) => {
      const name = String(column.name);
      const key = keys.find(({ from }) => from === name);
      const check =
        new RegExp(`\\b${name} \\w+[^,]*?CHECK\\s*\\(${name} IN \\(([^)]*)\\)`).exec(sql)?.[1] ?? '';
      return {
        name,
        type: String(column.type),
        nullable: column.notnull === 0 && column.pk === 0,
        parent: key && { table: String(key.table), column: String(key.to) },
        values: [...check.matchAll(/'(\w+)'/g)].map(([, value]) => value!),
      };
    });
}

function anyValue(
  table: string,
  { name, type, parent, values, nullable }: Column & { nullable: boolean },
  row: number,
): unknown {
  if (parent) return anyValue(parent.table, { ...keyOf(parent.column), nullable: false }, row);
  if (nullable && row % 2 === 0) return null;
  if (values.length > 0) return values[row % values.length];
  if (name === 'stream' || name === 'type') return row;
  // So far only numbers from 0 to 3 are stored in some of the columns, as `smallint`.
  if (type === 'INTEGER') return row;
  if (type === 'BLOB') return new Uint8Array([0, 255, 10, 39, 92, row, ...Buffer.from(name)]);
  return `${table}.${name} ${row} ä '"\\ \u{1f980} \n\t`;
}

/** A column that others refer to. */
function keyOf(name: string): Column {
  return { name, type: name === 'num' ? 'INTEGER' : 'TEXT', parent: undefined, values: [] };
}
