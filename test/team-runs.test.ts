/** Runs of teams with real processes on this machine: inputs, outputs, and parallel steps. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Folders } from '../src/core/node.ts';
import type { LocalNode } from '../src/node/node.ts';
import { EXAMPLE_AGENT } from '../src/testing/example-agent.ts';
import { ANA, FeaturesFixture, SOON } from '../src/testing/features-fixture.ts';
import { openTestNode } from '../src/testing/local-node.ts';
import { firstOf, is_long, killCount, longTest } from '../src/testing/long.ts';
import { endSessions } from '../src/testing/plane.ts';
import {
  applyEvent,
  beginRun,
  passTimeLimits,
  plainMember,
  runOf,
  stepsOfRun,
  untilRun,
} from '../src/testing/team-runs.ts';

const AGENT = fileURLToPath(new URL('../src/testing/acp-agent.ts', import.meta.url));

let folder: string;
let node: LocalNode;
let fixture: FeaturesFixture;

/** An empty folder per name; the same name gets the same folder. */
const folders = {
  resolve: async (path: string) => ({ path, below_worktree_root: false, claimed_by: null }),
  createWorktree: async ({ agent_id }) => {
    const workdir = join(folder, agent_id);
    await mkdir(workdir, { recursive: true });
    return { workdir, repo: null, branch: null, base: null };
  },
} as Folders;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-runs-'));
  node = await openTestNode(join(folder, 'data'), { folders });
  fixture = await FeaturesFixture.make(node);
}, 60_000);
afterEach(async () => {
  for (const { id, status } of await fixture.agents.list(ANA, {}, {}).then(({ items }) => items)) {
    if (status === 'running') await fixture.agents.stop(ANA, id, 0).catch(() => {});
  }
  await fixture.end();
  await node.close();
  await rm(folder, { recursive: true, force: true });
}, 60_000);

const lines = (name: string) =>
  readFile(join(fixture.folder, name), 'utf8').then(
    (text) => text.split('\n').slice(0, -1),
    () => [],
  );

test('a chain passes outputs to later steps, as JSON if they parse', { timeout: 60_000 }, async () => {
  const run_id = await beginRun(fixture, {
    members: [
      plainMember('first', 'printf \'{"n": 1}\' >"$SVC_STEP_OUTPUT"; echo noise'),
      plainMember('second', 'cat "$SVC_STEP_INPUT"'),
      plainMember(
        'third',
        'echo $SVC_MEMBER_ID $SVC_STEP_KEY $SVC_STEP_ATTEMPT; echo $SVC_ACTOR_ID | cut -d@ -f1',
      ),
    ],
    steps: [
      { step_key: 'a', member_id: 'first' },
      { step_key: 'b', member_id: 'second', depends_on: ['a'], input: { own: true } },
      { step_key: 'c', member_id: 'third', depends_on: ['b'] },
    ],
    input: { topic: 'x' },
  });
  const run = await untilRun(fixture, run_id, 'completed');
  const { a, b, c } = await stepsOfRun(fixture, run_id);
  expect(a).toMatchObject({ status: 'completed', output: { n: 1 }, attempt: 1 });
  expect(b!.output).toEqual({ run_input: { topic: 'x' }, input: { own: true }, needs: { a: { n: 1 } } });
  expect(c!.output).toBe('third c 1\nthird\n');
  expect(JSON.parse(run.output!)).toEqual({ c: c!.output });
  expect(await fixture.get(a!.agent_id!)).toMatchObject({ status: 'completed', restart_policy: 'never' });
});

test('independent steps run in parallel', { timeout: 60_000 }, async () => {
  // Each step ends only after all have started.
  const meet = 'touch "in-$SVC_STEP_KEY"; while [ "$(ls | grep -c "^in-")" -lt 4 ]; do sleep 0.02; done';
  const run_id = await beginRun(fixture, {
    members: [plainMember('m', meet)],
    steps: ['a', 'b', 'c', 'd'].map((step_key) => ({ step_key })),
  });
  await untilRun(fixture, run_id, 'completed');
  const agents = new Set(Object.values(await stepsOfRun(fixture, run_id)).map(({ agent_id }) => agent_id));
  expect(agents.size).toBe(4);
});

test('steps of a member share its worktree', { timeout: 60_000 }, async () => {
  const run_id = await beginRun(fixture, {
    members: [plainMember('m', 'pwd', { worktree_mode: 'create_worktree' })],
    steps: [{ step_key: 'a' }, { step_key: 'b' }],
  });
  await untilRun(fixture, run_id, 'completed');
  const { a, b } = await stepsOfRun(fixture, run_id);
  expect(a!.output).toBe(b!.output);
});

