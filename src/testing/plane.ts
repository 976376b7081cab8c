/**
 * The real program for tests: `svc serve` as a separate process with its own data directory and a free port, used like a client
 * does. It can be killed and started again with the same data. Closing it ends every agent that it started.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sleep } from '../base/async.ts';
import { systemClock } from '../base/clock.ts';
import { silentLog } from '../base/log.ts';
import { Client, type Frame } from '../client/client.ts';
import type { Agent } from '../features/agents/rules.ts';
import { openLocalNode } from '../node/node.ts';
import { COMPILED } from './compiled.ts';
import { reportIfFailed } from './failure-logs.ts';
import { sharedLauncher } from './local-node.ts';
import { openPace } from './pace.ts';

export const SVC = fileURLToPath(new URL('../../bin/svc', import.meta.url));
export const ROOT = { username: 'ana', password: 'correct horse battery' };

export interface PlaneOptions {
  /** Additional environment variables of the service. */
  env?: Record<string, string>;
  /** The parent of the test's folder; absent: the system's temporary folder, which is empty in a sandbox. */
  base?: string;
  /** An existing data directory, for example on a small file system; absent: a new one. */
  data_dir?: string;
  /** The `svc` to run; absent: the one in this source tree. */
  program?: string;
  /** A network namespace in which the service runs, and its address there. */
  network?: { netns: string; host: string };
}

export class TestPlane {
  readonly folder: string;
  readonly data_dir: string;
  /** A safe path, in which workdirs may be. */
  readonly work: string;
  /** The `svc` to run. Another one is run at the next start. */
  program: string;
  readonly #env: Record<string, string>;
  readonly #network: PlaneOptions['network'];
  #port = 0;
  #process: ChildProcess | null = null;
  #token: string | null = null;
  #log = '';

  private constructor(folder: string, work: string, options: PlaneOptions) {
    this.folder = folder;
    this.data_dir = options.data_dir ?? join(folder, 'data');
    this.work = work;
    this.#env = options.env ?? {};
    this.program = options.program ?? SVC;
    reportIfFailed(`the plane in ${folder}`, this);
    this.#network = options.network;
  }

  /** Starts the service and creates the root user. */
  static async open(options: PlaneOptions = {}): Promise<TestPlane> {
    const plane = await TestPlane.prepare(options);
    await plane.start();
    await plane.join();
    return plane;
  }

  /** Creates the folders. Does not start the service. */
  static async prepare(options: PlaneOptions = {}): Promise<TestPlane> {
    const folder = await realpath(await mkdtemp(join(options.base ?? tmpdir(), 'svc-plane-')));
    const work = join(folder, 'work');
    await mkdir(work);
    await writeEmptyConfig(join(folder, 'config'));
    return new TestPlane(folder, work, options);
  }

  get url(): string {
    return `http://${this.#listen}`;
  }

