/**
 * Kills the plane while it executes runs of twenty steps, at random moments and at its commits: the side effect of a step
 * happens once per attempt, and every message arrives once.
 *
 * To run more kills, or others: `SVC_TEST_KILLS=100 SVC_TEST_SEED=7 npx vitest run test/team-kills.test.ts`.
 */
import { mkdtemp, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import type { EventRecord } from '../src/core/event.ts';
import type { Mail } from '../src/features/mailbox/rules/mail.ts';
import { isRunOver, type Run, type Step } from '../src/features/runs/rules/run.ts';
import { WITH_NODES } from '../src/testing/agent-node.ts';
import { retryWhileUnreachable } from '../src/testing/conversation.ts';
import { firstOf, killCount, longTest } from '../src/testing/long.ts';
import { SVC, TestPlane } from '../src/testing/plane.ts';
import { random } from '../src/testing/writers.ts';

const KILLS = killCount(3, 40);
const SEED = Number(process.env.SVC_TEST_SEED ?? 20_261_122);

let plane: TestPlane;
afterEach(() => plane.close());

/** Writes a line per attempt to a file, then waits for a moment in which the plane may be killed. */
const NOTE = 'echo "$SVC_STEP_KEY $SVC_STEP_ATTEMPT" >>done; sleep 0.05';
const FAN = ['f1', 'f2', 'f3', 'f4', 'f5', 'f6'];
const CHAIN = ['c1', 'c2', 'c3', 'c4', 'c5'];
const LAST = ['tidy', 'd2', 'g1', 'g2', 'c5'];

/** Twenty steps: a fan, a chain, one that fails at first, one that always runs, two of an agent that speaks ACP. */
function spec(folder: string) {
  const demo = [SVC, 'demo-agent', '--speed', '0', '--mode', 'auto', '--state', join(folder, 'demo')];
  const agentThatRuns = (command: string) => ({ command: `${NOTE}; ${command}`, workdir: folder });
  return {
    leader_member_id: 'lead',
    members: [
      { member_id: 'lead' },
      { member_id: 'plain', agent: agentThatRuns('echo "$SVC_STEP_KEY"') },
      { member_id: 'flaky', agent: agentThatRuns('[ "$SVC_STEP_ATTEMPT" = 2 ] && echo "$SVC_STEP_KEY"') },
      { member_id: 'tells', agent: agentThatRuns('cat "$SVC_STEP_INPUT"') },
      { member_id: 'demo', agent: { argv: demo, workdir: folder, protocol: 'acp' as const } },
    ],
    steps: [
      plain('begin'),
      ...FAN.map((key) => plain(key, 'begin')),
      plain('join', ...FAN),
      ...CHAIN.map((key, n) => plain(key, n === 0 ? 'join' : CHAIN[n - 1]!)),
      { step_key: 'again', member_id: 'flaky', depends_on: ['join'], max_attempts: 2 },
      { ...plain('tidy', 'again'), when: 'always' as const },
      plain('g1', 'again'),
      plain('g2', 'again'),
      // The demo agent ends its turn with a refusal while it cannot reach the plane.
      { step_key: 'd1', member_id: 'demo', depends_on: ['begin'], max_attempts: 100 },
      { step_key: 'd2', member_id: 'demo', depends_on: ['d1'], max_attempts: 100 },
      { step_key: 'last', member_id: 'tells', depends_on: LAST },
    ],
  };
}

function plain(step_key: string, ...depends_on: string[]) {
  return { step_key, member_id: 'plain', depends_on };
}

interface Begun {
  folder: string;
  run_id: string;
  params: { team_id: string; run_id: string };
  /** The number of messages sent so far, each of them twice. */
  sent: number;
}

async function begin(): Promise<Begun> {
  const folder = await mkdtemp(join(plane.work, 'run-'));
  const name = basename(folder);
  const body = { name, spec: spec(folder) };
  const made = { body, idempotency_key: `${name}-team` };
  const { id: team_id } = await retryWhileUnreachable(() => plane.client.call('createTeam', made));
  const request = { params: { team_id }, body: { input: { name } }, idempotency_key: `${name}-begin` };
  const { id: run_id } = await retryWhileUnreachable(() => plane.client.call('createRun', request));
  return { folder, run_id, params: { team_id, run_id }, sent: 0 };
}

const runOf = ({ params }: Begun) =>
  retryWhileUnreachable(() => plane.client.call('getRun', { params })) as Promise<Run>;

/** Sends the same message twice, like a client that received no response. */
async function send(to: Begun): Promise<void> {
  const n = to.sent++;
  const { run_id } = to;
  const body = { run_id, from_actor_id: 'user:ana', to_actor_id: 'lead', payload: { n } };
  const idempotency_key = `${run_id}-${n}`;
  for (let again = 0; again < 2; again++)
    await retryWhileUnreachable(() => plane.client.call('sendMail', { body, idempotency_key }));
}

async function over(run: Begun): Promise<void> {
  while (!isRunOver(await runOf(run))) await sleep(50);
}

/** Checks the result of a run, which must not depend on the kills. */
async function expectWhole(run: Begun): Promise<void> {
  const { params, folder, run_id } = run;
  const steps = (await plane.client.call('listSteps', { params })) as Step[];
  const of = Object.fromEntries(steps.map((step) => [step.step_key, step]));
  const wrong = steps.filter(({ status }) => status !== 'completed');
  expect(wrong).toEqual([]);
  const needs = Object.fromEntries(LAST.map((key) => [key, of[key]!.output]));
  const last = { run_input: { name: basename(folder) }, input: null, needs };
  expect(await runOf(run)).toMatchObject({
    ...{ status: 'completed', error: null, attempt: 1 },
    output: { last },
  });
  const byDemo = ['d1', 'd2'];
  const attempts = steps.flatMap(({ step_key, attempt }) =>
    byDemo.includes(step_key) ? [] : Array.from({ length: attempt }, (_, n) => `${step_key} ${n + 1}`),
  );
  expect(attempts).toHaveLength(19);
  const done = (await readFile(join(folder, 'done'), 'utf8')).split('\n').slice(0, -1);
  expect(done.toSorted()).toEqual(attempts.toSorted());
  for (const key of [...FAN, ...CHAIN, 'again', 'tidy']) expect(of[key]!.output).toBe(`${key}\n`);
  const prompts = await promptsTo(of.d1!.agent_id!);
  for (const key of byDemo) {
    expect(prompts.filter((text) => text.includes(`step is "${key}"`))).toHaveLength(of[key]!.attempt);
  }
  const query = { run_id, status: 'all' as const, limit: 200 };
  const actor_id = `lead@${params.team_id}`;
  const mail = (await plane.client.call('listMail', { params: { actor_id }, query })) as Mail[];
  const from_ana = mail.filter(({ from_actor_id }) => from_actor_id === 'user:ana');
  expect(from_ana.map(({ payload }) => payload.n)).toEqual(Array.from({ length: run.sent }, (_, n) => n));
  // An attempt sends one report; one that ended with a refusal may have sent it before.
  for (const key of byDemo) {
    const reports = mail.filter(({ payload }) => String(payload.text).startsWith(`${key}: `));
    expect(reports.length).toBeGreaterThan(0);
    expect(reports.length).toBeLessThanOrEqual(of[key]!.attempt);
  }
}

async function promptsTo(agent_id: string): Promise<string[]> {
  const { last_seq } = await plane.finished(agent_id);
  const frames = await plane.frames(agent_id, (found) => Number(found.at(-1)!.id) >= last_seq);
  return frames
    .flatMap(({ data }) => {
      const { method, direction, payload } = data as unknown as EventRecord;
      return direction === 'to_agent' && method === 'session/prompt' ? [JSON.stringify(payload)] : [];
    })
    .map((text) => text.replaceAll('\\"', '"'));
}

longTest(
  `a plane that is killed ${KILLS} times at random moments neither repeats nor skips a step`,
  {
    timeout: 60_000 + KILLS * 15_000,
  },
  async () => {
    plane = await TestPlane.open({ env: WITH_NODES });
    const next = random(SEED);
    let run = await begin();
    for (let kill = 0; kill < KILLS; kill++) {
      if (isRunOver(await runOf(run))) {
        await expectWhole(run);
        run = await begin();
      }
      await sleep(next() * 700);
      if (!isRunOver(await runOf(run))) await send(run);
      await plane.kill();
      await sleep(next() * 200);
      await plane.start();
    }
    await over(run);
    await expectWhole(run);
  },
);

const PLACES = [
  'step_prepared',
  'step_collected',
  'step_message_collected',
  'stdin_written',
  'commit',
  'committed',
];

/** Where each process of the plane is killed, one after another, counted from its start. */
function places(): string[] {
  const next = random(SEED);
  const more = Array.from({ length: Math.max(0, KILLS - PLACES.length) }, () => {
    const name = PLACES[Math.floor(next() * PLACES.length)]!;
    return `${name}@${1 + Math.floor(next() * (name.startsWith('commit') ? 60 : 4))}`;
  });
  const each = [
    'step_collected@1',
    'committed@12',
    'step_prepared@1',
    'commit@18',
    'step_message_collected@1',
  ];
  return [...firstOf(2, each), ...more];
}

test('a plane that is killed at commits and other failpoints runs no step twice', {
  timeout: 60_000 + KILLS * 15_000,
}, async () => {
  plane = await TestPlane.open({ env: WITH_NODES });
  await plane.kill();
  const left = places();
  let is_enough = false;
  const living = (async () => {
    for (; !is_enough || !plane.isRunning; await sleep(5)) {
      if (plane.isRunning) continue;
      const [name, n] = (is_enough ? undefined : left.shift())?.split('@') ?? [];
      // The plane may be killed while it starts.
      await plane.start(name === undefined ? {} : { SVC_FAILPOINT: `${name}:kill@${n}` }).catch(() => {});
    }
  })();
  const runs: Begun[] = [];
  do {
    const run = await begin();
    await send(run);
    await over(run);
    runs.push(run);
  } while (left.length > 0);
  is_enough = true;
  await living;
  // The last process may still have a failpoint.
  await plane.kill();
  await plane.start();
  for (const run of runs) await expectWhole(run);
});
