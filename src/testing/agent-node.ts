/**
 * A real remote node for tests: `svc serve` in node mode, as a separate process with its own data directory and a free port.
 * It joins a TestPlane with a bootstrap token. It can be killed, stopped and started again with the same data. Closing it ends
 * every session that it started.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep } from '../base/async.ts';
import type { Agent } from '../features/agents/rules.ts';
import type { NodeRecord } from '../features/nodes/rules.ts';
import { COMPILED } from './compiled.ts';
import { reportIfFailed } from './failure-logs.ts';
import { FlakyProxy } from './flaky-proxy.ts';
import { openPace } from './pace.ts';
import { endSessions, freePort, SVC, type TestPlane, writeEmptyConfig } from './plane.ts';

/** The environment of a plane with remote nodes. */
export const WITH_NODES = {
  SVC_INTERNAL_GRPC_ENABLED: 'true',
  SVC_INTERNAL_GRPC_LISTEN: '127.0.0.1:0',
};

export interface AgentNodeOptions {
  id?: string;
  /** Additional environment variables of the node. */
  env?: Record<string, string>;
  /** See `PlaneOptions`. */
  base?: string;
  /** An existing data directory; absent: a new one. */
  data_dir?: string;
  /** The plane connects to the node through the test's proxy. */
  proxied?: boolean;
  /** A network namespace in which the node runs, and its address there. */
  network?: { netns: string; host: string };
  /** The `svc` to run; absent: the one in this source tree. */
  program?: string;
  /** Fields of the registration. */
  record?: { tls_server_name?: string; default_worktree_root?: string };
}

export class TestAgentNode {
  readonly id: string;
  readonly folder: string;
  readonly data_dir: string;
  /** A safe path, in which workdirs may be. */
  readonly work: string;
  readonly port: number;
  readonly proxy: FlakyProxy | null;
  /** The `svc` to run. Another one is run at the next start. */
  program: string;
  readonly #env: Record<string, string>;
  readonly #network: AgentNodeOptions['network'];
  #plane: TestPlane;
  #process: ChildProcess | null = null;
  #log = '';
  /** The offset in the log at which the output of the current process begins. */
  #started_at = 0;

  private constructor(
    plane: TestPlane,
    folder: string,
    port: number,
    proxy: FlakyProxy | null,
    options: AgentNodeOptions,
  ) {
    this.#plane = plane;
    this.id = options.id ?? 'n1';
    this.folder = folder;
    this.data_dir = options.data_dir ?? join(folder, 'data');
    this.work = join(folder, 'work');
    this.port = port;
    this.proxy = proxy;
    this.#env = options.env ?? {};
    this.#network = options.network;
    this.program = options.program ?? SVC;
    reportIfFailed(`the node ${this.id} in ${folder}`, this);
  }

  /** Starts the node with a token of the plane, registers it and waits until it is linked. */
  static async open(plane: TestPlane, options: AgentNodeOptions = {}): Promise<TestAgentNode> {
    const node = await TestAgentNode.prepare(plane, options);
    await node.start(await node.token());
    await node.register(options.record);
    await node.linked();
    return node;
  }

  /** Creates the folders and reserves a port. Does not start or register the node. */
  static async prepare(plane: TestPlane, options: AgentNodeOptions = {}): Promise<TestAgentNode> {
    const folder = await realpath(await mkdtemp(join(options.base ?? tmpdir(), 'svc-node-')));
    await mkdir(join(folder, 'work'));
    await writeEmptyConfig(join(folder, '.config'));
    const port = await freePort();
    const proxy = options.proxied ? await FlakyProxy.open(port) : null;
    return new TestAgentNode(plane, folder, port, proxy, options);
  }

  get pid(): number {
    return this.#process!.pid!;
  }

  /** The output of all processes of this node so far. */
  get log(): string {
    return this.#log;
  }

  /** The URL to which the plane connects. */
  get target(): string {
    return `https://${this.#host}:${this.proxy?.port ?? this.port}`;
  }

