/**
 * Faults of planes that share a database which take long or depend on other programs: a plane that is suspended for a minute,
 * clocks that are wrong, and clients of PostgreSQL that dump the database, read all of it or lock it.
 */
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, expect } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { TestCluster } from '../src/testing/cluster.ts';
import { retryWhileUnreachable } from '../src/testing/conversation.ts';
import { openPace } from '../src/testing/pace.ts';
import type { TestPlane } from '../src/testing/plane.ts';
import { execute, postgresTest as test } from '../src/testing/postgres.ts';
import { programs } from '../src/testing/postgres-programs.ts';
import { run } from '../src/testing/postgres-server.ts';
import { expectNothingLost, MIXED, startWriters } from '../src/testing/writers.ts';

const HOUR_MS = 3_600_000;
const SUSPENDED_MS = 60_000;
const LOCKED_MS = 15_000;
const pg_dump = join(programs ?? '', 'pg_dump');
const TABLES = "SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY 1";

let cluster: TestCluster;
let foreign: pg.Client | undefined;
afterEach(async () => {
  await foreign?.end();
  foreign = undefined;
  await cluster?.close();
});

async function connect(): Promise<pg.Client> {
  foreign = new pg.Client({ connectionString: cluster.database.url });
  await foreign.connect();
  return foreign;
}

const tables = async () => (await execute(cluster.database.url, TABLES)).map(({ name }) => String(name));

/** An agent that asks through one plane, and gets its answer. */
async function askThrough(plane: TestPlane): Promise<void> {
  const conversation = await cluster.startAsker(plane);
  try {
    const [review] = await conversation.pending();
    await conversation.respond(review!.id, { decision: 'allow' });
    await conversation.untilIdle();
    expect(await conversation.delivered()).toMatchObject([{ status: 'answered', delivery: 'written' }]);
    expect(conversation.history.sequenceError()).toBeNull();
  } finally {
    await conversation.close();
  }
}

/** Waits until a plane is active, and the node is linked to it. */
async function active(plane: TestPlane): Promise<void> {
  const name = plane.env.SVC_CLUSTER_NAME;
  await cluster.until(plane, ([first]) => first?.state === 'active' && first.name === name);
  const is_linked = async () =>
    (await retryWhileUnreachable(() => cluster.node.record())).status === 'connected';
  for (const pace = openPace(); !(await is_linked()); ) await pace();
}

/** The number of links that the node has accepted. */
const links = () => cluster.node.log.split('"message":"plane attached"').length - 1;

test('an active plane that is suspended for a minute changes nothing afterwards, and stands by when it starts again', {
  timeout: 240_000,
}, async () => {
  cluster = await TestCluster.open(['a', 'b']);
  const [a, b] = cluster.planes as [TestPlane, TestPlane];
  const writers = await startWriters(b, cluster.node, MIXED.slice(0, 2));
  const resumes_at_ms = performance.now() + SUSPENDED_MS;
  let claim: unknown;
  let links_before = 0;
  a.signal('SIGSTOP');
  try {
    await cluster.until(b, ([first]) => first?.name === 'b');
    // The node's record is read through the first plane otherwise.
    await cluster.node.token(b);
    await active(b);
    await askThrough(b);
    claim = await execute(cluster.database.url, 'SELECT number, holder FROM plane_claim');
    links_before = links();
    await sleep(resumes_at_ms - performance.now());
  } finally {
    a.signal('SIGCONT');
  }
  await a.ended();
  expect(await a.kill()).toBe(1);
  expect(a.log).toContain('another control plane has taken over the database');
  await a.start();
  await cluster.until(b, (planes) => planes.some(({ name, state }) => name === 'a' && state === 'standby'));
  await askThrough(a);
  expect(await execute(cluster.database.url, 'SELECT number, holder FROM plane_claim')).toEqual(claim);
  expect(links()).toBe(links_before);
  await expectNothingLost(b, cluster.node, writers);
});

