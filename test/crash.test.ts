import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { firstOf, is_long, killCount } from '../src/testing/long.ts';
import type { TestPlane } from '../src/testing/plane.ts';
import { sharedPlane } from '../src/testing/shared-plane.ts';
import { expectNothingLost, MIXED, random, startWriters, type WritersHome } from '../src/testing/writers.ts';

/** To run more kills: `SVC_TEST_KILLS=200 npx vitest run test/crash.test.ts`. */
const KILLS = killCount(2, 100);
/** Retention must not delete what the tests compare at the end. */
const KEEP_ALL = { SVC_RETENTION_BYTES_PER_AGENT: String(64 * 1024 ** 3) };
/** Agents that a test about another agent must not harm. */
const BYSTANDERS = is_long ? MIXED : MIXED.slice(0, 2);
/** The last writer writes so much that its log is sealed every few seconds. */
const LOUD = [...MIXED.slice(0, 3), ['loud', '20', '8000']] as const;
/** An agent that pauses for 10 ms counts as one that is not writing, so its log is sealed from 8 MiB instead of 64. */
const SEALS_EARLY = { SVC_TEST_TIME_SCALE: '0.005' };

const usual = sharedPlane({ env: KEEP_ALL });
const sealing = sharedPlane({ env: { ...KEEP_ALL, ...SEALS_EARLY } });
let plane: TestPlane;
/** The folder of a test's agents. */
let home: WritersHome;

async function begin(share = usual): Promise<void> {
  plane = await share();
  const workdir = await mkdtemp(join(plane.work, 'test-'));
  home = { work: workdir, agent: (argv) => plane.agent(argv, { workdir }) };
}

test(`${KILLS} kills at random moments neither lose nor repeat output of four agents`, {
  // A few kills take little of the time.
  timeout: Math.max(5, KILLS) * 12_000,
}, async () => {
  await begin();
  const writers = await startWriters(plane, home);
  const next = random(20_261_120);
  for (let kill = 0; kill < KILLS; kill++) {
    await sleep(next() * 250);
    await plane.kill('SIGKILL');
    // Every tenth time, the plane stays down for a while, so that spools grow without a reader.
    if (kill % 10 === 0) await sleep(next() * 400);
    await plane.start();
  }
  await expectNothingLost(plane, home, writers);
});

test.each(firstOf(1, ['committed', 'commit']))(
  'a plane that is killed at %s neither loses nor repeats output',
  { timeout: 300_000 },
  async (name) => {
    await begin();
    const writers = await startWriters(plane, home);
    for (let n = 1; n <= (is_long ? 5 : 1); n++) {
      await plane.kill('SIGKILL');
      // The failpoint kills the plane during its start or soon after, so the start may fail.
      await plane.start({ SVC_FAILPOINT: `${name}:kill@${n * 3}` }).catch(() => {});
      await plane.ended();
    }
    await plane.start();
    await expectNothingLost(plane, home, writers);
  },
);

test.each(firstOf(0, ['seal_recorded', 'seal_written']))(
  'a plane that is killed while it seals a log (%s) neither loses nor repeats output',
  { timeout: 300_000 },
  async (name) => {
    await begin(sealing);
    const writers = await startWriters(plane, home, LOUD);
    for (let n = 0; n < 3; n++) {
      await plane.kill('SIGKILL');
      await plane.start({ SVC_FAILPOINT: `${name}:kill` }).catch(() => {});
      await plane.ended();
    }
    await plane.start();
    await expectNothingLost(plane, home, writers);
  },
);

test.each(firstOf(1, ['spawn', 'claim', 'handle']))(
  'a plane that is killed at an agent’s start (%s) leaves at most one process, which the next plane reconciles',
  { timeout: 120_000 },
  async (name) => {
    await begin();
    const writers = await startWriters(plane, home, BYSTANDERS);
    const agent = await plane.agent(`echo $$ >>pids; while [ ! -e stop ]; do sleep 0.05; done`, {
      start: false,
      workdir: home.work,
    });
    await plane.kill('SIGTERM');
    await plane.start({ SVC_FAILPOINT: `${name}:kill` });
    await plane.client.call('startAgent', { params: { agent_id: agent.id } }).catch(() => {});
    await plane.ended();
    await plane.start();
    const after = await plane.until(agent.id, ['running', 'failed']);
    if (after.status === 'failed') {
      expect(after.reason).toBe('spawn_failed');
      await plane.client.call('startAgent', { params: { agent_id: agent.id } });
    }
    while ((await plane.get(agent.id)).status === 'running' && (await readPids()) === 0) await sleep(20);
    expect(await readPids()).toBe(1);
    await writeFile(join(home.work, 'stop'), '');
    expect((await plane.finished(agent.id)).status).toBe('completed');
    await expectNothingLost(plane, home, writers);
  },
);

async function readPids(): Promise<number> {
  const text = await readFile(join(home.work, 'pids'), 'utf8').catch(() => '');
  return text.split('\n').filter(Boolean).length;
}

test.each(firstOf(1, ['ended', 'exit']))(
  'a plane that is killed at an agent’s end (%s) records the end after its restart',
  { timeout: 120_000 },
  async (name) => {
    await begin();
    const writers = await startWriters(plane, home, BYSTANDERS);
    const command = 'while [ ! -e stop ]; do sleep 0.05; done; echo last words; exit 7';
    const agent = await plane.agent(command, { workdir: home.work });
    await plane.kill('SIGTERM');
    await plane.start({ SVC_FAILPOINT: `${name}:kill` });
    await writeFile(join(home.work, 'stop'), '');
    await plane.ended();
    await plane.start();
    expect(await plane.finished(agent.id)).toMatchObject({
      status: 'failed',
      exit_code: 7,
      reason: 'exit_code',
    });
    expect((await plane.output(agent.id)).toString()).toBe('last words\n');
    await expectNothingLost(plane, home, writers);
  },
);