  get #listen(): string {
    return `${this.#network?.host ?? '127.0.0.1'}:${this.#port}`;
  }

  get pid(): number {
    return this.#process!.pid!;
  }

  /** The output of all processes of this service so far. */
  get log(): string {
    return this.#log;
  }

  get token(): string {
    return this.#token!;
  }

  /** A client with root's token. */
  get client(): Client {
    return new Client({ url: this.url, token: this.#token });
  }

  get env(): Record<string, string> {
    const { PATH = '', HOME = '', LANG = 'C.UTF-8' } = process.env;
    return {
      PATH,
      HOME,
      LANG,
      NODE_COMPILE_CACHE: COMPILED,
      SVC_DATA_DIR: this.data_dir,
      SVC_SAFE_PATHS: this.work,
      SVC_LOGGING_FORMAT: 'json',
      SVC_LIMITS_REQUESTS_PER_SECOND: '100000',
      SVC_LIMITS_REQUESTS_BURST: '100000',
      XDG_CONFIG_HOME: join(this.folder, 'config'),
      XDG_DATA_HOME: join(this.folder, 'share'),
      ...this.#env,
    };
  }

  /** Resolves when the service is ready; rejects with its output if it exits before. The port stays the same after restarts. */
  async start(more: Record<string, string> = {}): Promise<void> {
    this.#port ||= await freePort();
    const netns = this.#network ? ['ip', 'netns', 'exec', this.#network.netns] : [];
    const [command, ...argv] = [...netns, this.program, 'serve'];
    const child = spawn(command!, argv, {
      cwd: this.folder,
      env: { ...this.env, SVC_SERVER_LISTEN: this.#listen, ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#process = child;
    const before = this.#log.length;
    for (const stream of [child.stdout, child.stderr]) {
      stream!.setEncoding('utf8').on('data', (text: string) => {
        this.#log += text;
      });
    }
    while (!(await this.#answers())) {
      if (child.exitCode !== null || child.signalCode !== null) {
        await sleep(20);
        throw new Error(`svc ended (${child.exitCode ?? child.signalCode}): ${this.#log.slice(before)}`);
      }
      await sleep(10);
    }
  }

  async join(): Promise<void> {
    const { token, pin } = JSON.parse(await readFile(join(this.data_dir, 'join.json'), 'utf8'));
    const joined = await this.client.call('join', { body: { token, pin, ...ROOT } });
    this.#token = joined.token;
  }

  /** Uses root's token of another plane with the same database. */
  signInLike(other: TestPlane): void {
    this.#token = other.token;
  }

  /** Sends the service a signal that does not end it. */
  signal(signal: 'SIGSTOP' | 'SIGCONT' | 'SIGHUP'): void {
    this.#process!.kill(signal);
  }

  /** Ends the service: `SIGKILL` like a crash, `SIGTERM` like an operator. Returns its exit code. */
  async kill(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<number | null> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
    return child.exitCode;
  }

  /** Waits until the service exits, for example at a failpoint. */
  async ended(): Promise<void> {
    const child = this.#process!;
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }

  get isRunning(): boolean {
    const child = this.#process;
    return child !== null && child.exitCode === null && child.signalCode === null;
  }

  /** Creates an agent, and starts it unless `start` is false. */
  async agent(
    command: string | string[],
    more: Partial<Parameters<typeof this.create>[0]> = {},
  ): Promise<Agent> {
    return this.create({
      ...(typeof command === 'string' ? { command } : { argv: command }),
      start: true,
      ...more,
    });
  }

  async create(body: {
    name?: string;
    command?: string;
    argv?: string[];
    workdir?: string;
    stdin?: boolean;
    node_id?: string;
    protocol?: 'auto' | 'acp' | 'plain';
    prompt?: string;
    on_exit?: 'kill' | 'keep';
    env?: Record<string, string>;
    restart_policy?: 'never' | 'on_failure';
    start?: boolean;
  }): Promise<Agent> {
    return this.client.call('createAgent', { body: { name: 'test', workdir: this.work, ...body } });
  }

  get(agent_id: string): Promise<Agent> {
    return this.client.call('getAgent', { params: { agent_id } });
  }

  /** Waits until an agent has one of these statuses. */
  async until(agent_id: string, statuses: readonly Agent['status'][]): Promise<Agent> {
    for (const pause = openPace(); ; await pause()) {
      const agent = await this.get(agent_id);
      if (statuses.includes(agent.status)) return agent;
    }
  }

  finished(agent_id: string): Promise<Agent> {
    return this.until(agent_id, ['completed', 'failed', 'cancelled']);
  }

  /** The raw output of an agent, by default of its last session. */
  async output(
    agent_id: string,
    query: { stream?: 'stdout' | 'stderr'; session_id?: string } = {},
  ): Promise<Buffer> {
    const response = await this.client.open('getOutput', { params: { agent_id }, query });
    return Buffer.from(await response.arrayBuffer());
  }

  /** Follows an agent's log until `enough` returns true; returns the frames. */
  async frames(
    agent_id: string,
    enough: (frames: Frame[]) => boolean,
    query: { after?: number; tail?: number } = {},
  ): Promise<Frame[]> {
    const frames: Frame[] = [];
    const stop = new AbortController();
    for await (const frame of this.client.follow('followAgent', {
      params: { agent_id },
      query,
      signal: stop.signal,
    })) {
      frames.push(frame);
      if (enough(frames)) stop.abort();
    }
    return frames;
  }

  /** Runs the CLI with this service; returns its output and exit code. `kill_after_ms`: kills it then with SIGKILL. */
  async cli(
    args: string[],
    options: { input?: string; env?: Record<string, string>; kill_after_ms?: number } = {},
  ): Promise<CliResult> {
    const child = spawn(this.program, args, {
      cwd: this.folder,
      env: { ...this.env, SVC_URL: this.url, SVC_TOKEN: this.#token ?? '', ...options.env },
      timeout: options.kill_after_ms,
      killSignal: 'SIGKILL',
    });
    const result: CliResult = { code: null, stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      result.stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      result.stderr += text;
    });
    child.stdin.on('error', () => {});
    child.stdin.end(options.input ?? '');
    await once(child, 'close');
    result.code = child.exitCode;
    return result;
  }

  /** Ends the service and every agent, and deletes its folders, except for a given data directory. Idempotent. */
  async close(): Promise<void> {
    await this.kill();
    if (existsSync(this.data_dir)) await endSessions(this.data_dir);
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  async #answers(): Promise<boolean> {
    try {
      const holder = JSON.parse(await readFile(join(this.data_dir, 'plane.json'), 'utf8'));
      if (holder.pid !== this.#process?.pid || holder.url === null) return false;
      return (await fetch(`${this.url}/readyz`)).ok;
    } catch {
      return false;
    }
  }
}

export interface CliResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Ends all live sessions on a disk with the product's own code, which identifies processes by pid and start time. */
export async function endSessions(data_dir: string): Promise<void> {
  const node = await openLocalNode({
    id: 'main',
    data_dir,
    clock: systemClock,
    log: silentLog,
    folders: null as never,
    launcher: sharedLauncher,
    run_as: null,
    env: process.env,
  });
  const live: string[] = [];
  await node.attach({
    snapshot: async (views) => {
      live.push(...views.filter((view) => view.phase !== 'ended').map((view) => view.session_id));
    },
    fact: () => {},
    wake: () => {},
  });
  await Promise.all(live.map((session_id) => node.stop(session_id, 0)));
  await node.close();
}

/** An empty configuration in a folder of configurations, so that one of this machine in `/etc/svc` does not apply. */
export async function writeEmptyConfig(folder: string): Promise<void> {
  await mkdir(join(folder, 'svc'), { recursive: true });
  await writeFile(join(folder, 'svc/config.toml'), '');
}

/**
 * A free port below the range from which systems assign ports for port 0, so that it is still free when a process is stopped and
 * started again. It is above 10080, the last of the Fetch standard's bad ports, which `fetch` and browsers refuse.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_081, 32_000);
    const server = createServer();
    const listening = once(server.listen(port, '127.0.0.1'), 'listening');
    const free = await listening.then(
      () => true,
      () => false,
    );
    if (!free) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}
