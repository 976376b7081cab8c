/**
 * Migrates a database to the program's schema in numbered steps, of which only one program at a time runs any. The first
 * one creates the schema that SQLite has after the same number of steps. Later ones are those of SQLite, with other
 * names of types.
 */
import type pg from 'pg';
import { silentLog } from '../../base/log.ts';
import { DatabaseTooNew, migrations } from '../migrate.ts';
import type { PostgresServer } from '../store.ts';
import { openClient } from './open-client.ts';
import { isDirect, POOLER } from './pooler.ts';
import { sql as accounts } from './schema/accounts.ts';
import { sql as agents } from './schema/agents.ts';
import { sql as events } from './schema/events.ts';
import { sql as numbers } from './schema/numbers.ts';
import { sql as teams } from './schema/teams.ts';
import { sql as work } from './schema/work.ts';
import { Server } from './server.ts';

/** The schema version that the first step creates. */
const INITIAL_VERSION = 27;

/** Step 0 creates version 27, step n version 27 + n. Released steps must not change. */
export const steps: readonly string[] = [
  [accounts, teams, agents, events, work, numbers].join(''),
  ...migrations.slice(INITIAL_VERSION),
];

/** Any number that no other program uses for a lock in this database. */
const LOCK = 7_782_115_201;

/** The server or the database has properties that svc cannot work with. */
export class UnsupportedDatabase extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UnsupportedDatabase';
  }
}

/**
 * Runs the missing steps, each in its own transaction, and returns how many there were. Waits while another program
 * does. `server` has the host that is tried first. Throws `DatabaseTooNew`, `UnsupportedDatabase`, or the driver's error.
 */
export async function migrate(
  database: PostgresServer,
  all_steps: readonly string[] = steps,
  server = new Server({ url: database.url, log: silentLog }),
): Promise<number> {
  const client = await openClient(database, server);
  try {
    await checkSupported(client);
    await client.query(`SELECT pg_advisory_lock(${LOCK})`);
    await client.query('CREATE TABLE IF NOT EXISTS schema_version (version bigint NOT NULL)');
    const { rows } = await client.query<{ version: string }>('SELECT version FROM schema_version');
    const known = INITIAL_VERSION + all_steps.length - 1;
    const found = rows.length === 0 ? INITIAL_VERSION - 1 : Number(rows[0]!.version);
    if (found > known) throw new DatabaseTooNew(client.database ?? '', found, known, 'start a newer svc');
    for (let version = found + 1; version <= known; version++) {
      await client.query(`
        BEGIN;
        ${withPostgresTypes(all_steps[version - INITIAL_VERSION]!)}
        DELETE FROM schema_version;
        INSERT INTO schema_version VALUES (${version});
        COMMIT`);
    }
    return known - found;
  } finally {
    // Also releases the lock.
    await client.end();
  }
}

/** Throws `UnsupportedDatabase`. */
export async function checkSupported(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ version: string; encoding: string; is_standby: boolean }>(
    `SELECT current_setting('server_version_num') AS version, current_setting('server_encoding') AS encoding,
      pg_is_in_recovery() AS is_standby`,
  );
  const { version, encoding, is_standby } = rows[0]!;
  if (!(await isDirect(client))) throw new UnsupportedDatabase(POOLER);
  if (Number(version) < 140_000) throw new UnsupportedDatabase('svc needs PostgreSQL 14 or later');
  if (is_standby) throw new UnsupportedDatabase('the server is a standby, which only reads; use the primary');
  if (encoding !== 'UTF8') {
    throw new UnsupportedDatabase(
      `the database has the encoding ${encoding}; create it with ENCODING 'UTF8' TEMPLATE template0`,
    );
  }
}

const postgresTypes: Record<string, string> = {
  INTEGER: 'bigint',
  BLOB: 'bytea',
  // SQLite compares the bytes of texts, whatever the database's collation is.
  TEXT: 'text COLLATE "C"',
};

/** Replaces the names of SQLite's types, which must be in upper case and nowhere else in the text. */
export function withPostgresTypes(sql: string): string {
  return sql.replaceAll(/\b(INTEGER|BLOB|TEXT)\b/g, (name) => postgresTypes[name]!);
}
