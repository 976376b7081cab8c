/** A PostgreSQL primary and its streaming standby, which tests promote. They listen on sockets only, and end with `close`. */
import { chown, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep } from '../base/async.ts';
import { execute } from './postgres.ts';
import { programs, serverUser } from './postgres-programs.ts';
import { run, TestServer } from './postgres-server.ts';

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
      await primary.create();
      await primary.start();
      const source = [`--host=${primary.folder}`, '--username=svc', '--checkpoint=fast', '--no-sync'];
      const target = [`--pgdata=${standby.data}`, '--write-recovery-conf'];
      await run(join(programs!, 'pg_basebackup'), [...source, ...target], { cwd: folder, ...user });
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