test('a failed step is retried by the same agent, up to max_attempts', {
  timeout: 60_000,
}, async () => {
  const run_id = await beginRun(fixture, {
    members: [
      plainMember('flaky', 'echo "$SVC_STEP_ATTEMPT" >>tries; [ "$SVC_STEP_ATTEMPT" = 2 ]'),
      plainMember('bad', 'echo one >&2; echo two >&2; exit 3'),
      plainMember('after', 'echo tidy'),
    ],
    steps: [
      { step_key: 'a', member_id: 'flaky', max_attempts: 2 },
      { step_key: 'b', member_id: 'bad', depends_on: ['a'], max_attempts: 2 },
      { step_key: 'c', member_id: 'after', depends_on: ['b'] },
      { step_key: 'd', member_id: 'after', depends_on: ['b'], when: 'always' },
    ],
  });
  expect((await untilRun(fixture, run_id, 'failed')).error).toBe('step b failed: exit code 3: one\ntwo');
  expect(await lines('tries')).toEqual(['1', '2']);
  const { a, b, c, d } = await stepsOfRun(fixture, run_id);
  expect([a!.status, b!.status, c!.status, d!.status]).toEqual([
    'completed',
    'failed',
    'skipped',
    'completed',
  ]);
  expect(b!.attempt).toBe(2);
  expect((await fixture.get(a!.agent_id!)).session_count).toBe(2);
});

test('an attempt that exceeds its timeout is stopped before the retry', { timeout: 60_000 }, async () => {
  const run_id = await beginRun(fixture, {
    members: [plainMember('slow', 'if [ "$SVC_STEP_ATTEMPT" = 1 ]; then sleep 1000; else echo quick; fi')],
    steps: [{ step_key: 'a', timeout_seconds: 30, max_attempts: 2 }],
  });
  await vi.waitFor(async () => expect((await stepsOfRun(fixture, run_id)).a!.status).toBe('running'), SOON);
  await passTimeLimits(fixture, 31_000);
  await untilRun(fixture, run_id, 'completed');
  const { a } = await stepsOfRun(fixture, run_id);
  expect(a).toMatchObject({ attempt: 2, output: 'quick\n' });
  const sessions = await fixture.agents.sessions(ANA, a!.agent_id!, {});
  expect(sessions.items.map(({ exit_signal }) => exit_signal)).toEqual([null, 'SIGTERM']);
});

test('cancelling a run stops its processes, and resuming it runs the steps that did not complete', {
  timeout: 60_000,
}, async () => {
  const run_id = await beginRun(fixture, {
    members: [
      plainMember('quick', 'echo once >>quick'),
      plainMember('slow', 'echo "$SVC_STEP_ATTEMPT" >>slow; [ "$SVC_STEP_ATTEMPT" = 2 ] || sleep 1000'),
    ],
    steps: [
      { step_key: 'a', member_id: 'quick' },
      { step_key: 'b', member_id: 'slow', depends_on: ['a'] },
    ],
  });
  await vi.waitFor(async () => expect(await lines('slow')).toEqual(['1']), SOON);
  await applyEvent(fixture, run_id, { kind: 'run_command', command: { kind: 'cancelRun' } });
  const { b } = await stepsOfRun(fixture, run_id);
  expect(b!.status).toBe('cancelled');
  await fixture.until(b!.agent_id!, 'cancelled');
  expect((await runOf(fixture, run_id)).status).toBe('cancelled');
  await applyEvent(fixture, run_id, { kind: 'run_command', command: { kind: 'resumeRun' } });
  await untilRun(fixture, run_id, 'completed');
  expect(await lines('quick')).toEqual(['once']);
  expect(await lines('slow')).toEqual(['1', '2']);
});

test('a step whose program does not exist fails at once, without a retry', {
  timeout: 60_000,
}, async () => {
  const run_id = await beginRun(fixture, {
    members: [plainMember('m', '', { command: null, argv: ['no-such-program-here'] })],
    steps: [{ step_key: 'a', max_attempts: 5 }],
  });
  await untilRun(fixture, run_id, 'failed');
  const { a } = await stepsOfRun(fixture, run_id);
  expect(a!.attempt).toBe(1);
  expect(a!.error_text).toContain('no-such-program-here');
});

