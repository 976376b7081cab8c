/** PgBouncer for tests, which are skipped if it is not installed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { sleep } from '../base/async.ts';
import { execute } from './postgres.ts';
import { postgres_missing, serverUser } from './postgres-programs.ts';

const pgbouncer = ['/usr/sbin', ...(process.env.PATH ?? '').split(':')]
  .map((folder) => join(folder, 'pgbouncer'))
  .find(existsSync);
/** In CI they fail. */
const is_missing = pgbouncer === undefined && !process.env.CI;
if (is_missing) console.warn('skipping the tests with PgBouncer: it is not installed');

export const pgbouncerTest = test.skipIf(postgres_missing || is_missing);

/** Starts PgBouncer in front of a database, with a `pool_mode` and a line of other settings. */
export async function startPgBouncer(url: string, mode: string, more: string) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-pgbouncer-'));
  const user = serverUser();
  if (user !== null) await chown(folder, user.uid, user.gid);
  const target = new URL(url);
  const host = target.searchParams.get('host') ?? target.hostname;
  const server = `host=${host} port=${target.port || 5432} user=${target.username} password=${target.password || 'none'}`;
  const settings = [
    ...[
      '[databases]',
      `* = ${server}`,
      '[pgbouncer]',
      'auth_type = any',
      'listen_addr =',
      'listen_port = 5432',
    ],
    ...[`unix_socket_dir = ${folder}`, `pool_mode = ${mode}`, more],
  ];
  await writeFile(join(folder, 'settings'), settings.join('\n'));
  const pooler = spawn(pgbouncer!, ['-q', join(folder, 'settings')], { stdio: 'ignore', ...user });
  const exited = once(pooler, 'exit');
  target.searchParams.set('host', folder);
  while (pooler.exitCode === null) {
    const answers = await execute(target.href, 'SELECT 1').catch(() => null);
    if (answers !== null) break;
    await sleep(20);
  }
  const stop = async () => {
    pooler.kill('SIGKILL');
    await exited;
    await rm(folder, { recursive: true, force: true });
  };
  return { url: target.href, stop };
}
