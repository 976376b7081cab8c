import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { KIB } from '../../base/limits.ts';
import { problems } from '../../core/problem.ts';
import { ANA, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { ScriptedAcp } from '../../testing/scripted-acp.ts';
import { ended } from '../../testing/scripted-node.ts';
import {
  addToRun,
  applyEvent,
  beginRun,
  plainMember,
  runOf,
  stepsOfRun,
  untilRun,
} from '../../testing/team-runs.ts';
import { Outbox } from '../../work/outbox.ts';
import { findSession, updateSession } from '../agents/queries/agents.ts';
import { limits as conversationLimits } from '../conversations/limits.ts';
import type { Member } from '../teams/rules/team.ts';
import { limits } from './limits.ts';
import { findRun } from './queries/runs.ts';
import { findStep, updateStep } from './queries/steps.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

const talker = (member_id: string, more: Partial<Member> = {}): Member => ({
  ...plainMember(member_id, 'agent', { protocol: 'acp' }),
  ...more,
});

const two = {
  members: [talker('ann')],
  steps: [
    { step_key: 'a', prompt: 'Do A.' },
    { step_key: 'b', prompt: 'Do B.' },
  ],
};

/** Waits until the node knows another session, and returns its id. */
async function nextSession(...known: string[]): Promise<string> {
  return vi.waitFor(() => {
    const found = [...fixture.node.launches.keys()].find((id) => !known.includes(id));
    expect(found).toBeDefined();
    return found!;
  }, SOON);
}

async function nextAcp(...known: string[]): Promise<ScriptedAcp> {
  const acp = new ScriptedAcp(fixture, await nextSession(...known));
  await acp.openSession();
  return acp;
}

/** Waits for a prompt, and returns its id and text. */
async function prompted(acp: ScriptedAcp): Promise<{ id: string; text: string }> {
  const { id, params } = await acp.receive('request', 'session/prompt');
  return { id: id as string, text: (params as { prompt: { text: string }[] }).prompt[0]!.text };
}

function endTurn(acp: ScriptedAcp, id: string, stopReason = 'end_turn'): void {
  acp.send({ kind: 'response', id, result: { stopReason } });
}

function writes(acp: ScriptedAcp, text: string): void {
  acp.sendUpdate({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
}

const step = async (run_id: string, key: string) => (await stepsOfRun(fixture, run_id))[key]!;

async function untilStep(run_id: string, key: string, status: string) {
  await vi.waitFor(async () => expect((await step(run_id, key)).status).toBe(status), SOON);
  return step(run_id, key);
}

async function untilAttention(run_id: string) {
  await vi.waitFor(async () => expect((await runOf(fixture, run_id)).attention).not.toBe(null), SOON);
  return runOf(fixture, run_id);
}

test('a member that speaks ACP takes its steps one after another, in one session', async () => {
  const run_id = await beginRun(fixture, two);
  const acp = await nextAcp();
  const first = await prompted(acp);
  expect(first.text).toContain('You are ann');
  expect(first.text).toContain('Do A.');
  await untilStep(run_id, 'a', 'running');
  expect((await step(run_id, 'b')).status).toBe('ready');
  writes(acp, 'I will look.');
  acp.sendUpdate({ sessionUpdate: 'tool_call', toolCallId: 'c', title: 'look' });
  writes(acp, 'A is ');
  writes(acp, 'done.');
  acp.sendUpdate({ sessionUpdate: 'usage_update', used: 1, size: 2 });
  endTurn(acp, first.id);
  const second = await prompted(acp);
  expect(second.text).toContain('Do B.');
  expect(second.text).not.toContain('You are ann');
  endTurn(acp, second.id);
  await untilRun(fixture, run_id, 'completed');
  expect((await step(run_id, 'a')).output).toBe('A is done.');
  expect((await step(run_id, 'b')).output).toBe(null);
  await fixture.until((await step(run_id, 'a')).agent_id!, 'cancelled');
});

test.each([
  { reason: 'refusal', said: 'No. ', error_text: 'the agent refused: No.' },
  { reason: 'refusal', said: 'x'.repeat(2_000), error_text: `the agent refused: ${'x'.repeat(1_000)}…` },
  { reason: '_other', said: '', error_text: 'the turn ended: _other' },
  { reason: 'constructor', said: 'Bye.', error_text: 'the turn ended: constructor: Bye.' },
  { reason: 'max_tokens', said: 'A is', error_text: 'the agent reached the maximum number of tokens' },
])('a turn that ends with $reason after $said.length characters fails the step', async (ending) => {
  const run_id = await beginRun(fixture, { ...two, steps: [{ step_key: 'a' }] });
  const acp = await nextAcp();
  const { id } = await prompted(acp);
  const enqueue = vi.spyOn(Outbox.prototype, 'enqueue');
  onTestFinished(() => enqueue.mockRestore());
  writes(acp, ending.said);
  endTurn(acp, id, ending.reason);
  await untilRun(fixture, run_id, 'failed');
  expect((await step(run_id, 'a')).error_text).toBe(ending.error_text);
  // An older program completes the step when it carries out this intent.
  expect(enqueue.mock.calls.map(([, , , kind]) => kind)).not.toContain('collect_message');
});

test('prompts say that commands are not available if agents cannot call the plane', async () => {
  await fixture.close();
  fixture.actor_calls = false;
  await fixture.open();
  await beginRun(fixture, { members: [talker('lea'), plainMember('bob', 'work')], leader: 'lea' });
  const { text } = await prompted(await nextAcp());
  expect(text).toContain('The commands of `svc actor` are not available here.');
  expect(text).toContain('You cannot add steps here.');
  expect(text).not.toContain('svc actor step-add');
});

test('a step whose agent dies during the turn requires input, and can be resumed', async () => {
  const run_id = await beginRun(fixture, { ...two, steps: [{ step_key: 'a', max_attempts: 5 }] });
  const acp = await nextAcp();
  await prompted(acp);
  await untilStep(run_id, 'a', 'running');
  fixture.node.end(acp.session_id, 1);
  const unclear = await untilStep(run_id, 'a', 'input_required');
  expect(unclear).toMatchObject({ error_text: 'outcome unknown', attempt: 1 });
  expect((await runOf(fixture, run_id)).status).toBe('input_required');
  await applyEvent(fixture, run_id, { kind: 'step_command', step_key: 'a', command: { kind: 'resumeStep' } });
  const again = new ScriptedAcp(fixture, await nextSession(acp.session_id));
  await again.openSession();
  const prompt = await prompted(again);
  // A new process needs the introduction again.
  expect(prompt.text).toContain('You are ann');
  endTurn(again, prompt.id);
  await untilRun(fixture, run_id, 'completed');
});

test('a member whose input was lost in a restore does its next step in a new session', async () => {
  await beginRun(fixture, two);
  const acp = await nextAcp();
  const { id } = await prompted(acp);
  await fixture.store.write(async (tx) =>
    updateSession(tx, (await findSession(tx, acp.session_id))!.num, { stdin_lost: 1 }),
  );
  endTurn(acp, id);
  const again = new ScriptedAcp(fixture, await nextSession(acp.session_id));
  await again.openSession();
  expect((await prompted(again)).text).toContain('Do B.');
});

test('an agent that dies before its prompt was sent has not started the step', async () => {
  const run_id = await beginRun(fixture, { ...two, steps: [{ step_key: 'a', max_attempts: 2 }] });
  const session_id = await nextSession();
  fixture.node.end(session_id, 1);
  const acp = await nextAcp(session_id);
  endTurn(acp, (await prompted(acp)).id);
  await untilRun(fixture, run_id, 'completed');
  expect((await step(run_id, 'a')).attempt).toBe(2);
});

test('a late report of the end of a session does not affect the next session', async () => {
  const run_id = await beginRun(fixture, { ...two, steps: [{ step_key: 'a', max_attempts: 2 }] });
  const before = await nextSession();
  fixture.node.end(before, 1);
  const acp = await nextAcp(before);
  const prompt = await prompted(acp);
  const { agent_id } = await untilStep(run_id, 'a', 'running');
  const late = { agent_id: agent_id!, session_id: before, status: 'failed' };
  await fixture.store.write((tx) => fixture.facts.record(tx, 'session_ended', before, late));
  endTurn(acp, prompt.id);
  await untilRun(fixture, run_id, 'completed');
});

test('a step whose prompt is removed requires input, and can be resumed', async () => {
  const run_id = await beginRun(fixture, { ...two, steps: [{ step_key: 'a', max_attempts: 5 }] });
  // The agent is not ready yet, so the prompt is queued.
  const acp = new ScriptedAcp(fixture, await nextSession());
  const agent_id = (await step(run_id, 'a')).agent_id!;
  const [waiting] = await fixture.prompting.list(ANA, agent_id);
  await fixture.prompting.remove(ANA, agent_id, waiting!.id);
  const unclear = await untilStep(run_id, 'a', 'input_required');
  expect(unclear).toMatchObject({ error_text: 'its prompt was removed', attempt: 1 });
  await applyEvent(fixture, run_id, { kind: 'step_command', step_key: 'a', command: { kind: 'resumeStep' } });
  await acp.openSession();
  const prompt = await prompted(acp);
  // It has not received the introduction yet.
  expect(prompt.text).toContain('You are ann');
  endTurn(acp, prompt.id);
  await untilRun(fixture, run_id, 'completed');
});

test('completing a step by a command ends its turn, and the agent keeps running', async () => {
  const run_id = await beginRun(fixture, two);
  const acp = await nextAcp();
  const first = await prompted(acp);
  await untilStep(run_id, 'a', 'running');
  await applyEvent(fixture, run_id, {
    kind: 'step_command',
    step_key: 'a',
    command: { kind: 'completeStep' },
  });
  await acp.receive('notification', 'session/cancel');
  endTurn(acp, first.id, 'cancelled');
  endTurn(acp, (await prompted(acp)).id);
  await untilRun(fixture, run_id, 'completed');
  expect(fixture.node.launches.size).toBe(1);
});

test('a leader plans, gets another round when all steps have ended, and gives the output of the run', async () => {
  const run_id = await beginRun(fixture, {
    members: [talker('lea'), plainMember('bob', 'work')],
    leader: 'lea',
    input: { topic: 'x' },
  });
  const acp = await nextAcp();
  const plan = await prompted(acp);
  expect(plan.text).toContain('You are lea, the leader');
  expect(plan.text).toContain('svc actor step-add');
  await addToRun(fixture, run_id, { step_key: 'dig', member_id: 'bob', prompt: 'Dig.' });
  await addToRun(fixture, run_id, {
    step_key: 'fill',
    member_id: 'lea',
    depends_on: ['dig'],
    prompt: 'Fill.',
  });
  const dig = await nextSession(acp.session_id);
  endTurn(acp, plan.id);
  fixture.node.write(dig, Buffer.from('a hole'));
  fixture.node.end(dig, 0);
  // The leader can take steps like any member.
  const fill = await prompted(acp);
  expect(fill.text).toContain('Output of step dig:\n<<<\na hole\n>>>');
  endTurn(acp, fill.id);
  const sum = await prompted(acp);
  expect(sum.text).toContain('Step dig of bob: completed:\n<<<\na hole\n>>>');
  writes(acp, 'All is well.');
  endTurn(acp, sum.id);
  expect(JSON.parse((await untilRun(fixture, run_id, 'completed')).output!)).toBe('All is well.');
});

test('a run whose leader dies during a round requires input', async () => {
  const run_id = await beginRun(fixture, { members: [talker('lea')], leader: 'lea' });
  const acp = await nextAcp();
  await prompted(acp);
  await vi.waitFor(
    async () =>
      expect((await fixture.get((await fixture.agents.list(ANA, {}, {})).items[0]!.id)).activity).toBe(
        'working',
      ),
    SOON,
  );
  fixture.node.end(acp.session_id, 1);
  await untilRun(fixture, run_id, 'input_required');
  expect((await runOf(fixture, run_id)).error).toBe('the leader: outcome unknown');
});

test('the output of a plain session is its output file, else what it printed', async () => {
  const run_id = await beginRun(fixture, { members: [plainMember('m', 'x')], steps: [{ step_key: 'a' }] });
  const id = await nextSession();
  expect(JSON.parse(fixture.node.launches.get(id)!.step_input!)).toEqual({
    run_input: {},
    input: null,
    needs: {},
  });
  fixture.node.write(id, Buffer.from('printed'));
  fixture.node.outputs.set(id, Buffer.from('[1, 2]'));
  fixture.node.end(id, 0);
  await untilRun(fixture, run_id, 'completed');
  expect((await step(run_id, 'a')).output).toEqual([1, 2]);
});

test('cuts an output that is too long, with a note', async () => {
  const run_id = await beginRun(fixture, { members: [plainMember('m', 'x')], steps: [{ step_key: 'a' }] });
  const id = await nextSession();
  fixture.node.outputs.set(id, Buffer.alloc(2 ** 20 + 1, 'x'));
  fixture.node.end(id, 0);
  await untilRun(fixture, run_id, 'completed');
  expect((await step(run_id, 'a')).output).toMatch(
    /x\n\[the output continues: only 1048576 bytes are kept\]$/,
  );
});

test('a step fails without a retry if its output exceeds the limit of the run', async () => {
  // The real limit takes a slow machine half a minute.
  const limit = vi.spyOn(limits, 'run_outputs_bytes_max', 'get').mockReturnValue(64 * KIB);
  onTestFinished(() => limit.mockRestore());
  const steps = [
    { step_key: 'a', max_attempts: 3 },
    { step_key: 'b', member_id: 'out' },
  ];
  const out = { ...plainMember('out', ''), agent: null };
  const run_id = await beginRun(fixture, { members: [plainMember('m', 'x'), out], steps });
  const id = await nextSession();
  await fixture.store.write(async (tx) => {
    const { num } = (await findStep(tx, (await findRun(tx, run_id))!.num, 'b'))!;
    updateStep(tx, num, { output: JSON.stringify('x'.repeat(64 * KIB - 8192)) });
  });
  fixture.node.outputs.set(id, Buffer.alloc(8192, 'x'));
  fixture.node.end(id, 0);
  expect((await untilStep(run_id, 'a', 'failed')).error_text).toBe('the outputs of the run are over 32 MiB');
  await fixture.store.write(async (tx) => {
    const run = (await findRun(tx, run_id))!;
    const who = { user_id: null, ip: null, actor_id: 'user:ana' };
    const commands = fixture.runs.runs.commands;
    const command = { kind: 'completeStep', output: 'x'.repeat(65 * KIB) } as const;
    await expect(commands.commandStep(tx, run, 'b', command, who)).rejects.toThrow(
      'the outputs of the run are over 32 MiB',
    );
  });
});

test.each(['host_restarted', 'exit_status_unknown', 'session_lost'] as const)(
  'a step whose session ended by %s has an unknown outcome',
  async (reason) => {
    const run_id = await beginRun(fixture, {
      members: [plainMember('m', 'x')],
      steps: [{ step_key: 'a', max_attempts: 3 }],
    });
    const id = await nextSession();
    await untilStep(run_id, 'a', 'running');
    const body = ended(null);
    if (body.kind === 'ended') body.end.exit = { ...body.end.exit, reason };
    fixture.node.sendFact(id, body);
    expect(await untilStep(run_id, 'a', 'input_required')).toMatchObject({ error_text: 'outcome unknown' });
  },
);

test('a step waits for an unreachable node, and starts once', async () => {
  const { resolve } = fixture.node.folders;
  let away = true;
  fixture.node.folders.resolve = async (workdir) => {
    if (away) throw problems.nodeUnreachable();
    return resolve(workdir);
  };
  const run_id = await beginRun(fixture, { members: [plainMember('m', 'x')], steps: [{ step_key: 'a' }] });
  await new Promise((done) => setTimeout(done, 100));
  expect((await step(run_id, 'a')).status).toBe('ready');
  away = false;
  const id = await nextSession();
  await untilStep(run_id, 'a', 'running');
  await fixture.close();
  await fixture.open();
  fixture.node.end(id, 0);
  await untilRun(fixture, run_id, 'completed');
  expect(fixture.node.launches.size).toBe(1);
});

test('agents that the end of the run stops say so, and one that a person stopped before does not', async () => {
  const { members, steps } = two;
  const run_id = await beginRun(fixture, {
    members: [...members, talker('bob')],
    steps: [steps[0]!, { ...steps[1]!, member_id: 'bob', max_attempts: 1 }],
  });
  const first = await nextAcp();
  const second = await nextAcp(first.session_id);
  for (const acp of [first, second]) await prompted(acp);
  await untilStep(run_id, 'a', 'running');
  await untilStep(run_id, 'b', 'running');
  const ann = (await step(run_id, 'a')).agent_id!;
  const bob = (await step(run_id, 'b')).agent_id!;
  await fixture.agents.stop(ANA, bob, 0);
  await fixture.until(bob, 'cancelled');
  await untilStep(run_id, 'b', 'input_required');
  expect(await fixture.agents.get(ANA, ann)).toMatchObject({ status: 'running', stopped_by_run: null });
  await applyEvent(fixture, run_id, { kind: 'run_command', command: { kind: 'failRun', error_text: 'no' } });
  await fixture.until(ann, 'cancelled');
  expect(await fixture.agents.get(ANA, ann)).toMatchObject({ stopped_by_run: 'failed' });
  expect(await fixture.agents.get(ANA, bob)).toMatchObject({ stopped_by_run: null });
});

test('restarting a running run stops its agents and starts new ones', async () => {
  const run_id = await beginRun(fixture, two);
  const acp = await nextAcp();
  await prompted(acp);
  await untilStep(run_id, 'a', 'running');
  const before = (await step(run_id, 'a')).agent_id!;
  await applyEvent(fixture, run_id, { kind: 'run_command', command: { kind: 'restartRun' } });
  await fixture.until(before, 'cancelled');
  const again = await nextAcp(acp.session_id);
  expect((await prompted(again)).text).toContain('You are ann');
  expect((await step(run_id, 'a')).agent_id).not.toBe(before);
});

test('a restart keeps nothing from commands or outcomes of the earlier attempt', async () => {
  const run_id = await beginRun(fixture, { members: [plainMember('m', 'x')], steps: [{ step_key: 'a' }] });
  const first = await nextSession();
  const body = ended(null);
  if (body.kind === 'ended') body.end.exit = { ...body.end.exit, reason: 'session_lost' };
  fixture.node.sendFact(first, body);
  await untilStep(run_id, 'a', 'input_required');
  await fixture.store.write(async (tx) => {
    const run = (await findRun(tx, run_id))!;
    updateStep(tx, (await findStep(tx, run.num, 'a'))!.num, { answer: '"yes"' });
    await fixture.publisher.addAttention(tx, run, 'look');
  });
  await applyEvent(fixture, run_id, { kind: 'run_command', command: { kind: 'restartRun' } });
  expect(await runOf(fixture, run_id)).toMatchObject({ attempt: 2, attention: null, attention_at: null });
  const again = await nextSession(first);
  expect(JSON.parse(fixture.node.launches.get(again)!.step_input!)).not.toHaveProperty('answer');
});

test('the outcome of an attempt from before a restart does not affect a new step with the same key', async () => {
  const run_id = await beginRun(fixture, {
    members: [talker('lea'), plainMember('bob', 'work')],
    leader: 'lea',
  });
  const lea = await nextAcp();
  await prompted(lea);
  await addToRun(fixture, run_id, { step_key: 'dig', member_id: 'bob' });
  const before = await nextSession(lea.session_id);
  await untilStep(run_id, 'dig', 'running');
  const command = { kind: 'completeStep' } as const;
  // The process of the step keeps running.
  await applyEvent(fixture, run_id, { kind: 'step_command', step_key: 'dig', command, by_own_member: true });
  await applyEvent(fixture, run_id, { kind: 'run_command', command: { kind: 'restartRun' } });
  await addToRun(fixture, run_id, { step_key: 'dig', member_id: 'bob' });
  expect(await step(run_id, 'dig')).toMatchObject({ status: 'ready', attempt: 1 });
  await vi.waitFor(async () => {
    const { session_id } = await fixture.get((await step(run_id, 'dig')).agent_id!);
    expect(session_id).not.toBe(before);
  }, SOON);
  expect((await untilStep(run_id, 'dig', 'running')).attempt).toBe(1);
});

test('a step fails if the ACP connection to its agent fails', async () => {
  const run_id = await beginRun(fixture, { ...two, steps: [{ step_key: 'a' }] });
  const acp = new ScriptedAcp(fixture, await nextSession());
  await acp.respond('initialize', { error: { code: -32000, message: 'no way' } });
  await untilRun(fixture, run_id, 'failed');
  expect((await step(run_id, 'a')).error_text).toContain('no way');
});

test('a run shows that an agent does not answer, until it does', async () => {
  const run_id = await beginRun(fixture, { ...two, steps: [{ step_key: 'a' }] });
  const acp = new ScriptedAcp(fixture, await nextSession());
  const request = await acp.receive('request', 'initialize');
  await fixture.advanceClock(conversationLimits.acp_silent_ms);
  const message = 'the agent has not answered: it may not speak ACP';
  expect((await untilAttention(run_id)).attention).toMatch(new RegExp(`^ann@team_.+: ${message}$`));
  acp.send({ kind: 'response', id: request.id, result: { protocolVersion: 1 } });
  await acp.respond('session/new', { result: { sessionId: 'acp-1' } });
  endTurn(acp, (await prompted(acp)).id);
  expect((await untilRun(fixture, run_id, 'completed')).attention).toBe(null);
});

test('a run shows that an agent requires a sign-in until someone signs in', async () => {
  const run_id = await beginRun(fixture, { ...two, steps: [{ step_key: 'a' }] });
  const acp = new ScriptedAcp(fixture, await nextSession());
  await acp.initialize({ authMethods: [{ id: 'key', name: 'API key' }] });
  await acp.respond('session/new', { error: { code: -32000, message: 'sign in' } });
  expect((await untilAttention(run_id)).attention).toContain('the agent requires a sign-in first');
  const signed_in = fixture.prompting.authenticate(ANA, (await step(run_id, 'a')).agent_id!, 'key');
  await acp.respond('authenticate', { result: {} });
  await signed_in;
  await acp.respond('session/new', { result: { sessionId: 'acp-1' } });
  endTurn(acp, (await prompted(acp)).id);
  expect((await untilRun(fixture, run_id, 'completed')).attention).toBe(null);
});

test('stopping an agent that does not answer fails its step, and clears the attention of the run', async () => {
  const run_id = await beginRun(fixture, { ...two, steps: [{ step_key: 'a' }] });
  const acp = new ScriptedAcp(fixture, await nextSession());
  await acp.receive('request', 'initialize');
  await fixture.advanceClock(conversationLimits.acp_silent_ms);
  await untilAttention(run_id);
  await fixture.agents.stop(ANA, (await step(run_id, 'a')).agent_id!, 0);
  const run = await untilRun(fixture, run_id, 'failed');
  expect(run).toMatchObject({ attention: null, error: 'step a failed: its agent ended before' });
});

test('a step fails at once if its input is too large for a file', async () => {
  const run_id = await beginRun(fixture, {
    members: [plainMember('m', 'x')],
    steps: [{ step_key: 'a', input: 'x'.repeat(3 * 2 ** 20), max_attempts: 3 }],
  });
  expect((await untilRun(fixture, run_id, 'failed')).error).toBe(
    'step a failed: the input of the step is over 3 MiB',
  );
  expect((await step(run_id, 'a')).attempt).toBe(1);
});

test('a step fails if the node of its member is not registered', async () => {
  const members = [plainMember('m', 'x', { node_id: 'gone' })];
  const run_id = await beginRun(fixture, { members, steps: [{ step_key: 'a' }] });
  expect((await untilRun(fixture, run_id, 'failed')).error).toBe('step a failed: agent node not found');
});
