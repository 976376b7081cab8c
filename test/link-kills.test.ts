import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { firstOf, is_long, killCount, longTest } from '../src/testing/long.ts';
import type { TestPlane } from '../src/testing/plane.ts';
import { sharedPlane } from '../src/testing/shared-plane.ts';
import { expectNothingLost, MIXED, random, startWriters } from '../src/testing/writers.ts';

/** To run more and other kills: `SVC_TEST_KILLS=100 SVC_TEST_SEED=7 npx vitest run test/link-kills.test.ts`. */
const KILLS = killCount(2, 40);
const SEED = Number(process.env.SVC_TEST_SEED ?? 20_261_121);
/** Retention must not delete what the tests compare at the end. */
const ENV = { ...WITH_NODES, SVC_RETENTION_BYTES_PER_AGENT: String(64 * 1024 ** 3) };

const share = sharedPlane({ env: ENV });
let plane: TestPlane;
/** A node of the test's own. */
let node: TestAgentNode;
let nodes = 0;
afterEach(() => node?.close());

async function begin(): Promise<void> {
  plane = await share();
  node = await TestAgentNode.open(plane, { id: `n${++nodes}` });
}

test(`${KILLS} kills of the node, the plane or both neither lose nor repeat output of four remote agents`, {
  // A few kills take little of the time.
  timeout: Math.max(4, KILLS) * 25_000,
}, async () => {
  await begin();
  const writers = await startWriters(plane, node);
  const next = random(SEED);
  for (let kill = 0; kill < KILLS; kill++) {
    await sleep(next() * 250);
    const victims = [[node], [plane], [node, plane], [plane, node]][Math.floor(next() * 4)]!;
    for (const victim of victims) await victim.kill('SIGKILL');
    if (kill % 10 === 0) await sleep(next() * 400);
    for (const victim of victims.toReversed()) await victim.start();
    // Every other time, wait for the link before the next kill.
    if (kill % 2 === 0) await node.linked();
  }
  await expectNothingLost(plane, node, writers);
  expect(node.log).not.toContain('"level":"error"');
});

/** Restarts a plane or node with a failpoint, runs `act` so that it dies there, and starts it again. */
async function dieAt(
  side: TestPlane | TestAgentNode,
  point: string,
  act: () => Promise<unknown>,
): Promise<void> {
  await side.kill('SIGKILL');
  // It may die while it starts.
  await side.start({ SVC_FAILPOINT: `${point}:kill` }).catch(() => {});
  await act();
  await side.ended();
  await side.start();
}

test.each(firstOf(1, ['committed@9', 'commit@9', 'commit@40']))(
  'a plane that is killed at %s neither loses nor repeats output of a remote node',
  { timeout: 60_000 },
  async (at) => {
    await begin();
    const writers = await startWriters(plane, node);
    const [name, n] = at.split('@');
    await plane.kill();
    await plane.start({ SVC_FAILPOINT: `${name}:kill@${n}` }).catch(() => {});
    await plane.ended();
    await plane.start();
    await expectNothingLost(plane, node, writers);
  },
);

const STARTS = firstOf(1, ['spawn', 'claim', 'handle']);

test(`a node that is killed at an agent’s start (${STARTS.join(', ')}) leaves at most one process, which is reconciled later`, {
  timeout: 100_000,
}, async () => {
  await begin();
  const writers = await startWriters(plane, node, is_long ? MIXED : MIXED.slice(0, 2));
  for (const point of STARTS) {
    const file = `pids-${point}`;
    const agent = await node.agent(`echo $$ >>${file}; while [ ! -e stop ]; do sleep 0.05; done`, {
      start: false,
    });
    const start = () => plane.client.call('startAgent', { params: { agent_id: agent.id } }).catch(() => {});
    await dieAt(node, point, async () => {
      await node.linked();
      void start();
    });
    const after = await plane.until(agent.id, ['running', 'failed']);
    if (after.status === 'failed') {
      expect(after.reason).toBe('spawn_failed');
      await plane.client.call('startAgent', { params: { agent_id: agent.id } });
    }
    while ((await pids(file)) === 0) await sleep(20);
    expect((await plane.get(agent.id)).status).toBe('running');
    expect(await pids(file)).toBe(1);
  }
  await expectNothingLost(plane, node, writers);
});

const ENDS = ['ended', 'exit'];

longTest(
  `a node that is killed at an agent’s end (${ENDS.join(', ')}) reports the end after its restart`,
  {
    timeout: 60_000,
  },
  async () => {
    await begin();
    for (const point of ENDS) {
      const agent = await node.agent(
        `while [ ! -e go-${point} ]; do sleep 0.05; done; echo last words; exit 7`,
      );
      await dieAt(node, point, async () => {
        await node.linked();
        await writeFile(join(node.work, `go-${point}`), '');
      });
      expect(await plane.finished(agent.id)).toMatchObject({
        status: 'failed',
        exit_code: 7,
        reason: 'exit_code',
      });
      expect((await plane.output(agent.id)).toString()).toBe('last words\n');
    }
  },
);

async function pids(file: string): Promise<number> {
  const text = await readFile(join(node.work, file), 'utf8').catch(() => '');
  return text.split('\n').filter(Boolean).length;
}
