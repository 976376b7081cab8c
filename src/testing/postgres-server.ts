/** A PostgreSQL server for one test, which may crash, fill its disk and start again. */
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

export const run = promisify(execFile);

/** The same as `test`, but skipped without the programs of PostgreSQL on this machine. */
export const postgresServerTest = test.skipIf(programs === undefined);

export interface TestServerOptions {
  /** An existing folder for the server's files; absent: a new one, which `drop` deletes. */
  folder?: string;
  /** The folder of the write-ahead log; absent: in the data directory. */
  wal?: string;
  /** Additional settings. */
  settings?: Readonly<Record<string, string>>;
  /** Networks from which everybody may connect, such as `10.9.1.0/24`. */
  clients?: string;
}

export class TestServer {
  readonly folder: string;
  readonly url: string;
  readonly #owned: boolean;
  #process: ChildProcess | null = null;

  /** A server whose data directory is in the folder, or will be. */
  constructor(folder: string, owned = false) {
    this.folder = folder;
    this.url = `postgres://svc@localhost/postgres?host=${encodeURIComponent(folder)}`;
    this.#owned = owned;
  }

  /** Creates a server and starts it. */
  static async open(options: TestServerOptions = {}): Promise<TestServer> {
    const folder = options.folder ?? (await mkdtemp(join(tmpdir(), 'svc-server-')));
    const server = new TestServer(folder, options.folder === undefined);
    try {
      await server.create(options);
      await server.start();
      return server;
    } catch (error) {
      await server.drop();
      throw error;
    }
  }

  get data(): string {
    return join(this.folder, 'data');
  }

  get isRunning(): boolean {
    const child = this.#process;
    return child !== null && child.exitCode === null && child.signalCode === null;
  }

  /** Creates the data directory. Without `fsync`: tests end the server, not the machine. */
  async create({ wal, settings = {}, clients }: TestServerOptions = {}): Promise<void> {
    await mkdir(this.folder, { recursive: true });
    const user = serverUser();
    if (user !== null) {
      for (const path of [this.folder, ...(wal === undefined ? [] : [wal])])
        await chown(path, user.uid, user.gid);
    }
    const options = ['--username=svc', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'];
    const places = [`--pgdata=${this.data}`, ...(wal === undefined ? [] : [`--waldir=${wal}`])];
    await run(join(programs!, 'initdb'), [...places, ...options], { cwd: this.folder, ...user });
    const all = {
      fsync: 'off',
      shared_buffers: '16MB',
      autovacuum: 'off',
      hot_standby: 'on',
      listen_addresses: '',
      ...settings,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name} = '${value}'\n`);
    await appendFile(join(this.data, 'postgresql.conf'), lines.join(''));
    if (clients !== undefined)
      await appendFile(join(this.data, 'pg_hba.conf'), `host all all ${clients} trust\n`);
  }

  /** Resolves when the server answers. */
  async start(): Promise<void> {
    const settings = ['-c', `unix_socket_directories=${this.folder}`];
    const options = { cwd: this.folder, stdio: 'ignore', ...serverUser() } as const;
    this.#process = spawn(join(programs!, 'postgres'), ['-D', this.data, ...settings], options);
    const end_ms = performance.now() + START_MS;
    while (!(await this.answers())) {
      if (performance.now() >= end_ms || !this.isRunning) {
        throw new Error(`PostgreSQL does not start in ${this.folder}`);
      }
      await sleep(50);
    }
  }

  /** Ends the server without a checkpoint, like `pg_ctl stop -m immediate`. */
  async kill(): Promise<void> {
    if (!this.isRunning) return;
    const ended = once(this.#process!, 'exit');
    this.#process!.kill('SIGQUIT');
    await ended;
  }

  /** Ends the server, and deletes its folder unless the test gave it one. */
  async drop(): Promise<void> {
    await this.kill();
    if (this.#owned) await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  answers(): Promise<boolean> {
    return execute(this.url, 'SELECT 1').then(
      () => true,
      () => false,
    );
  }
}
