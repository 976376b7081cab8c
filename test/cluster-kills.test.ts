/**
 * Three planes share a database, and three nodes run agents. Planes, nodes, PostgreSQL, connections to it and commits are lost at
 * random moments. At the end, every client has what the agents wrote, once and in order, every approval has reached its agent, and every
 * step of a run was done once.
 *
 * To run more kills, or others: `SVC_TEST_KILLS=300 SVC_TEST_SEED=7 npm run test:long -- test/cluster-kills.test.ts`.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { Problem } from '../src/core/problem.ts';
import { isRunOver } from '../src/features/runs/rules/run.ts';
import { TestCluster } from '../src/testing/cluster.ts';
import { retryWhileUnreachable } from '../src/testing/conversation.ts';
import { killCount } from '../src/testing/long.ts';
import { openPace } from '../src/testing/pace.ts';
import type { TestPlane } from '../src/testing/plane.ts';
import { execute } from '../src/testing/postgres.ts';
import type { LostPart } from '../src/testing/postgres-proxy.ts';
import { TestServer, postgresServerTest as test } from '../src/testing/postgres-server.ts';
import { expectNothingLost, MIXED, random, startWriters } from '../src/testing/writers.ts';

const KILLS = killCount(40, 40);
const SEED = Number(process.env.SVC_TEST_SEED ?? 20_261_128);
const NAMES = ['a', 'b', 'c'];
const STEPS = ['s1', 's2', 's3', 's4'];

let server: TestServer;
let cluster: TestCluster;
afterEach(() => cluster?.close());

const next = random(SEED);
const pick = <T>(from: readonly T[]): T => from[Math.floor(next() * from.length)]!;

/** What happens to the cluster, with how often. Each resolves when all planes and nodes run again. */
const EVENTS: readonly [weight: number, name: string, event: () => Promise<void>][] = [
  [8, 'kill -9 of the active plane', async () => killPlane((await cluster.roles()).active, 'SIGKILL')],
  [4, 'kill -9 of a plane that stands by', async () => killPlane((await cluster.roles()).standby, 'SIGKILL')],
  [3, 'SIGTERM of the active plane', async () => killPlane((await cluster.roles()).active, 'SIGTERM')],
  [1, 'SIGSTOP of the active plane until it is replaced', stopActivePlane],
  [1, 'active plane cut off from PostgreSQL until it is replaced', cutOffActivePlane],
  [2, 'all connections to PostgreSQL lost', endConnections],
  [2, 'kill -9 of a node', killNode],
  [2, 'restart of PostgreSQL without a checkpoint', restartServer],
  [2, 'connections ended in the middle of COMMIT', endCommits],
  [2, 'commit lost', () => loseCommit('request')],
  [2, 'answer to a commit lost', () => loseCommit('answer')],
];

async function killPlane(plane: TestPlane, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  await plane.kill(signal);
  await plane.start();
}

async function stopActivePlane(): Promise<void> {
  const { active } = await cluster.roles();
  active.signal('SIGSTOP');
  await replaced(active);
  active.signal('SIGCONT');
  await active.ended();
  await active.start();
}

/** Its connections stay open, and nothing passes. */
async function cutOffActivePlane(): Promise<void> {
  const { active } = await cluster.roles();
  const proxy = cluster.proxyOf(active);
  proxy.pause();
  await replaced(active);
  proxy.resume();
  await active.ended();
  await active.start();
}

/** Waits until another plane is active. */
async function replaced({ env }: TestPlane): Promise<void> {
  const other = cluster.planes.find(
    (plane) => plane.isRunning && plane.env.SVC_CLUSTER_NAME !== env.SVC_CLUSTER_NAME,
  )!;
  await cluster.until(other, ([first]) => first?.state === 'active' && first.name !== env.SVC_CLUSTER_NAME);
}

async function endConnections(): Promise<void> {
  await execute(
    cluster.database.url,
    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
  );
}

async function restartServer(): Promise<void> {
  await server.kill();
  await server.start();
}

/** Commits wait for a standby that does not exist, and the connections that wait are ended: their outcome is unknown. */
async function endCommits(): Promise<void> {
  const { url } = server;
  await execute(url, "ALTER SYSTEM SET synchronous_standby_names = 'absent'");
  await execute(url, 'SELECT pg_reload_conf()');
  try {
    const end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    for (const pace = openPace(); (await execute(url, end)).length === 0; ) await pace();
  } finally {
    await execute(url, 'ALTER SYSTEM RESET synchronous_standby_names');
    await execute(url, 'SELECT pg_reload_conf()');
  }
}

async function loseCommit(part: LostPart): Promise<void> {
  const proxy = cluster.proxyOf((await cluster.roles()).active);
  proxy.loseCommit(part);
  await proxy.untilLost();
}

/** Waits until all planes live, and all nodes are linked to the active one. Starts planes that have been replaced. */
async function recovered(): Promise<void> {
  for (const pace = openPace(); ; await pace()) {
    for (const plane of cluster.planes) if (!plane.isRunning) await plane.start();
    const planes = await cluster.planes[0]!.client.call('listPlanes', {}).catch(() => []);
    if (planes.filter(({ state }) => state !== 'silent').length === NAMES.length) break;
  }
  for (const node of cluster.nodes) {
    const is_linked = async () => (await retryWhileUnreachable(() => node.record())).status === 'connected';
    for (const pace = openPace(); !(await is_linked()); ) await pace();
  }
}

