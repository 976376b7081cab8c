/** A PostgreSQL primary and its streaming standby, which tests promote. They listen on sockets only, and end with `close`. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, chown, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { test } from 'vitest';
import { sleep } from '../base/async.ts';
import { execute } from './postgres.ts';
import { programs, serverUser } from './postgres-programs.ts';

const START_MS = 30_000;

const run = promisify(execFile);

/** The same as `test`, but skipped without the programs of PostgreSQL on this machine. */
export const postgresPairTest = test.skipIf(programs === undefined);

class TestServer {
  readonly url: string;
  readonly folder: string;
  #process: ChildProcess | null = null;

  constructor(folder: string) {
    this.folder = folder;
    this.url = `postgres://svc@localhost/postgres?host=${encodeURIComponent(folder)}`;
  }

  get data(): string {
    return join(this.folder, 'data');
  }

  async start(): Promise<void> {
    const settings = ['-c', 'listen_addresses=', '-c', `unix_socket_directories=${this.folder}`];
    const options = { cwd: this.folder, stdio: 'ignore', ...serverUser() } as const;
    this.#process = spawn(join(programs!, 'postgres'), ['-D', this.data, ...settings], options);
    const end_ms = performance.now() + START_MS;
    while (!(await this.#answers())) {
      if (performance.now() >= end_ms || this.#process.exitCode !== null) {
        throw new Error(`PostgreSQL does not start in ${this.folder}`);
      }
      await sleep(50);
    }
  }

  /** Ends the server without a checkpoint. */
  async kill(): Promise<void> {
    if (this.#process === null || this.#process.exitCode !== null) return;
    const ended = once(this.#process, 'exit');
    this.#process.kill('SIGQUIT');
    await ended;
  }

  #answers(): Promise<boolean> {
    return execute(this.url, 'SELECT 1').then(
      () => true,
      () => false,
    );
  }
}

export class PostgresPair {
  readonly primary: TestServer;
  readonly standby: TestServer;
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.primary = new TestServer(join(folder, 'a'));
    this.standby = new TestServer(join(folder, 'b'));
  }

  static async start(): Promise<PostgresPair> {
    const folder = await mkdtemp(join(tmpdir(), 'svc-pair-'));
    const pair = new PostgresPair(folder);
    const { primary, standby } = pair;
    const user = serverUser();
    for (const path of [folder, primary.folder, standby.folder]) {
      await mkdir(path, { recursive: true });
      if (user !== null) await chown(path, user.uid, user.gid);
    }
    try {
      const as = { cwd: folder, ...user };
      const initdb = ['--username=svc', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'];
      await run(join(programs!, 'initdb'), [`--pgdata=${primary.data}`, ...initdb], as);
      await appendFile(
        join(primary.data, 'postgresql.conf'),
        'fsync = off\nshared_buffers = 16MB\nautovacuum = off\nhot_standby = on\n',
      );
      await primary.start();
      const source = [`--host=${primary.folder}`, '--username=svc', '--checkpoint=fast', '--no-sync'];
      const target = [`--pgdata=${standby.data}`, '--write-recovery-conf'];
      await run(join(programs!, 'pg_basebackup'), [...source, ...target], as);
      await standby.start();
      return pair;
    } catch (error) {
      await pair.close();
      throw error;
    }
  }

  /** Waits until the standby has what was committed on the primary. */
  async caughtUp(): Promise<void> {
    const [primary] = await execute(this.primary.url, 'SELECT pg_current_wal_flush_lsn()::text AS lsn');
    const query = `SELECT pg_last_wal_replay_lsn() >= '${String(primary!.lsn)}' AS done`;
    while ((await execute(this.standby.url, query))[0]!.done !== true) await sleep(20);
  }

  /** Commits wait for the standby from now on. */
  async synchronize(): Promise<void> {
    await execute(this.primary.url, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    await execute(this.primary.url, 'SELECT pg_reload_conf()');
    const query = "SELECT count(*)::int AS found FROM pg_stat_replication WHERE sync_state = 'sync'";
    while ((await execute(this.primary.url, query))[0]!.found !== 1) await sleep(20);
  }

  /** The standby receives nothing more. */
  async detach(): Promise<void> {
    await execute(this.standby.url, "ALTER SYSTEM SET primary_conninfo = ''");
    await execute(this.standby.url, 'SELECT pg_reload_conf()');
    const query = 'SELECT count(*)::int AS found FROM pg_stat_replication';
    while ((await execute(this.primary.url, query))[0]!.found !== 0) await sleep(20);
  }

  /** Makes the standby a primary. The former primary keeps running. */
  async promote(): Promise<void> {
    await execute(this.standby.url, 'SELECT pg_promote()');
  }

  async close(): Promise<void> {
    await Promise.all([this.primary.kill(), this.standby.kill()]);
    await rm(this.#folder, { recursive: true, force: true });
  }
}
