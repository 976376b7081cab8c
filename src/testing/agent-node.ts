/**
 * A real Agent Node for tests: `svc serve` in node mode, a process of its own with its own data directory and a free port,
 * registered on a TestPlane by a bootstrap token and nothing else. It can be killed, stopped and started again on the same
 * data; closing it ends every session that it started.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep } from '../base/async.ts';
import type { Agent } from '../features/agents/rules.ts';
import type { NodeRecord } from '../features/nodes/rules.ts';
import { FlakyProxy } from './flaky-proxy.ts';
import { COMPILED, endSessions, freePort, SVC, type TestPlane } from './plane.ts';

/** What a plane needs to have nodes. */
export const WITH_NODES = {
  SVC_INTERNAL_GRPC_ENABLED: 'true',
  SVC_INTERNAL_GRPC_LISTEN: '127.0.0.1:0',
};

export interface AgentNodeOptions {
  id?: string;
  /** More `SVC_…` variables, or other environment of the node. */
  env?: Record<string, string>;
  /** As for a plane. */
  base?: string;
  /** A prepared data directory; else a fresh one. */
  data_dir?: string;
  /** The plane reaches the node through a proxy of the test's own. */
  proxied?: boolean;
  /** A network namespace in which the node runs, and its address there. */
  at?: { netns: string; host: string };
  /** Another `svc` than this tree's. */
  program?: string;
  /** Fields of the registration. */
  record?: { tls_server_name?: string; default_worktree_root?: string };
}

export class TestAgentNode {
  readonly id: string;
  readonly folder: string;
  readonly data_dir: string;
  /** A safe path that workdirs may lie in. */
  readonly work: string;
  readonly port: number;
  readonly proxy: FlakyProxy | null;
  readonly #env: Record<string, string>;
  readonly #at: AgentNodeOptions['at'];
  readonly #program: string;
  #plane: TestPlane;
  #process: ChildProcess | null = null;
  #log = '';
  /** Where the log of the present process begins. */
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
    this.#at = options.at;
    this.#program = options.program ?? SVC;
  }

  /** Starts the node with a token of the plane's, registers it there and waits until it is linked. */
  static async open(plane: TestPlane, options: AgentNodeOptions = {}): Promise<TestAgentNode> {
    const node = await TestAgentNode.prepare(plane, options);
    await node.start(await node.token());
    await node.register(options.record);
    await node.linked();
    return node;
  }

  /** Folders and a port; nothing runs yet, and the plane knows of nothing. */
  static async prepare(plane: TestPlane, options: AgentNodeOptions = {}): Promise<TestAgentNode> {
    const folder = await realpath(await mkdtemp(join(options.base ?? tmpdir(), 'svc-node-')));
    await mkdir(join(folder, 'work'));
    const port = await freePort();
    const proxy = options.proxied ? await FlakyProxy.open(port) : null;
    return new TestAgentNode(plane, folder, port, proxy, options);
  }

  get pid(): number {
    return this.#process!.pid!;
  }

  /** What the node has logged so far, over all its starts. */
  get log(): string {
    return this.#log;
  }

  /** Where the plane dials. */
  get target(): string {
    return `https://${this.#host}:${this.proxy?.port ?? this.port}`;
  }

  get #host(): string {
    return this.#at?.host ?? '127.0.0.1';
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

  /** A bootstrap token of the plane's, as environment of the node. */
  async token(plane = this.#plane): Promise<Record<string, string>> {
    this.#plane = plane;
    const { token } = await plane.client.call('getBootstrapToken', {});
    return { SVC_INTERNAL_GRPC_BOOTSTRAP_TOKEN: token };
  }

  /** Resolves when the server is open; rejects with the node's words when it ends before. */
  async start(more: Record<string, string> = {}): Promise<void> {
    const netns = this.#at ? ['ip', 'netns', 'exec', this.#at.netns] : [];
    const [command, ...argv] = [...netns, this.#program, 'serve'];
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

  /** Waits until the plane has a link to the process that runs now. */
  async linked(): Promise<NodeRecord> {
    while (!this.#log.includes('"message":"plane attached"', this.#started_at)) await sleep(10);
    return this.until('connected');
  }

  async until(status: NodeRecord['status']): Promise<NodeRecord> {
    for (;;) {
      const record = await this.record();
      if (record.status === status) return record;
      await sleep(20);
    }
  }

  /** Creates an agent here and starts it unless told otherwise. */
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
    // One that is stopped hears of nothing else.
    child.kill('SIGCONT');
    await ended;
    return child.exitCode;
  }

  /** Waits for the node to end by itself (a failpoint). */
  async ended(): Promise<void> {
    if (this.isRunning) await once(this.#process!, 'exit');
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#process!.kill(signal);
  }

  /** Ends the node and every session on its disk, and deletes the folders; a data directory that was given stays. */
  async close(): Promise<void> {
    await this.kill();
    await this.proxy?.close();
    await endSessions(this.data_dir);
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
