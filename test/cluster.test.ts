/** Several planes share a PostgreSQL database: one is active, another one takes over, and clients of either notice only a pause. */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect } from 'vitest';
import { TestCluster } from '../src/testing/cluster.ts';
import { ASKER, Conversation } from '../src/testing/conversation.ts';
import { execute, postgresTest as test } from '../src/testing/postgres.ts';
import { guideBlocks } from '../src/testing/tutorials.ts';
import { expectNothingLost, MIXED, startWriters } from '../src/testing/writers.ts';

let cluster: TestCluster;
afterEach(() => cluster?.close());

test('clients of another plane neither lose nor repeat output when the active one is killed', async () => {
  cluster = await TestCluster.open(['a', 'b']);
  const [a, b] = cluster.planes as [TestCluster['planes'][0], TestCluster['planes'][0]];
  const { node } = cluster;
  expect(await cluster.until(b, (planes) => planes.length === 2)).toMatchObject([
    { name: 'a', state: 'active' },
    { name: 'b', state: 'standby' },
  ]);
  const writers = await startWriters(b, node, MIXED.slice(0, 2));
  await a.kill('SIGKILL');
  await cluster.until(b, ([active]) => active?.name === 'b');
  await a.start();
  await cluster.until(a, (planes) => planes.some(({ name, state }) => name === 'a' && state === 'standby'));
  await b.kill('SIGTERM');
  await cluster.until(a, ([active]) => active?.name === 'a');
  await b.start();
  await expectNothingLost(b, node, writers);
});

test('an approval that is given at a plane that stands by reaches the agent', async () => {
  cluster = await TestCluster.open(['a', 'b']);
  const [, b] = cluster.planes;
  const conversation = await Conversation.start(b!, ASKER, { prompt: 'Ask me.', home: cluster.node });
  try {
    const [review] = await conversation.pending();
    await conversation.respond(review!.id, { decision: 'allow' });
    await conversation.untilIdle();
    // Ends its streams first.
    expect(await b!.kill('SIGTERM')).toBe(0);
  } finally {
    await conversation.close();
  }
});

test('a forwarded stop that takes longer than the shutdown is answered, and is carried out by the next plane', async () => {
  cluster = await TestCluster.open(['a', 'b']);
  const [a, b] = cluster.planes as [TestCluster['planes'][0], TestCluster['planes'][0]];
  const agent = await cluster.node.agent('trap "" TERM; while :; do echo here; sleep 0.2; done');
  // It ignores the signal once it has printed something.
  await expect.poll(() => a.output(agent.id)).not.toHaveLength(0);
  const stop = b.client
    .call('stopAgent', { params: { agent_id: agent.id }, body: { grace_seconds: 12 } })
    .catch((error: Error) => error);
  await expect.poll(() => a.log).toContain('agent_stopped');
  expect(await a.kill('SIGTERM')).toBe(0);
  expect(await stop).toMatchObject({ code: 'shutdown_interrupted' });
  expect(a.log).not.toContain('shutdown takes too long');
  expect((await b.finished(agent.id)).status).toBe('cancelled');
});

test('a plane that is stopped in the middle is replaced, and changes nothing when it continues', async () => {
  cluster = await TestCluster.open(['a', 'b']);
  const [a, b] = cluster.planes as [TestCluster['planes'][0], TestCluster['planes'][0]];
  const writers = await startWriters(b, cluster.node, MIXED.slice(0, 1));
  a.signal('SIGSTOP');
  try {
    await cluster.until(b, ([active]) => active?.name === 'b');
  } finally {
    a.signal('SIGCONT');
  }
  await a.ended();
  expect(a.log).toContain('another control plane has taken over the database');
  await expectNothingLost(b, cluster.node, writers);
});

test('a plane that stands by reopens its log on SIGHUP, and continues', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-log-'));
  try {
    const envOf = (name: string) => ({ SVC_LOGGING_OUTPUT: join(folder, name) });
    cluster = await TestCluster.open(['a', 'b'], { nodes: 0, envOf });
    const [, b] = cluster.planes;
    await rename(join(folder, 'b'), join(folder, 'b.1'));
    b!.signal('SIGHUP');
    await expect.poll(() => existsSync(join(folder, 'b'))).toBe(true);
    expect(await cluster.until(b!, (planes) => planes.length === 2)).toMatchObject([
      { name: 'a', state: 'active' },
      { name: 'b', state: 'standby' },
    ]);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('a plane with another key does not stand by, and says what to do', async () => {
  cluster = await TestCluster.open(['a'], { nodes: 0 });
  const other = await cluster.prepare('b');
  await expect(other.start()).rejects.toThrow(
    `${other.data_dir}/secret.key is not that of the other control planes: copy it from the data directory of one of them`,
  );
  await cluster.copyKey(other);
  await other.start();
  other.signInLike(cluster.planes[0]!);
  const planes = await cluster.until(other, (found) => found.some(({ state }) => state === 'standby'));
  expect(planes.map(({ name, state }) => `${name}: ${state}`)).toEqual(['a: active', 'b: standby']);
});

test('planes get a new authority, and then a new key, as the guide says', { timeout: 120_000 }, async () => {
  cluster = await TestCluster.open(['a', 'b']);
  const { planes, node } = cluster;
  const [a, b] = planes as [TestCluster['planes'][0], TestCluster['planes'][0]];
  const certs = ({ data_dir }: typeof a) => join(data_dir, 'internal-grpc');
  const authorityOf = (plane: typeof a) => readFile(join(certs(plane), 'ca.pem'), 'utf8');
  const stopAll = () => Promise.all(planes.map((plane) => plane.kill('SIGTERM')));
  const runStatements = async (section: string) => {
    const [statements, ...more] = await guideBlocks('rotation', section, 'sql');
    expect(more).toEqual([]);
    await execute(cluster.database.url, statements!);
  };
  const expectStandby = () =>
    cluster.until(a, (found) => found.some(({ name, state }) => name === 'b' && state === 'standby'));

  const old = await authorityOf(a);
  await node.kill('SIGTERM');
  await node.start(await node.token());
  await stopAll();
  await runStatements('Replace the certificate authority');
  for (const plane of planes) await rename(certs(plane), join(plane.data_dir, 'old'));
  const before = a.log.length;
  for (const plane of planes) await plane.start();
  await expectStandby();
  const fresh = await authorityOf(a);
  expect(fresh).not.toBe(old);
  expect(a.log.slice(before)).not.toContain('missing files');
  await expect.poll(() => authorityOf(b)).toBe(fresh);
  expect(b.log).toMatch(/"files":\[.*"ca\.pem".*"missing files were taken from the database"/);
  await node.until('connected');

  await stopAll();
  await runStatements('Rotate the key of the plane');
  for (const { data_dir } of planes) await rename(join(data_dir, 'secret.key'), join(data_dir, 'old.key'));
  await a.start();
  await cluster.copyKey(b);
  await b.start();
  await expectStandby();
  expect(await authorityOf(a)).toBe(fresh);
  await node.until('connected');
});
