/**
 * Databases on a PostgreSQL server for tests: the one at `SVC_TEST_POSTGRES_URL`, whose user may create databases, or else
 * one that the first test starts with the programs of this machine. It ends with the test run. Without these programs,
 * tests are skipped, except in CI, where PostgreSQL is always installed.
 */
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { chown, mkdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { test } from 'vitest';
import { sleep } from '../base/async.ts';
import { migrate, steps } from '../store/postgres/migrate.ts';
import { external_url, postgres_missing, programs, serverUser } from './postgres-programs.ts';

const SERVER_START_MS = 30_000;
/** Any number, for a lock that tests hold while they create the template. */
const LOCK = 4_711;

export const postgresTest = test.skipIf(postgres_missing);

export interface TestDatabase {
  url: string;
  /** Closes the connections to the database and deletes it. */
  drop(): Promise<void>;
}

/** Creates an empty database with the current schema. */
export async function createDatabase(): Promise<TestDatabase> {
  const server = await serverUrl();
  const template = await templateOf(server);
  const name = `svc_test_${randomBytes(6).toString('hex')}`;
  await execute(server, `CREATE DATABASE ${name} TEMPLATE ${template}`);
  return {
    url: withDatabase(server, name),
    drop: async () => void (await execute(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)),
  };
}

/** Creates an empty database without a schema. */
export async function createEmptyDatabase(options = ''): Promise<TestDatabase> {
  const server = await serverUrl();
  const name = `svc_test_${randomBytes(6).toString('hex')}`;
  await execute(server, `CREATE DATABASE ${name} TEMPLATE template0 ${options}`);
  return {
    url: withDatabase(server, name),
    drop: async () => void (await execute(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)),
  };
}

/** Runs one statement on a connection of its own, and returns the rows as objects. Numbers are texts. */
export async function execute(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}

function withDatabase(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}

let template: Promise<string> | undefined;

/** The name of a database with the current schema, which is created if it does not exist. */
function templateOf(server: string): Promise<string> {
  template ??= createTemplate(server).catch((error: unknown) => {
    template = undefined;
    throw error;
  });
  return template;
}

async function createTemplate(server: string): Promise<string> {
  const name = `svc_test_schema_${createHash('sha256').update(steps.join()).digest('hex').slice(0, 12)}`;
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    await client.query(`SELECT pg_advisory_lock(${LOCK})`);
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [name]);
    if (rowCount === 0) {
      // It gets its name when it is complete.
      await client.query(`DROP DATABASE IF EXISTS ${name}_new`);
      await client.query(`CREATE DATABASE ${name}_new TEMPLATE template0`);
      await migrate({ url: withDatabase(server, `${name}_new`) });
      await client.query(`ALTER DATABASE ${name}_new RENAME TO ${name}`);
    }
    return name;
  } finally {
    await client.end();
  }
}

let server: Promise<string> | undefined;
let server_tries = 0;

function serverUrl(): Promise<string> {
  if (external_url !== undefined) return Promise.resolve(external_url);
  server ??= startServer().catch((error: unknown) => {
    // A slow machine may need longer. A server that cannot start must not delay each test.
    if (++server_tries < 3) server = undefined;
    throw error;
  });
  return server;
}

/** Starts the server of this test run, unless another test file did. */
async function startServer(): Promise<string> {
  if (programs === undefined) throw new Error('PostgreSQL is not installed');
  // The parent is the process of the test run.
  const folder = join(tmpdir(), `svc-postgres-${process.ppid}`);
  const url = `postgres://svc@localhost/postgres?host=${encodeURIComponent(folder)}`;
  try {
    await mkdir(folder);
    const user = serverUser();
    if (user !== null) await chown(folder, user.uid, user.gid);
    const script = join(import.meta.dirname, 'postgres.sh');
    const options = { cwd: folder, detached: true, stdio: 'ignore', ...user } as const;
    spawn('/bin/sh', [script, String(process.ppid), programs], options).unref();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const end_ms = performance.now() + SERVER_START_MS;
  for (;;) {
    try {
      await execute(url, 'SELECT 1');
      return url;
    } catch (error) {
      if (performance.now() < end_ms) {
        await sleep(50);
        continue;
      }
      const output = await readFile(join(folder, 'output'), 'utf8').catch(() => '');
      throw new Error(`PostgreSQL does not start: ${output}`, { cause: error });
    }
  }
}