longTest('an attempt that ignores its timeout is killed before the retry', { timeout: 60_000 }, async () => {
  const ignores_term = 'trap "" TERM; echo $$ >>pids; while [ "$SVC_STEP_ATTEMPT" = 1 ]; do sleep 0.1; done';
  const alive = 'for pid in $(head -n 1 pids); do kill -0 $pid && echo "it lives"; done; echo done';
  const run_id = await beginRun(fixture, {
    members: [plainMember('slow', `${ignores_term}; ${alive}`)],
    steps: [{ step_key: 'a', timeout_seconds: 30, max_attempts: 2 }],
  });
  await vi.waitFor(async () => expect(await lines('pids')).toHaveLength(1), SOON);
  await vi.waitFor(async () => expect((await stepsOfRun(fixture, run_id)).a!.status).toBe('running'), SOON);
  await passTimeLimits(fixture, 31_000);
  await vi.waitFor(async () => expect(await lines('pids')).toHaveLength(2), { timeout: 50_000 });
  await untilRun(fixture, run_id, 'completed');
  expect((await stepsOfRun(fixture, run_id)).a).toMatchObject({ attempt: 2, output: 'done\n' });
});

test('a restart stops every process first, and discards earlier outputs', {
  timeout: 60_000,
}, async () => {
  // Reports an earlier process of the same step that is still alive.
  const alone =
    'at="at-$SVC_STEP_KEY"; if [ -e "$at" ] && read -r before <"$at" && kill -0 "$before" 2>/dev/null; ' +
    'then echo "$SVC_STEP_KEY" >>beside; fi; echo $$ >"$at"';
  const waits =
    'trap "exit 0" TERM; echo "$SVC_STEP_KEY" >>begun; while [ ! -e go ]; do sleep 0.05; done; echo new';
  const run_id = await beginRun(fixture, {
    members: [plainMember('m', `${alone}; ${waits}`)],
    steps: [{ step_key: 'a' }, { step_key: 'b' }],
  });
  for (let restart = 1; restart <= 3; restart++) {
    await vi.waitFor(async () => expect(await lines('begun')).toHaveLength(restart * 2), SOON);
    const again = { kind: 'run_command', command: { kind: 'restartRun' } } as const;
    await applyEvent(fixture, run_id, again);
    const { a, b } = await stepsOfRun(fixture, run_id);
    expect([a!.status, b!.status, a!.output, b!.output]).toEqual(['ready', 'ready', null, null]);
  }
  await vi.waitFor(async () => expect(await lines('begun')).toHaveLength(8), SOON);
  await writeFile(join(fixture.folder, 'go'), '');
  expect((await untilRun(fixture, run_id, 'completed')).attempt).toBe(4);
  const { a, b } = await stepsOfRun(fixture, run_id);
  expect([a!.output, b!.output, a!.attempt, b!.attempt]).toEqual(['new\n', 'new\n', 4, 4]);
  expect(await lines('beside')).toEqual([]);
});

test("deleting a member's agent during its step makes the step require input, and resuming it creates a new agent", {
  timeout: 60_000,
}, async () => {
  const argv = [process.execPath, AGENT, 'slow'];
  const run_id = await beginRun(fixture, {
    members: [
      plainMember('plain', 'echo $$ >>pids; [ "$SVC_STEP_ATTEMPT" = 2 ] || sleep 1000'),
      plainMember('speaker', '', { command: null, argv, protocol: 'acp' }),
    ],
    steps: [
      { step_key: 'a', member_id: 'plain', max_attempts: 5 },
      { step_key: 'b', member_id: 'speaker' },
    ],
  });
  const step = async (key: string) => (await stepsOfRun(fixture, run_id))[key]!;
  for (const key of ['a', 'b']) {
    await vi.waitFor(async () => expect((await step(key)).status).toBe('running'), SOON);
    const { agent_id } = await step(key);
    await fixture.agents.delete(ANA, agent_id!, { force: true, delete_worktree: false });
    await vi.waitFor(async () => expect((await step(key)).status).toBe('input_required'), SOON);
  }
  expect((await runOf(fixture, run_id)).status).toBe('input_required');
  await applyEvent(fixture, run_id, { kind: 'step_command', step_key: 'a', command: { kind: 'resumeStep' } });
  await vi.waitFor(async () => expect((await step('a')).status).toBe('completed'), SOON);
  await applyEvent(fixture, run_id, { kind: 'step_command', step_key: 'b', command: { kind: 'resumeStep' } });
  await vi.waitFor(async () => expect((await step('b')).status).toBe('running'), SOON);
  await applyEvent(fixture, run_id, {
    kind: 'step_command',
    step_key: 'b',
    command: { kind: 'completeStep' },
  });
  await untilRun(fixture, run_id, 'completed');
  expect(await lines('pids')).toHaveLength(2);
});

