/** Runs the real program for the bench, and creates requests for it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Agent } from '../src/features/agents/rules.ts';
import { type AgentNodeOptions, TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { AttackFixture, type Confined } from '../src/testing/attack-fixture.ts';
import { TestCluster } from '../src/testing/cluster.ts';
import { type PlaneOptions, TestPlane } from '../src/testing/plane.ts';

/** Where agents run: on the plane's machine, or on a remote node. */
export type Home = Pick<TestPlane | TestAgentNode, 'agent' | 'data_dir' | 'pid'>;

const open = new Set<{ close(): Promise<void> }>();

/** Ends all programs, also after a row that failed or took too long. */
export async function endPrograms(): Promise<void> {
  // In reverse order, so that nodes end before their plane.
  for (const program of [...open].reverse()) await endProgram(program);
}

/** Creates the folders of a service. End it with `endProgram`. */
export async function prepareProgram(options: PlaneOptions): Promise<TestPlane> {
  const plane = await TestPlane.prepare(options);
  open.add(plane);
  return plane;
}

/** Ends one of the programs that this module has opened. */
export async function endProgram(program: { close(): Promise<void> }): Promise<void> {
  if (open.delete(program)) await program.close();
}

/** Opens a service with confined agents. `program`: the `svc` to run, if not this source tree's. End it with `endProgram`. */
export async function openFixture(mode: Confined, program?: string): Promise<AttackFixture> {
  const fixture = await AttackFixture.open(mode, {}, program);
  open.add(fixture);
  return fixture;
}

/** Opens planes with these names that share a database, and a node. End it with `endProgram`. */
export async function openCluster(names: readonly string[]): Promise<TestCluster> {
  const cluster = await TestCluster.open(names);
  open.add(cluster);
  return cluster;
}

/** Runs `svc serve` with a root user, and with limits that a bench does not reach, until `fn` is done. */
export async function withProgram<T>(
  fn: (plane: TestPlane) => Promise<T>,
  env: Record<string, string> = {},
): Promise<T> {
  const plane = await prepareProgram({
    env: { SVC_LIMITS_STREAMS_PER_USER: '20000', SVC_LIMITS_STREAMS_TOTAL: '20000', ...env },
  });
  try {
    await plane.start();
    await plane.join();
    return await fn(plane);
  } finally {
    await endProgram(plane);
  }
}

/** Like `withProgram`, with a remote node that joined over loopback: a separate process, linked with TLS. `env`: of the plane. */
export async function withNode<T>(
  fn: (plane: TestPlane, node: TestAgentNode) => Promise<T>,
  options: AgentNodeOptions = {},
  env: Record<string, string> = {},
): Promise<T> {
  return withProgram(
    async (plane) => {
      const node = await TestAgentNode.open(plane, options);
      open.add(node);
      try {
        return await fn(plane, node);
      } finally {
        await endProgram(node);
      }
    },
    { ...WITH_NODES, ...env },
  );
}

export async function withFolder<T>(fn: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  try {
    return await fn(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Runs `fn` on every item, at most `at_once` at a time. */
export async function forEachConcurrently<T>(
  items: readonly T[],
  at_once: number,
  fn: (item: T) => Promise<void>,
): Promise<void> {
  const left = [...items].reverse();
  const next = async () => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await fn(item);
  };
  await Promise.all(Array.from({ length: at_once }, next));
}

/** Starts agents that run without any output. */
export async function silentAgents(plane: TestPlane, count: number, home: Home = plane): Promise<Agent[]> {
  const agents: Agent[] = [];
  const numbers = Array.from({ length: count }, (_, i) => i);
  await forEachConcurrently(numbers, 16, async (i) => {
    const agent = await home.agent(['/bin/sleep', '100000'], { name: `silent ${i}` });
    agents.push(await plane.until(agent.id, ['running']));
  });
  return agents;
}

/** The FIFO that is an agent's standard output. Bytes written to it count as the agent's output. */
export function stdoutOf(home: Pick<Home, 'data_dir'>, agent: Agent): string {
  return join(home.data_dir, 'sessions', agent.session_id!, 'pipes/out');
}

export function portOf(plane: TestPlane): number {
  return Number(new URL(plane.url).port);
}

/** The bytes of a request. */
export function request(plane: TestPlane, path: string): string {
  const { host } = new URL(plane.url);
  return `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${plane.token}\r\n\r\n`;
}

export function follow(plane: TestPlane, agent_id: string, query = 'tail=0'): string {
  return request(plane, `/api/agents/${agent_id}/events?${query}`);
}

/** The last line of every text file. A client that has read it has read all output, even if the session ends later. */
export const LAST_LINE = 'the last line of all';

export function logLine(i: number): string {
  return `2026-11-20T12:00:00.${String(i % 1000).padStart(3, '0')}Z INFO worker ${i} did something worth a line of log\n`;
}

/** Creates a file with log lines or `y` lines, which is slightly larger than requested. */
export async function textFile(folder: string, kind: 'log' | 'yes', bytes: number): Promise<string> {
  const path = join(folder, `${kind}.txt`);
  const lines = Array.from({ length: 10_000 }, (_, i) => (kind === 'log' ? logLine(i) : 'y\n'.repeat(30)));
  const block = Buffer.from(lines.join(''));
  const blocks = Array.from({ length: Math.max(1, Math.ceil(bytes / block.length)) }, () => block);
  await writeFile(path, Buffer.concat([...blocks, Buffer.from(`${LAST_LINE}\n`)]));
  return path;
}
