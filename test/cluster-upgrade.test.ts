/**
 * Planes that share a database, and their node, are upgraded one after the other, while agents run and clients use the planes of
 * either version. The new version has another schema.
 *
 * To upgrade from an earlier version instead: `SVC_TEST_PREVIOUS=<path of its svc> npm run test:long -- test/cluster-upgrade.test.ts`.
 */
import { afterEach, expect } from 'vitest';
import { TestCluster } from '../src/testing/cluster.ts';
import { retryWhileUnreachable } from '../src/testing/conversation.ts';
import { openPace } from '../src/testing/pace.ts';
import { SVC, type TestPlane } from '../src/testing/plane.ts';
import { execute, postgresTest as test } from '../src/testing/postgres.ts';
import { expectNothingLost, MIXED, startWriters } from '../src/testing/writers.ts';
import { buildNextVersion, type NextVersion } from './next-version.ts';

const previous = process.env.SVC_TEST_PREVIOUS ?? SVC;

let cluster: TestCluster | undefined;
let next: NextVersion;
afterEach(async () => {
  await cluster?.close();
  await next.remove();
});

const schema = async () =>
  Number((await execute(cluster!.database.url, 'SELECT version FROM schema_version'))[0]!.version);

/** Waits until a plane is active, and the node is linked to it. */
async function active(plane: TestPlane): Promise<void> {
  const name = plane.env.SVC_CLUSTER_NAME;
  await cluster!.until(plane, ([first]) => first?.state === 'active' && first.name === name);
  await cluster!.node.token(plane);
  const is_linked = async () =>
    (await retryWhileUnreachable(() => cluster!.node.record())).status === 'connected';
  for (const pace = openPace(); !(await is_linked()); ) await pace();
}

/** An agent that asks through one plane, and gets its answer through another one. */
async function askAcross(first: TestPlane, second: TestPlane): Promise<void> {
  const conversation = await cluster!.startAsker(first);
  try {
    const [review] = await conversation.pending();
    const params = { review_id: review!.id };
    await second.client.call('respondReview', { params, body: { decision: 'allow' } });
    await conversation.untilIdle();
    expect(await conversation.delivered()).toMatchObject([{ status: 'answered', delivery: 'written' }]);
    expect(conversation.history.sequenceError()).toBeNull();
  } finally {
    await conversation.close();
  }
}

test('planes and a node are upgraded one after the other, and nothing is lost', {
  timeout: 240_000,
}, async () => {
  next = await buildNextVersion();
  cluster = await TestCluster.open(['a', 'b'], { program: previous });
  const { node } = cluster;
  const [a, b] = cluster.planes as [TestPlane, TestPlane];
  const writers = await startWriters(b, node, MIXED.slice(0, 2));
  await askAcross(a, b);
  const before = await schema();

  // The one that stands by comes first. Requests pass from one version to the other.
  await b.kill('SIGTERM');
  b.program = next.program;
  await b.start();
  const versions = await cluster.until(a, (planes) => planes.length === 2 && planes[1]!.state === 'standby');
  expect(versions.map(({ name, state }) => `${name}: ${state}`)).toEqual(['a: active', 'b: standby']);
  expect(versions[1]).toMatchObject({ version: next.version });
  await askAcross(a, b);
  await askAcross(b, a);
  expect(await schema()).toBe(before);

  // The schema is upgraded when a plane of the new version becomes active. Here, its node has the earlier version.
  await a.kill('SIGTERM');
  await active(b);
  expect(await schema()).toBeGreaterThan(before);
  await askAcross(b, b);

  // A plane of the earlier version stands by, but cannot become active.
  await a.start();
  await cluster.until(b, (planes) => planes.some(({ name, state }) => name === 'a' && state === 'standby'));
  await askAcross(b, a);
  await b.kill('SIGKILL');
  await a.ended();
  expect(await a.kill()).toBe(1);
  expect(a.log).toContain('start a newer svc');

  await b.start();
  await active(b);
  a.program = next.program;
  await a.start();
  await node.kill('SIGTERM');
  node.program = next.program;
  await node.start();
  await b.kill('SIGKILL');
  await active(a);
  await b.start();
  await askAcross(b, a);
  await expectNothingLost(b, node, writers);
});