const CHAIN = is_long ? 64 : 24;

test(`a chain of ${CHAIN} steps runs one process after another`, { timeout: 100_000 }, async () => {
  const keys = Array.from({ length: CHAIN }, (_, n) => `s${n}`);
  const run_id = await beginRun(fixture, {
    members: [plainMember('m', 'echo "$SVC_STEP_KEY" >>done')],
    steps: keys.map((step_key, n) => ({ step_key, depends_on: n === 0 ? [] : [keys[n - 1]!] })),
  });
  await vi.waitFor(async () => expect((await runOf(fixture, run_id)).status).toBe('completed'), {
    timeout: 90_000,
  });
  expect(await lines('done')).toEqual(keys);
});

test('an agent that speaks ACP runs two steps, and its permission reviews are answered', {
  timeout: 60_000,
}, async () => {
  const argv = EXAMPLE_AGENT;
  const run_id = await beginRun(fixture, {
    members: [plainMember('speaker', '', { command: null, argv, protocol: 'acp' })],
    steps: [
      { step_key: 'a', prompt: 'Look.' },
      { step_key: 'b', prompt: 'Look again.', depends_on: ['a'] },
    ],
  });
  for (const key of ['a', 'b']) {
    const review = await vi.waitFor(async () => {
      const { items } = await fixture.reviews.list(ANA, { status: 'pending' }, {});
      expect(items).toHaveLength(1);
      return items[0]!;
    }, SOON);
    expect((await stepsOfRun(fixture, run_id))[key]!.status).toBe('running');
    await fixture.reviews.respond(ANA, review.id, { decision: 'allow' }, null);
  }
  await untilRun(fixture, run_id, 'completed');
  const { a, b } = await stepsOfRun(fixture, run_id);
  expect(a!.agent_id).toBe(b!.agent_id);
  expect([typeof a!.output, typeof b!.output]).toEqual(['string', 'string']);
  await fixture.until(a!.agent_id!, 'cancelled');
});

const CHILD = fileURLToPath(new URL('../src/testing/team-runs-child.ts', import.meta.url));

/** Restarts the child until it exits by itself; only its first `kills` processes have the failpoint. Returns its output. */
async function livesOf(
  home: string,
  failpoint: string,
  kills: number,
): Promise<{ result: unknown; killed: number }> {
  for (let life = 0; ; life++) {
    const env = { ...process.env, ...(life < kills && { SVC_FAILPOINT: failpoint }) };
    const child = spawn(process.execPath, [CHILD, home, AGENT], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    await once(child, 'close');
    if (child.exitCode === 0) return { result: JSON.parse(text), killed: life };
    expect(child.signalCode).toBe('SIGKILL');
  }
}

/** To run more kills: `SVC_TEST_KILLS=100 npx vitest run test/team-runs.test.ts`. */
const KILLS = killCount(1, 40);
const commits = Array.from({ length: KILLS }, (_, n) => [`committed:kill@${5 + n * 10}`, 1] as const);

/** The number of kills at a place that each step passes. */
const OFTEN = is_long ? 20 : 5;
const points = [
  ['step_collected', OFTEN],
  ['ended', 1],
  ['step_prepared', OFTEN],
  ['step_message_collected', OFTEN],
] as const;

test.each([...firstOf(1, points), ...commits])(
  'a plane that is killed at %s neither loses nor repeats a step',
  { timeout: 120_000 },
  async (at, kills) => {
    const home = await mkdtemp(join(tmpdir(), 'svc-runs-'));
    try {
      const { result, killed } = await livesOf(home, at.includes(':') ? at : `${at}:kill`, kills);
      // With many kills, some are after the end of the run.
      if (KILLS <= 3) expect(killed).toBeGreaterThan(0);
      const plain = (key: string) => ({
        step_key: key,
        status: 'completed',
        attempt: 1,
        output: `"${key}\\n"`,
      });
      const spoken = (key: string) => ({
        step_key: key,
        status: 'completed',
        attempt: 1,
        output: '"1 2 3 "',
      });
      const steps = [plain('a'), plain('b'), plain('c'), spoken('d'), spoken('e'), plain('f')];
      expect(result).toMatchObject({ status: 'completed', steps, prompts: ['ended', 'ended'] });
      const done = (await readFile(join(home, 'done'), 'utf8')).split('\n').slice(0, -1);
      expect(done.toSorted()).toEqual(['a', 'b', 'c', 'f']);
    } finally {
      await endSessions(join(home, 'data'));
      await rm(home, { recursive: true, force: true, maxRetries: 5 });
    }
  },
);