  get #host(): string {
    return this.#network?.host ?? '127.0.0.1';
  }

  get isRunning(): boolean {
    const child = this.#process;
    return child !== null && child.exitCode === null && child.signalCode === null;
  }

  get env(): Record<string, string> {
    const { PATH = '', LANG = 'C.UTF-8' } = process.env;
    return {
      PATH,
      LANG,
      HOME: this.folder,
      NODE_COMPILE_CACHE: COMPILED,
      SVC_SERVER_ROLE: 'node',
      SVC_SERVER_NODE_ID: this.id,
      SVC_INTERNAL_GRPC_ENABLED: 'true',
      SVC_INTERNAL_GRPC_LISTEN: `${this.#host}:${this.port}`,
      SVC_DATA_DIR: this.data_dir,
      SVC_SAFE_PATHS: this.work,
      SVC_LOGGING_FORMAT: 'json',
      ...this.#env,
    };
  }

  /** A bootstrap token of the plane, as an environment variable of the node. */
  async token(plane = this.#plane): Promise<Record<string, string>> {
    this.#plane = plane;
    const { token } = await plane.client.call('getBootstrapToken', {});
    return { SVC_INTERNAL_GRPC_BOOTSTRAP_TOKEN: token };
  }

  /** Resolves when the node listens; rejects with its output if it exits before. */
  async start(more: Record<string, string> = {}): Promise<void> {
    const netns = this.#network ? ['ip', 'netns', 'exec', this.#network.netns] : [];
    const [command, ...argv] = [...netns, this.program, 'serve'];
    const child = spawn(command!, argv, {
      cwd: this.folder,
      env: { ...this.env, ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#process = child;
    this.#started_at = this.#log.length;
    for (const stream of [child.stdout, child.stderr]) {
      stream!.setEncoding('utf8').on('data', (text: string) => {
        this.#log += text;
      });
    }
    while (!this.#log.includes('"message":"node started"', this.#started_at)) {
      if (!this.isRunning) {
        await sleep(20);
        throw new Error(
          `svc ended (${child.exitCode ?? child.signalCode}): ${this.#log.slice(this.#started_at)}`,
        );
      }
      await sleep(10);
    }
  }

  register(
    record: { tls_server_name?: string; default_worktree_root?: string } = {},
    plane = this.#plane,
  ): Promise<NodeRecord> {
    this.#plane = plane;
    const body = { id: this.id, name: `node ${this.id}`, grpc_target: this.target, ...record };
    return plane.client.call('registerAgentNode', { body });
  }

  async record(): Promise<NodeRecord> {
    const nodes = (await this.#plane.client.call('listAgentNodes', { query: {} })) as NodeRecord[];
    return nodes.find(({ id }) => id === this.id)!;
  }

  /** Waits until the plane has a link to the current process. */
  async linked(): Promise<NodeRecord> {
    while (!this.#log.includes('"message":"plane attached"', this.#started_at)) await sleep(10);
    return this.until('connected');
  }

  async until(status: NodeRecord['status']): Promise<NodeRecord> {
    for (const pause = openPace(); ; await pause()) {
      const record = await this.record();
      if (record.status === status) return record;
    }
  }

  /** Creates an agent on this node, and starts it unless `start` is false. */
  agent(
    command: string | string[],
    more: { name?: string; workdir?: string; stdin?: boolean; start?: boolean } = {},
  ): Promise<Agent> {
    return this.#plane.client.call('createAgent', {
      body: {
        name: 'far',
        node_id: this.id,
        workdir: this.work,
        start: true,
        ...(typeof command === 'string' ? { command } : { argv: command }),
        ...more,
      },
    });
  }

  async kill(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<number | null> {
    const child = this.#process;
    if (!child || !this.isRunning) return child?.exitCode ?? null;
    const ended = once(child, 'exit');
    child.kill(signal);
    // A stopped process receives other signals only after it continues.
    child.kill('SIGCONT');
    await ended;
    return child.exitCode;
  }

  /** Waits until the process exits, for example at a failpoint. */
  async ended(): Promise<void> {
    if (this.isRunning) await once(this.#process!, 'exit');
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#process!.kill(signal);
  }

  /** Ends the node and every session on its disk, and deletes its folders, except for a given data directory. */
  async close(): Promise<void> {
    await this.kill();
    await this.proxy?.close();
    await endSessions(this.data_dir);
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
