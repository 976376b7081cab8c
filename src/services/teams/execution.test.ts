import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { limits } from '../../base/limits.ts';
import { problems } from '../../domain/problem.ts';
import type { Member } from '../../domain/team.ts';
import { findRun, findStep, updateStep } from '../../store/runs.ts';
import { ANA, LivesRoom, SOON } from '../../testing/lives.ts';
import { ScriptedAcp } from '../../testing/scripted-acp.ts';
import { ended } from '../../testing/scripted-node.ts';
import {
  addToRun,
  beginRun,
  plainMember,
  runOf,
  say,
  stepsOfRun,
  untilRun,
} from '../../testing/team-runs.ts';
import { sayToStep } from './words.ts';

let room: LivesRoom;
beforeEach(async () => {
  room = await LivesRoom.make();
});
afterEach(() => room.end());

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

/** Waits until the node knows a session that is not among these. */
async function nextSession(...known: string[]): Promise<string> {
  return vi.waitFor(() => {
    const found = [...room.node.launches.keys()].find((id) => !known.includes(id));
    expect(found).toBeDefined();
    return found!;
  }, SOON);
}

async function nextAcp(...known: string[]): Promise<ScriptedAcp> {
  const acp = new ScriptedAcp(room, await nextSession(...known));
  await acp.opens();
  return acp;
}

/** Hears a prompt; answers its text. */
async function prompted(acp: ScriptedAcp): Promise<{ id: string; text: string }> {
  const { id, params } = await acp.hears('request', 'session/prompt');
  return { id: id as string, text: (params as { prompt: { text: string }[] }).prompt[0]!.text };
}

function ends(acp: ScriptedAcp, id: string, stopReason = 'end_turn'): void {
  acp.says({ kind: 'response', id, result: { stopReason } });
}

