/** Nodes that are silent until the plane marks them unreachable. Nothing else changes until they are back. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { expectNothingLost, startWriters, type WriterKind } from '../src/testing/writers.ts';

const CALM: readonly WriterKind[] = [
  ['slow', '60', '10'],
  ['steady', '40', '80'],
  ['quick', '20', '40'],
  ['long', '60', '2000'],
];
const ENV = {
  ...WITH_NODES,
  SVC_RETENTION_BYTES_PER_AGENT: String(64 * 1024 ** 3),
  // A node is unreachable after 9 s of silence instead of 45.
  SVC_TEST_TIME_SCALE: '0.2',
};

let plane: TestPlane;
const nodes: TestAgentNode[] = [];
afterEach(async () => {
  for (const node of nodes.splice(0)) await node.close();
  await plane?.close();
});

async function open(id: string, proxied: boolean): Promise<TestAgentNode> {
  const node = await TestAgentNode.open(plane, { id, proxied });
  nodes.push(node);
  return node;
}

const call = (path: string, body: unknown = {}) =>
  fetch(`${plane.url}/api/agents/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${plane.token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }).then(async (response) => [response.status, await response.json()]);
const UNREACHABLE = [502, { error: 'failed to connect to remote node' }];

test('suspended, killed and disconnected nodes are marked unreachable, and catch up when they are back', {
  timeout: 150_000,
}, async () => {
  plane = await TestPlane.open({ env: ENV });
  const frozen = await open('frozen', false);
  const killed = await open('killed', false);
  const apart = await open('apart', true);
  const suspended = await open('deaf', true);
  const well = await open('well', false);
  const writers = await Promise.all(nodes.map((node) => startWriters(plane, node, CALM)));

  const loop = 'echo $$ >>pids; while [ ! -e stop ]; do sleep 0.05; done';
  const waiting = await apart.agent(loop, { name: 'waiting', start: false });
  const unwanted = await apart.agent('echo started >>unwanted', { name: 'unwanted', start: false });
  const doomed = await frozen.agent('exec sleep 3600', { name: 'doomed' });

  const cut_at = Date.now();
  frozen.signal('SIGSTOP');
  await killed.kill();
  apart.proxy!.hold('up', 'down');
  suspended.proxy!.hold('down');

  const starting = [waiting, unwanted].map(({ id }) => call(`${id}/start`));
  const stopping = call(`${doomed.id}/stop`, { grace_seconds: 0 });
  for (const answer of [...starting, stopping]) expect(await answer).toEqual(UNREACHABLE);
  for (const { id } of [waiting, unwanted]) {
    expect(await plane.get(id)).toMatchObject({ status: 'created', pending: 'start' });
    expect(await call(`${id}/start`)).toEqual(UNREACHABLE);
  }
  expect((await plane.get(doomed.id)).status).toBe('running');

  for (const node of [frozen, killed, apart, suspended]) {
    while ((await node.record()).status !== 'unreachable') await sleep(250);
  }
  expect((await well.record()).status).toBe('connected');
  // The plane keeps its records across a restart.
  await plane.kill();
  await plane.start();
  await well.linked();
  for (const [at, node] of nodes.entries()) {
    for (const { id } of writers[at]!) {
      const agent = await plane.get(id);
      expect(agent.status).toBe('running');
      if (node === well) expect(agent.stale_since).toBeNull();
      else expect(Math.abs(Date.parse(agent.stale_since!) - cut_at)).toBeLessThan(20_000);
    }
  }
  expect(await call(`${unwanted.id}/stop`)).toEqual(UNREACHABLE);

  frozen.signal('SIGCONT');
  await killed.start();
  apart.proxy!.release();
  suspended.proxy!.release();
  await Promise.all(nodes.map((node) => node.until('connected')));
  expect((await plane.finished(doomed.id)).status).toBe('cancelled');
  await plane.until(waiting.id, ['running']);
  for (const [at, node] of nodes.entries()) await expectNothingLost(plane, node, writers[at]!);
  expect(await plane.finished(waiting.id)).toMatchObject({ status: 'completed', session_count: 1 });
  expect((await readFile(join(apart.work, 'pids'), 'utf8')).split('\n').filter(Boolean)).toHaveLength(1);
  // The stop replaced the pending start, and there was nothing to stop.
  while ((await plane.get(unwanted.id)).pending !== null) await sleep(50);
  expect(await plane.get(unwanted.id)).toMatchObject({ status: 'created', session_count: 0 });
  await expect(readFile(join(apart.work, 'unwanted'), 'utf8')).rejects.toThrow('ENOENT');
});
