import { afterEach, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { expectNothingLost, random, startWriters } from '../src/testing/writers.ts';

const KILLS = 25;
/** Retention must not take what is compared at the end. */
const ENV = { ...WITH_NODES, SVC_RETENTION_BYTES_PER_AGENT: String(64 * 1024 ** 3) };

let plane: TestPlane;
let node: TestAgentNode;
afterEach(async () => {
  await node?.close();
  await plane?.close();
});

test(`${KILLS} kill -9 of a node, of the plane, and of both lose and double nothing of four remote agents`, {
  timeout: 100_000,
}, async () => {
  plane = await TestPlane.open({ env: ENV });
  node = await TestAgentNode.open(plane);
  const writers = await startWriters(plane, node);
  const next = random(20_261_121);
  for (let kill = 0; kill < KILLS; kill++) {
    await sleep(next() * 250);
    const victims = [[node], [plane], [node, plane], [plane, node]][Math.floor(next() * 4)]!;
    for (const victim of victims) await victim.kill('SIGKILL');
    if (kill % 10 === 0) await sleep(next() * 400);
    for (const victim of victims.toReversed()) await victim.start();
    // Every other time they find each other first.
    if (kill % 2 === 0) await node.linked();
  }
  await expectNothingLost(plane, node, writers);
  expect(node.log).not.toContain('"level":"error"');
});