/** Starts planes again while something is waited for: one that has lost its connections may be replaced, and ends, later. */
async function reviving<T>(waiting: Promise<T>): Promise<T> {
  let is_over = false;
  const done = waiting.finally(() => {
    is_over = true;
  });
  const reviving = (async () => {
    for (const pace = openPace(); !is_over; await pace())
      for (const plane of cluster.planes) if (!plane.isRunning) await plane.start();
  })();
  await Promise.all([done, reviving]);
  return done;
}

async function killNode(): Promise<void> {
  const node = pick(cluster.nodes);
  await node.kill('SIGKILL');
  await node.start();
}

function randomEvent(): (typeof EVENTS)[number] {
  return pick(EVENTS.flatMap((event) => Array.from({ length: event[0] }, () => event)));
}

/** A conversation that asks for permission before the event, and is answered through another plane after it. */
async function askAcross(event: () => Promise<void>): Promise<void> {
  const [first, second] = [pick(cluster.planes), pick(cluster.planes)];
  const conversation = await reviving(cluster.startAsker(first, pick(cluster.nodes)));
  try {
    const [review] = await conversation.pending();
    await event();
    const answer = () =>
      second.client.call('respondReview', {
        params: { review_id: review!.id },
        body: { decision: 'allow' },
        idempotency_key: `answer-${review!.id}`,
      });
    await reviving(retryWhileUnreachable(answer).then(() => conversation.untilIdle()));
    expect(await conversation.delivered()).toMatchObject([{ status: 'answered', delivery: 'written' }]);
    expect(conversation.history.sequenceError()).toBeNull();
    await reviving(stopAgent(second, conversation.agent_id));
  } finally {
    await conversation.close();
  }
}

/** Otherwise, hundreds of agents would run at the end. */
async function stopAgent({ client }: TestPlane, agent_id: string): Promise<void> {
  const stop = () => client.call('stopAgent', { params: { agent_id }, body: { grace_seconds: 0 } });
  await retryWhileUnreachable(stop).catch((error: unknown) => {
    // The answer to an earlier request was lost.
    if (!(error instanceof Problem) || error.code !== 'agent_not_running') throw error;
  });
}

/** A run of a chain of steps, each of which writes a line to a file. */
async function beginRun(n: number) {
  const node = pick(cluster.nodes);
  const { client } = pick(cluster.planes);
  const file = join(node.work, `run-${n}`);
  const command = `echo "$SVC_STEP_KEY $SVC_STEP_ATTEMPT" >>${file}; sleep 0.2`;
  const spec = {
    leader_member_id: 'works',
    members: [{ member_id: 'works', agent: { command, workdir: node.work, node_id: node.id } }],
    steps: STEPS.map((step_key, i) => ({
      step_key,
      member_id: 'works',
      depends_on: STEPS.slice(Math.max(0, i - 1), i),
    })),
  };
  const { id: team_id } = await retryWhileUnreachable(() =>
    client.call('createTeam', { body: { name: `team ${n}`, spec }, idempotency_key: `team-${n}` }),
  );
  const { id: run_id } = await retryWhileUnreachable(() =>
    client.call('createRun', { params: { team_id }, body: {}, idempotency_key: `run-${n}` }),
  );
  return { params: { team_id, run_id }, file };
}

async function expectDone({ params, file }: Awaited<ReturnType<typeof beginRun>>): Promise<void> {
  const { client } = pick(cluster.planes);
  for (const pace = openPace(); ; await pace()) {
    const run = await retryWhileUnreachable(() => client.call('getRun', { params }));
    if (!isRunOver(run)) continue;
    expect(run.status).toBe('completed');
    break;
  }
  const lines = (await readFile(file, 'utf8')).trim().split('\n');
  expect(lines).toEqual(STEPS.map((key) => `${key} 1`));
}

test(`nothing is lost or repeated by ${KILLS} faults (seed ${SEED})`, {
  timeout: 120_000 + KILLS * 60_000,
}, async () => {
  // A server of its own, because it is restarted. The connections of lost commits stay open.
  server = await TestServer.open({ settings: { max_connections: '300' } });
  cluster = await TestCluster.open(NAMES, { nodes: 3, database: server });
  const groups = await Promise.all(
    cluster.nodes.map(async (node, i) => {
      const plane = cluster.planes[i]!;
      const kinds = MIXED.filter((_, at) => at % cluster.nodes.length === i);
      return { plane, node, writers: await startWriters(plane, node, kinds) };
    }),
  );
  const counts = new Map<string, number>();
  for (let n = 0; n < KILLS; n++) {
    const [, name, event] = randomEvent();
    counts.set(name, (counts.get(name) ?? 0) + 1);
    try {
      const run = await reviving(beginRun(n));
      await askAcross(async () => {
        await sleep(next() * 500);
        await event();
        await recovered();
      });
      await reviving(expectDone(run));
    } catch (error) {
      throw new Error(`fault ${n + 1}, ${name}, with SVC_TEST_SEED=${SEED}`, { cause: error });
    }
  }
  for (const { plane, node, writers } of groups) await reviving(expectNothingLost(plane, node, writers));
  process.stdout.write(`${[...counts].map(([name, count]) => `${count} × ${name}`).join('\n')}\n`);
});