test('planes whose clocks are an hour ahead and an hour behind take over from each other', {
  timeout: 240_000,
}, async () => {
  const clock = new URL('../src/testing/shifted-clock.ts', import.meta.url).href;
  cluster = await TestCluster.open(['ahead', 'behind'], {
    envOf: (name) => ({
      NODE_OPTIONS: `--import=${clock}?ms=${name === 'ahead' ? HOUR_MS : -HOUR_MS}`,
    }),
  });
  const [ahead, behind] = cluster.planes as [TestPlane, TestPlane];
  for (const plane of [ahead, behind])
    expect(plane.log).toContain('the clock of this machine differs from that of PostgreSQL');
  const writers = await startWriters(behind, cluster.node, MIXED.slice(0, 2));
  const { client } = behind;
  const { token } = await client.call('createToken', { body: { name: 'made by ahead', scopes: ['read'] } });
  const readsWithToken = async (plane: TestPlane) => {
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`${plane.url}/api/agents`, { headers })).status;
  };

  await ahead.kill('SIGKILL');
  await cluster.node.token(behind);
  await active(behind);
  await ahead.start();
  expect(await readsWithToken(ahead)).toBe(200);
  await askThrough(ahead);
  // The timer of its restart is due in ten seconds by the clock of the plane that is behind, so long ago by the other one.
  const command = 'echo once >>starts; test "$(wc -l <starts)" -gt 1';
  const agent = await behind.agent(command, {
    node_id: cluster.node.id,
    workdir: cluster.node.work,
    restart_policy: 'on_failure',
  });
  await behind.until(agent.id, ['failed']);

  await behind.kill('SIGTERM');
  await cluster.node.token(ahead);
  await active(ahead);
  expect(await ahead.until(agent.id, ['completed'])).toMatchObject({ session_count: 2 });
  await behind.start();
  expect(await readsWithToken(behind)).toBe(200);
  await askThrough(behind);
  expect(await ahead.get(agent.id)).toMatchObject({ status: 'completed', session_count: 2 });
  await expectNothingLost(behind, cluster.node, writers);
});

test('a takeover during pg_dump and a long serializable transaction', { timeout: 240_000 }, async () => {
  cluster = await TestCluster.open(['a', 'b']);
  const [a, b] = cluster.planes as [TestPlane, TestPlane];
  const writers = await startWriters(b, cluster.node);
  const client = await connect();
  await client.query('CREATE TABLE foreign_table (n bigint)');
  await client.query('BEGIN ISOLATION LEVEL SERIALIZABLE');
  // Now it has a number, so that rows of later transactions are not settled by number alone, and reads every table.
  await client.query('INSERT INTO foreign_table VALUES (1)');
  for (const name of await tables()) await client.query(`SELECT count(*) FROM ${name}`);

  let is_over = false;
  let dumps = 0;
  const dumping = (async () => {
    for (; !is_over; dumps++) await run(pg_dump, ['--file=/dev/null', '--dbname', cluster.database.url]);
  })();
  try {
    await askThrough(b);
    await a.kill('SIGKILL');
    await cluster.node.token(b);
    await active(b);
    await a.start();
    await askThrough(a);
  } finally {
    is_over = true;
    await dumping;
  }
  expect(dumps).toBeGreaterThan(1);
  const { rows } = await client.query('SELECT n FROM foreign_table');
  expect(rows).toEqual([{ n: '1' }]);
  await client.query('ROLLBACK');
  await expectNothingLost(b, cluster.node, writers);
});

test('a foreign client locks an agent’s record and all events for 15 s', { timeout: 240_000 }, async () => {
  cluster = await TestCluster.open(['a', 'b']);
  const [, b] = cluster.planes as [TestPlane, TestPlane];
  const writers = await startWriters(b, cluster.node, MIXED.slice(0, 2));
  const [first] = writers;
  const client = await connect();
  await lock(client, first!.id);
  const seen = first!.history.events.length;
  // On another connection: within a transaction, the view does not change.
  const blocked = `SELECT pid FROM pg_stat_activity WHERE ${await pidOf(client)} = ANY(pg_blocking_pids(pid))`;
  for (const pace = openPace(); (await execute(cluster.database.url, blocked)).length === 0; ) await pace();
  await sleep(LOCKED_MS);
  await client.query('ROLLBACK');
  for (const pace = openPace(); first!.history.events.length <= seen; ) await pace();
  await askThrough(b);
  await expectNothingLost(b, cluster.node, writers);
});

async function pidOf(client: pg.Client): Promise<string> {
  return (await client.query('SELECT pg_backend_pid()::text AS pid')).rows[0].pid;
}

/** Begins transactions until one has the locks: PostgreSQL ends one of two transactions that wait for each other. */
async function lock(client: pg.Client, agent_id: string): Promise<void> {
  for (;;) {
    await client.query('BEGIN');
    try {
      await client.query('SELECT id FROM agents WHERE id = $1 FOR UPDATE', [agent_id]);
      await client.query('LOCK TABLE events IN ACCESS EXCLUSIVE MODE');
      return;
    } catch (error) {
      if ((error as pg.DatabaseError).code !== '40P01') throw error;
      await client.query('ROLLBACK');
    }
  }
}