function tells(acp: ScriptedAcp, text: string): void {
  acp.updates({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
}

const step = async (run_id: string, key: string) => (await stepsOfRun(room, run_id))[key]!;

async function untilStep(run_id: string, key: string, status: string) {
  await vi.waitFor(async () => expect((await step(run_id, key)).status).toBe(status), SOON);
  return step(run_id, key);
}

async function untilAttention(run_id: string) {
  await vi.waitFor(async () => expect((await runOf(room, run_id)).attention).not.toBe(null), SOON);
  return runOf(room, run_id);
}

test('a member that speaks ACP takes its steps one after the other, in one conversation', async () => {
  const run_id = await beginRun(room, two);
  const acp = await nextAcp();
  const first = await prompted(acp);
  expect(first.text).toContain('You are ann');
  expect(first.text).toContain('Do A.');
  await untilStep(run_id, 'a', 'running');
  expect((await step(run_id, 'b')).status).toBe('ready');
  tells(acp, 'I will look.');
  acp.updates({ sessionUpdate: 'tool_call', toolCallId: 'c', title: 'look' });
  tells(acp, 'A is ');
  tells(acp, 'done.');
  acp.updates({ sessionUpdate: 'usage_update', used: 1, size: 2 });
  ends(acp, first.id);
  const second = await prompted(acp);
  expect(second.text).toContain('Do B.');
  expect(second.text).not.toContain('You are ann');
  ends(acp, second.id);
  await untilRun(room, run_id, 'completed');
  expect((await step(run_id, 'a')).output).toBe('A is done.');
  expect((await step(run_id, 'b')).output).toBe(null);
  await room.until((await step(run_id, 'a')).agent_id!, 'cancelled');
});

test.each(['refusal', 'max_tokens'])('a turn that ends with %s fails the step', async (reason) => {
  const run_id = await beginRun(room, { ...two, steps: [{ step_key: 'a' }] });
  const acp = await nextAcp();
  ends(acp, (await prompted(acp)).id, reason);
  await untilRun(room, run_id, 'failed');
  expect((await step(run_id, 'a')).error_text).toBe(`the turn ended: ${reason}`);
});

test('an agent that dies in the turn leaves the step to people, who may have it taken again', async () => {
  const run_id = await beginRun(room, { ...two, steps: [{ step_key: 'a', max_attempts: 5 }] });
  const acp = await nextAcp();
  await prompted(acp);
  await untilStep(run_id, 'a', 'running');
  room.node.end(acp.session_id, 1);
  const unclear = await untilStep(run_id, 'a', 'input_required');
  expect(unclear).toMatchObject({ error_text: 'outcome unknown', attempt: 1 });
  expect((await runOf(room, run_id)).status).toBe('input_required');
  await say(room, run_id, { kind: 'step_said', step_key: 'a', word: { kind: 'resume' } });
  const again = new ScriptedAcp(room, await nextSession(acp.session_id));
  await again.opens();
  const prompt = await prompted(again);
  // It is another process: it has to be told who it is.
  expect(prompt.text).toContain('You are ann');
  ends(again, prompt.id);
  await untilRun(room, run_id, 'completed');
});

test('an agent that dies before the prompt was sent has done nothing of the step', async () => {
  const run_id = await beginRun(room, { ...two, steps: [{ step_key: 'a', max_attempts: 2 }] });
  const session_id = await nextSession();
  room.node.end(session_id, 1);
  const acp = await nextAcp(session_id);
  ends(acp, (await prompted(acp)).id);
  await untilRun(room, run_id, 'completed');
  expect((await step(run_id, 'a')).attempt).toBe(2);
});

test('an end that is heard of late takes nothing from the session after it', async () => {
  const run_id = await beginRun(room, { ...two, steps: [{ step_key: 'a', max_attempts: 2 }] });
  const before = await nextSession();
  room.node.end(before, 1);
  const acp = await nextAcp(before);
  const prompt = await prompted(acp);
  const { agent_id } = await untilStep(run_id, 'a', 'running');
  const late = { agent_id: agent_id!, session_id: before, status: 'failed', started_at_ms: 1 };
  await room.store.write((tx) => room.facts.record(tx, 'session_ended', before, late));
  ends(acp, prompt.id);
  await untilRun(room, run_id, 'completed');
});

test('a step whose prompt is taken back waits for somebody, who may have it taken again', async () => {
  const run_id = await beginRun(room, { ...two, steps: [{ step_key: 'a', max_attempts: 5 }] });
  // Not ready yet: its prompt waits.
  const acp = new ScriptedAcp(room, await nextSession());
  const agent_id = (await step(run_id, 'a')).agent_id!;
  const [waiting] = await room.prompting.list(ANA, agent_id);
  await room.prompting.remove(ANA, agent_id, waiting!.id);
  const unclear = await untilStep(run_id, 'a', 'input_required');
  expect(unclear).toMatchObject({ error_text: 'its prompt was taken back', attempt: 1 });
  await say(room, run_id, { kind: 'step_said', step_key: 'a', word: { kind: 'resume' } });
  await acp.opens();
  const prompt = await prompted(acp);
  // Nobody has told it who it is.
  expect(prompt.text).toContain('You are ann');
  ends(acp, prompt.id);
  await untilRun(room, run_id, 'completed');
});

test('a step that is settled by somebody ends its turn, and the agent stays', async () => {
  const run_id = await beginRun(room, two);
  const acp = await nextAcp();
  const first = await prompted(acp);
  await untilStep(run_id, 'a', 'running');
  await say(room, run_id, { kind: 'step_said', step_key: 'a', word: { kind: 'complete' } });
  await acp.hears('notification', 'session/cancel');
  ends(acp, first.id, 'cancelled');
  ends(acp, (await prompted(acp)).id);
  await untilRun(room, run_id, 'completed');
  expect(room.node.launches.size).toBe(1);
});

test('a leader plans, is asked again when its steps are over, and says what the run came to', async () => {
  const run_id = await beginRun(room, {
    members: [talker('lea'), plainMember('bob', 'work')],
    leader: 'lea',
    input: { topic: 'x' },
  });
  const acp = await nextAcp();
  const plan = await prompted(acp);
  expect(plan.text).toContain('You are lea, the leader');
  expect(plan.text).toContain('svc actor step-add');
  await addToRun(room, run_id, { step_key: 'dig', member_id: 'bob', prompt: 'Dig.' });
  await addToRun(room, run_id, { step_key: 'fill', member_id: 'lea', depends_on: ['dig'], prompt: 'Fill.' });
  const dig = await nextSession(acp.session_id);
  ends(acp, plan.id);
  room.node.write(dig, Buffer.from('a hole'));
  room.node.end(dig, 0);
  // The leader is a member like any other.
  const fill = await prompted(acp);
  expect(fill.text).toContain('Output of step dig:\n<<<\na hole\n>>>');
  ends(acp, fill.id);
  const sum = await prompted(acp);
  expect(sum.text).toContain('Step dig of bob: completed:\n<<<\na hole\n>>>');
  tells(acp, 'All is well.');
  ends(acp, sum.id);
  expect(JSON.parse((await untilRun(room, run_id, 'completed')).output!)).toBe('All is well.');
});

test('a leader that dies in a round leaves the run to people', async () => {
  const run_id = await beginRun(room, { members: [talker('lea')], leader: 'lea' });
  const acp = await nextAcp();
  await prompted(acp);
  await vi.waitFor(
    async () =>
      expect((await room.get((await room.agents.list(ANA, {}, {})).items[0]!.id)).activity).toBe('working'),
    SOON,
  );
  room.node.end(acp.session_id, 1);
  await untilRun(room, run_id, 'input_required');
  expect((await runOf(room, run_id)).error).toBe('the leader: outcome unknown');
});

test('what a plain session left in its file is its output, before what it printed', async () => {
  const run_id = await beginRun(room, { members: [plainMember('m', 'x')], steps: [{ step_key: 'a' }] });
  const id = await nextSession();
  expect(JSON.parse(room.node.launches.get(id)!.step_input!)).toEqual({
    run_input: {},
    input: null,
    needs: {},
  });
  room.node.write(id, Buffer.from('printed'));
  room.node.outputs.set(id, Buffer.from('[1, 2]'));
  room.node.end(id, 0);
  await untilRun(room, run_id, 'completed');
  expect((await step(run_id, 'a')).output).toEqual([1, 2]);
});

test('an output that is too long is cut, and says so', async () => {
  const run_id = await beginRun(room, { members: [plainMember('m', 'x')], steps: [{ step_key: 'a' }] });
  const id = await nextSession();
  room.node.outputs.set(id, Buffer.alloc(2 ** 20 + 1, 'x'));
  room.node.end(id, 0);
  await untilRun(room, run_id, 'completed');
  expect((await step(run_id, 'a')).output).toMatch(/x\n\[the output goes on: only 1048576 bytes are kept\]$/);
});

test('a step whose output the run has no room for fails, and is not tried again', async () => {
  const steps = [
    { step_key: 'a', max_attempts: 3 },
    { step_key: 'b', member_id: 'out' },
  ];
  const out = { ...plainMember('out', ''), agent: null };
  const run_id = await beginRun(room, { members: [plainMember('m', 'x'), out], steps });
  const id = await nextSession();
  await room.store.write((tx) => {
    const { num } = findStep(tx, findRun(tx, run_id)!.num, 'b')!;
    updateStep(tx, num, { output: JSON.stringify('x'.repeat(32 * 2 ** 20 - 8192)) });
  });
  room.node.outputs.set(id, Buffer.alloc(8192, 'x'));
  room.node.end(id, 0);
  expect((await untilStep(run_id, 'a', 'failed')).error_text).toBe('the outputs of the run are over 32 MiB');
  await room.store.write((tx) => {
    const run = findRun(tx, run_id)!;
    const who = { user_id: null, ip: null, actor_id: 'user:ana' };
    const hearing = { progress: room.progress, audit: null as never };
    const said = { kind: 'complete', output: 'x'.repeat(33 * 2 ** 20) } as const;
    expect(() => sayToStep(hearing, tx, run, 'b', said, who)).toThrow(
      'the outputs of the run are over 32 MiB',
    );
  });
});

test.each(['host_restarted', 'exit_status_unknown', 'session_lost'] as const)(
  'of a session that ended by %s nobody knows what it did',
  async (reason) => {
    const run_id = await beginRun(room, {
      members: [plainMember('m', 'x')],
      steps: [{ step_key: 'a', max_attempts: 3 }],
    });
    const id = await nextSession();
    await untilStep(run_id, 'a', 'running');
    const body = ended(null);
    if (body.kind === 'ended') body.end.exit = { ...body.end.exit, reason };
    room.node.tell(id, body);
    expect(await untilStep(run_id, 'a', 'input_required')).toMatchObject({ error_text: 'outcome unknown' });
  },
);

test('a node that is out of reach keeps a step waiting, and nothing is begun twice', async () => {
  const { resolve } = room.node.folders;
  let away = true;
  room.node.folders.resolve = async (workdir) => {
    if (away) throw problems.nodeUnreachable();
    return resolve(workdir);
  };
  const run_id = await beginRun(room, { members: [plainMember('m', 'x')], steps: [{ step_key: 'a' }] });
  await new Promise((done) => setTimeout(done, 100));
  expect((await step(run_id, 'a')).status).toBe('ready');
  away = false;
  const id = await nextSession();
  await untilStep(run_id, 'a', 'running');
  await room.close();
  await room.open();
  room.node.end(id, 0);
  await untilRun(room, run_id, 'completed');
  expect(room.node.launches.size).toBe(1);
});

test('a restart of a running run ends the agents of before, and begins with fresh ones', async () => {
  const run_id = await beginRun(room, two);
  const acp = await nextAcp();
  await prompted(acp);
  await untilStep(run_id, 'a', 'running');
  const before = (await step(run_id, 'a')).agent_id!;
  await say(room, run_id, { kind: 'run_said', word: { kind: 'restart' } });
  await room.until(before, 'cancelled');
  const again = await nextAcp(acp.session_id);
  expect((await prompted(again)).text).toContain('You are ann');
  expect((await step(run_id, 'a')).agent_id).not.toBe(before);
});

test('a restart takes nothing along that was said to, or of, the attempt of before', async () => {
  const run_id = await beginRun(room, { members: [plainMember('m', 'x')], steps: [{ step_key: 'a' }] });
  const first = await nextSession();
  const body = ended(null);
  if (body.kind === 'ended') body.end.exit = { ...body.end.exit, reason: 'session_lost' };
  room.node.tell(first, body);
  await untilStep(run_id, 'a', 'input_required');
  await room.store.write((tx) => {
    const run = findRun(tx, run_id)!;
    updateStep(tx, findStep(tx, run.num, 'a')!.num, { answer: '"yes"' });
    room.mailbox.wantEye(tx, run, 'look');
  });
  await say(room, run_id, { kind: 'run_said', word: { kind: 'restart' } });
  expect(await runOf(room, run_id)).toMatchObject({ attempt: 2, attention: null, attention_at: null });
  const again = await nextSession(first);
  expect(JSON.parse(room.node.launches.get(again)!.step_input!)).not.toHaveProperty('answer');
});

test('what an attempt of before a restart comes to is not taken for a new step of the same key', async () => {
  const run_id = await beginRun(room, {
    members: [talker('lea'), plainMember('bob', 'work')],
    leader: 'lea',
  });
  const lea = await nextAcp();
  await prompted(lea);
  await addToRun(room, run_id, { step_key: 'dig', member_id: 'bob' });
  const before = await nextSession(lea.session_id);
  await untilStep(run_id, 'dig', 'running');
  const word = { kind: 'complete' } as const;
  // Its process goes on.
  await say(room, run_id, { kind: 'step_said', step_key: 'dig', word, own: true });
  await say(room, run_id, { kind: 'run_said', word: { kind: 'restart' } });
  await addToRun(room, run_id, { step_key: 'dig', member_id: 'bob' });
  expect(await step(run_id, 'dig')).toMatchObject({ status: 'ready', attempt: 1 });
  await vi.waitFor(async () => {
    const { session_id } = await room.get((await step(run_id, 'dig')).agent_id!);
    expect(session_id).not.toBe(before);
  }, SOON);
  expect((await untilStep(run_id, 'dig', 'running')).attempt).toBe(1);
});

test('an agent that cannot be talked to fails its step', async () => {
  const run_id = await beginRun(room, { ...two, steps: [{ step_key: 'a' }] });
  const acp = new ScriptedAcp(room, await nextSession());
  await acp.answers('initialize', { error: { code: -32000, message: 'no way' } });
  await untilRun(room, run_id, 'failed');
  expect((await step(run_id, 'a')).error_text).toContain('no way');
});

test('a run shows that an agent says nothing, until it does', async () => {
  const run_id = await beginRun(room, { ...two, steps: [{ step_key: 'a' }] });
  const acp = new ScriptedAcp(room, await nextSession());
  const asked = await acp.hears('request', 'initialize');
  await room.pass(limits.acp_silent_ms);
  const words = 'the agent has not introduced itself: it may not speak ACP';
  expect((await untilAttention(run_id)).attention).toMatch(new RegExp(`^ann@team_.+: ${words}$`));
  acp.says({ kind: 'response', id: asked.id, result: { protocolVersion: 1 } });
  await acp.answers('session/new', { result: { sessionId: 'acp-1' } });
  ends(acp, (await prompted(acp)).id);
  expect((await untilRun(room, run_id, 'completed')).attention).toBe(null);
});

test('a run shows that an agent wants somebody to sign in, until somebody has', async () => {
  const run_id = await beginRun(room, { ...two, steps: [{ step_key: 'a' }] });
  const acp = new ScriptedAcp(room, await nextSession());
  await acp.introduces({ authMethods: [{ id: 'key', name: 'API key' }] });
  await acp.answers('session/new', { error: { code: -32000, message: 'sign in' } });
  expect((await untilAttention(run_id)).attention).toContain('the agent wants somebody to sign in first');
  const signed_in = room.prompting.authenticate(ANA, (await step(run_id, 'a')).agent_id!, 'key');
  await acp.answers('authenticate', { result: {} });
  await signed_in;
  await acp.answers('session/new', { result: { sessionId: 'acp-1' } });
  ends(acp, (await prompted(acp)).id);
  expect((await untilRun(room, run_id, 'completed')).attention).toBe(null);
});

test('an agent that is stopped while it says nothing fails its step, and the run shows it no more', async () => {
  const run_id = await beginRun(room, { ...two, steps: [{ step_key: 'a' }] });
  const acp = new ScriptedAcp(room, await nextSession());
  await acp.hears('request', 'initialize');
  await room.pass(limits.acp_silent_ms);
  await untilAttention(run_id);
  await room.agents.stop(ANA, (await step(run_id, 'a')).agent_id!, 0);
  const run = await untilRun(room, run_id, 'failed');
  expect(run).toMatchObject({ attention: null, error: 'step a failed: its agent ended before' });
});

test('a start that its node refuses fails the attempt', async () => {
  const { resolve } = room.node.folders;
  let asked = 0;
  room.node.folders.resolve = async (workdir) => {
    // The first one is for the agent's making.
    if (++asked === 2) throw problems.diskSpace();
    return resolve(workdir);
  };
  const steps = [{ step_key: 'a', max_attempts: 2 }];
  const run_id = await beginRun(room, { members: [plainMember('m', 'x')], steps });
  room.node.end(await nextSession(), 0);
  await untilRun(room, run_id, 'completed');
  expect((await step(run_id, 'a')).attempt).toBe(2);
});

test('a step whose input is too long for a file fails at once', async () => {
  const run_id = await beginRun(room, {
    members: [plainMember('m', 'x')],
    steps: [{ step_key: 'a', input: 'x'.repeat(3 * 2 ** 20), max_attempts: 3 }],
  });
  expect((await untilRun(room, run_id, 'failed')).error).toBe(
    'step a failed: the input of the step is over 3 MiB',
  );
  expect((await step(run_id, 'a')).attempt).toBe(1);
});

test('a member on a node that is not registered fails its step', async () => {
  const members = [plainMember('m', 'x', { node_id: 'gone' })];
  const run_id = await beginRun(room, { members, steps: [{ step_key: 'a' }] });
  expect((await untilRun(room, run_id, 'failed')).error).toBe('step a failed: agent node not found');
});
