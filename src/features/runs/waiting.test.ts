/** Steps that wait for an answer: their list, and the records of their agents. */
import type { SQLInputValue } from 'node:sqlite';
import type { Compilable } from 'kysely';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { rfc3339 } from '../../base/clock.ts';
import type { Reader } from '../../store/store.ts';
import { committedCalls } from '../../testing/committed-calls.ts';
import { ANA, BEN, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { signIn } from '../../testing/sign-in.ts';
import {
  addRun,
  applyEvent,
  beginRun,
  plainMember,
  runOf,
  specWith,
  stepsOfRun,
} from '../../testing/team-runs.ts';
import { openSecondConnection, sqliteTest } from '../../testing/test-store.ts';
import { listAgents } from '../agents/queries/agents.ts';
import { AgentWaits } from '../agents/waiting.ts';
import { findRun } from './queries/runs.ts';
import { listWaitingRuns, listWaitingSteps } from './queries/waiting.ts';
import type { RunCommand, StepCommand } from './rules/graph.ts';
import type { Step } from './rules/run.ts';
import type { StepRequest } from './run-commands.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

const question = (reason: string): StepCommand => ({ kind: 'requireStepInput', reason });
const command = (run_id: string, step_key: string, command: StepCommand) =>
  applyEvent(fixture, run_id, { kind: 'step_command', step_key, command });
const commandRun = (run_id: string, command: RunCommand) =>
  applyEvent(fixture, run_id, { kind: 'run_command', command });
const waiting = (caller = ANA) => fixture.runs.runs.waitingSteps(caller, {}).then(({ items }) => items);

/** A run of two plain steps that both run. */
async function begin(): Promise<string> {
  const run_id = await beginRun(fixture, {
    members: [plainMember('dev', 'work')],
    steps: [{ step_key: 'a' }, { step_key: 'b' }],
  });
  await vi.waitFor(async () => {
    const { a, b } = await stepsOfRun(fixture, run_id);
    expect([a!.status, b!.status]).toEqual(['running', 'running']);
  }, SOON);
  return run_id;
}

test('waiting steps of all runs are listed, the longest wait first, with their question and agent', async () => {
  const [first, second] = [await begin(), await begin()];
  await command(second, 'b', question('Which color?'));
  await fixture.advanceClock(1000);
  await command(first, 'a', question('Which title?'));
  const { agent_id, waiting_since } = (await stepsOfRun(fixture, first)).a!;
  const all = await waiting();
  expect(all).toMatchObject([
    { run_id: second, step_key: 'b', question: 'Which color?', attempt: 1 },
    { run_id: first, step_key: 'a', question: 'Which title?', member_id: 'dev', agent_id, waiting_since },
  ]);
  expect(Date.parse(all[1]!.waiting_since) - Date.parse(all[0]!.waiting_since)).toBe(1000);
  const page = await fixture.runs.runs.waitingSteps(ANA, { limit: 1 });
  expect(page.items).toEqual(all.slice(0, 1));
  const { next_cursor: cursor } = page;
  expect(await fixture.runs.runs.waitingSteps(ANA, { limit: 1, cursor: cursor! })).toEqual({
    items: all.slice(1),
  });
  expect(() => fixture.runs.runs.waitingSteps(ANA, { cursor: 'no' })).toThrow('invalid cursor');
});

test('the steps of another user’s team are not listed, those of a team with the caller are', async () => {
  const run = await addRun(fixture.store, ANA, specWith({ lead: null }), [BEN]);
  const step = { member_id: 'lead', kind: 'outside', depends_on: [], when: 'on_success' } as const;
  const by = { user_id: null, ip: null, actor_id: 'user:ana' };
  await fixture.store.write(async (tx) => {
    const commands = fixture.runs.runs.commands;
    const row = (await findRun(tx, run.id))!;
    const none = { prompt: '', input: null, timeout_seconds: null, max_attempts: 1 };
    await commands.addStep(tx, row, { ...none, ...step, depends_on: [], step_key: 'ask' }, by);
    await commands.commandStep(tx, row, 'ask', { kind: 'requireStepInput', reason: 'Which?' }, by);
  });
  await command(await begin(), 'a', question('Not for ben'));
  const found = await waiting(BEN);
  expect(found).toMatchObject([{ run_id: run.id, step_key: 'ask', agent_id: null }]);
  expect(await waiting({ ...BEN, user_id: 'usr_other' })).toEqual([]);
  const limited = { scopes: ['read'], limits: { agent_ids: [], team_ids: [found[0]!.team_id] } } as const;
  expect(await waiting({ ...ANA, grant: limited as never })).toEqual(found);
});

test('a step names who answered it and what, until it waits again or its run starts again', async () => {
  const run_id = await begin();
  const by = { user_id: null, ip: null, actor_id: 'user:ben' };
  const say = (request: StepRequest) =>
    fixture.store.write(async (tx) => {
      const commands = fixture.runs.runs.commands;
      return commands.commandStep(tx, (await findRun(tx, run_id))!, 'a', request, by);
    });
  expect(await say({ kind: 'requireStepInput', reason: 'Which?' })).toMatchObject({ answered_by: null });
  const answered = { answer: 'Rain', answered_by: 'ben' };
  expect(await say({ kind: 'resumeStep', input: 'Rain' })).toMatchObject(answered);
  const waits = await say({ kind: 'requireStepInput', reason: 'Sure?' });
  expect(waits).toMatchObject({ status: 'input_required', answered_by: null });
  expect(await say({ kind: 'completeStep' })).toMatchObject({ status: 'completed', answered_by: 'ben' });
  await commandRun(run_id, { kind: 'restartRun' });
  expect((await stepsOfRun(fixture, run_id)).a).toMatchObject({ answer: null, answered_by: null });
  // Nobody had asked.
  expect(await say({ kind: 'failStep', error_text: 'no' })).toMatchObject({ answered_by: null });
});

/** Sends a command to step `a` of the run as ANA does. */
async function commandStep(run_id: string, request: StepRequest) {
  const { team_id } = await runOf(fixture, run_id);
  return fixture.runs.runs.commandStep(ANA, { team_id, run_id, step_key: 'a' }, request, null);
}

const step_changed = { kind: 'conflict', code: 'step_changed' };

test('an answer to an earlier question is refused, and the step still waits', async () => {
  const run_id = await begin();
  const step = async () => (await stepsOfRun(fixture, run_id)).a!;
  await command(run_id, 'a', question('Which title?'));
  const { waiting_since } = (await waiting())[0]!;
  const answer = (input: string, since: string) =>
    commandStep(run_id, { kind: 'resumeStep', input, waiting_since: since });
  await answer('Rain', waiting_since);
  await fixture.advanceClock(1000);
  // The status of the step takes precedence.
  await expect(answer('Snow', waiting_since)).rejects.toThrow(/^step is (ready|running)$/);
  await command(run_id, 'a', question('Print it?'));
  const asked = await step();
  await expect(answer('Snow', waiting_since)).rejects.toMatchObject(step_changed);
  expect(await step()).toEqual(asked);
  expect(asked).toMatchObject({ status: 'input_required', attempt: 2, answer: 'Rain', answered_by: null });
  expect(await answer('Yes', asked.waiting_since!)).toMatchObject({ attempt: 3, answer: 'Yes' });
});

test('a result of an earlier start is refused, and the step continues', async () => {
  const run_id = await begin();
  const get = async () => (await stepsOfRun(fixture, run_id)).a!;
  const complete = ({ started_at }: Step) =>
    commandStep(run_id, { kind: 'completeStep', output: 1, started_at });
  const fail = ({ started_at }: Step) =>
    commandStep(run_id, { kind: 'failStep', error_text: 'no', started_at });
  const first = await get();
  await fixture.advanceClock(1);
  await commandRun(run_id, { kind: 'restartRun' });
  await expect(complete(first)).rejects.toMatchObject(step_changed);
  await vi.waitFor(async () => expect((await get()).status).toBe('running'), SOON);
  await expect(complete(first)).rejects.toMatchObject(step_changed);
  await expect(fail(first)).rejects.toMatchObject(step_changed);
  const second = await get();
  expect(second).toMatchObject({ status: 'running', output: null, ended_at: null });
  expect(await complete(second)).toMatchObject({ status: 'completed', output: 1 });
  await expect(complete(first)).rejects.toThrow('step is completed');
});

test('the agent’s record and the fleet feed say that its step waits, until it is answered', async () => {
  const run_id = await begin();
  const { a, b } = await stepsOfRun(fixture, run_id);
  const published = committedCalls(fixture.feed, 'append');
  const records = () =>
    published
      .filter(([kind]) => kind === 'agent')
      .map(([, , record]) => record as Record<string, unknown>)
      .map(({ id, pending_questions, needs_you }) => ({ id, pending_questions, needs_you }));
  const waits = new AgentWaits(fixture.agents, fixture);
  await signIn(fixture.store, ANA);
  const needed = waits.until(ANA, a!.agent_id!, 'needs_you', 60_000, new AbortController().signal);
  await command(run_id, 'a', question('Which title?'));
  const asks = { id: a!.agent_id, pending_questions: 1, needs_you: 'question' };
  expect(records()).toEqual([asks]);
  expect(await needed).toMatchObject(asks);
  expect(await fixture.get(a!.agent_id!)).toMatchObject(asks);
  expect(await fixture.get(b!.agent_id!)).toMatchObject({ pending_questions: 0, needs_you: null });
  // The answer starts another attempt with another agent.
  await command(run_id, 'a', { kind: 'resumeStep' });
  expect(records()).toContainEqual({ id: a!.agent_id, pending_questions: 0, needs_you: null });
  expect(await waiting()).toEqual([]);
  expect((await stepsOfRun(fixture, run_id)).a!.waiting_since).toBe(null);
});

test('the end of its attempt does not end a wait, but the end or a new attempt of its run does', async () => {
  const run_id = await begin();
  const { a } = await stepsOfRun(fixture, run_id);
  await command(run_id, 'a', question('Which title?'));
  const [before] = await waiting();
  await fixture.advanceClock(1000);
  const attempt = { step_key: 'a', attempt: 1 };
  await applyEvent(fixture, run_id, { kind: 'step_unknown', ...attempt, reason: 'outcome unknown' });
  expect(await waiting()).toEqual([before]);
  await commandRun(run_id, { kind: 'restartRun' });
  expect(await waiting()).toEqual([]);
  expect(await fixture.get(a!.agent_id!)).toMatchObject({ needs_you: null });
  await command(run_id, 'a', question('Which title, again?'));
  expect(await waiting()).toMatchObject([{ question: 'Which title, again?' }]);
  await commandRun(run_id, { kind: 'cancelRun' });
  expect(await waiting()).toEqual([]);
});

test('a run whose round has an unknown outcome is listed once none of its steps waits, until it continues', async () => {
  const members = [plainMember('lead', 'sleep 600'), plainMember('dev', 'sleep 600')];
  const run_id = await beginRun(fixture, { members, leader: 'lead' });
  const runs = (caller = ANA) => fixture.runs.runs.waitingRuns(caller, {}).then(({ items }) => items);
  const step = {
    step_key: 'a',
    member_id: 'dev',
    kind: 'plain',
    depends_on: [],
    when: 'on_success',
  } as const;
  await fixture.store.write(async (tx) => {
    const commands = fixture.runs.runs.commands;
    const none = { prompt: '', input: null, timeout_seconds: null, max_attempts: 1 };
    const by = { user_id: null, ip: null, actor_id: 'user:ana' };
    await commands.addStep(tx, (await findRun(tx, run_id))!, { ...none, ...step, depends_on: [] }, by);
  });
  await command(run_id, 'a', question('Which title?'));
  await applyEvent(fixture, run_id, { kind: 'round_unknown', round: 1, reason: 'outcome unknown' });
  const waits = () => fixture.store.read(async (reader) => (await findRun(reader, run_id))!);
  expect((await waits()).status).toBe('input_required');
  expect(await runs()).toEqual([]);
  await command(run_id, 'a', { kind: 'failStep', error_text: 'no' });
  const { waiting_since } = await waits();
  const listed = { run_id, run_number: 1, reason: 'outcome unknown', waiting_since: rfc3339(waiting_since!) };
  expect(await runs()).toMatchObject([listed]);
  expect(await fixture.runs.runs.waitingRuns(ANA, { limit: 1 })).toMatchObject({ items: [listed] });
  expect(await runs(BEN)).toEqual([]);
  await commandRun(run_id, { kind: 'resumeRun' });
  expect(await runs()).toEqual([]);
  expect((await waits()).waiting_since).toBe(null);
});

sqliteTest(
  'the list reads waiting steps in their order from an index, and an agent only its own',
  async () => {
    const database = openSecondConnection(fixture.store);
    const { sql } = await fixture.store.read(({ sql }) => ({ sql }));
    let plan = '';
    const all = (query: Compilable) => {
      const { sql: text, parameters } = query.compile();
      const steps = database.prepare(`EXPLAIN QUERY PLAN ${text}`).all(...(parameters as SQLInputValue[]));
      plan = steps.map(({ detail }) => detail).join('\n');
      return [];
    };
    const reader = { sql, all } as unknown as Reader;
    try {
      for (const user_id of [null, 'usr_1']) {
        for (const after of [undefined, [5, 1] as [number, number]]) {
          await listWaitingSteps(reader, { user_id, limits: null }, { after, limit: 50 });
          expect(plan).toContain('USING INDEX run_steps_waiting_since');
          // The other table is the union of the user's teams.
          expect(plan.match(/TEMP B-TREE FOR ORDER BY/g) ?? []).toHaveLength(user_id === null ? 0 : 1);
          await listWaitingRuns(reader, { user_id, limits: null }, { after, limit: 50 });
          expect(plan).toContain('USING INDEX runs_waiting_since');
          expect(plan).not.toMatch(/SCAN run_steps/);
        }
      }
      await listAgents(reader, { view: { user_id: null, limits: null } });
      expect(plan).toContain('SEARCH run_attempts USING INDEX run_attempts_agent');
      expect(plan).not.toMatch(/SCAN run_(steps|attempts)/);
    } finally {
      database.close();
    }
  },
);
