/** A PostgreSQL server for the bench, which syncs every commit like one in production. It ends with the bench. */
import { spawn } from 'node:child_process';
import { chown, mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { sleep } from '../src/base/async.ts';
import { programs, serverUser } from '../src/testing/postgres-programs.ts';
import { cpuSecondsWithChildren } from './machine.ts';

const START_MS_MAX = 60_000;

export interface PostgresBench {
  /** Creates an empty database, and returns its URL. */
  create(): Promise<string>;
  /** Processor time of the server so far, in seconds. */
  cpuSeconds(): number;
}

let server: Promise<PostgresBench> | undefined;

/** The server of this run, which the first call starts. Throws if PostgreSQL is not installed. */
export function postgresServer(): Promise<PostgresBench> {
  server ??= start();
  return server;
}

async function start(): Promise<PostgresBench> {
  if (programs === undefined) throw new Error('PostgreSQL is not installed');
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-postgres-'));
  const user = serverUser();
  if (user !== null) await chown(folder, user.uid, user.gid);
  const script = fileURLToPath(new URL('../src/testing/postgres.sh', import.meta.url));
  const options = { cwd: folder, detached: true, stdio: 'ignore', ...user } as const;
  spawn('/bin/sh', [script, String(process.pid), programs, 'durable'], options).unref();
  const urlOf = (name: string) => `postgres://svc@localhost/${name}?host=${encodeURIComponent(folder)}`;
  await untilStarted(urlOf('postgres'));
  const [pid = ''] = (await readFile(join(folder, 'data/postmaster.pid'), 'utf8')).split('\n');
  let databases = 0;
  return {
    async create() {
      const name = `bench_${++databases}`;
      await execute(urlOf('postgres'), `CREATE DATABASE ${name} ENCODING 'UTF8' TEMPLATE template0`);
      return urlOf(name);
    },
    cpuSeconds: () => cpuSecondsWithChildren(Number(pid)),
  };
}

async function untilStarted(url: string): Promise<void> {
  const end_ms = performance.now() + START_MS_MAX;
  for (;;) {
    try {
      return await execute(url, 'SELECT 1');
    } catch (error) {
      if (performance.now() >= end_ms) throw new Error('PostgreSQL does not start', { cause: error });
      await sleep(50);
    }
  }
}

async function execute(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  try {
    await client.connect();
    await client.query(sql);
  } finally {
    await client.end();
  }
}
