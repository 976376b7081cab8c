/** Scripted ACP agents, most of which misbehave: the plane stays up, the log is correct, and each agent can be stopped. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { Client } from '../src/client/client.ts';
import { oddFrames, type ScenarioName } from '../src/testing/acp-scenarios.ts';
import { Conversation } from '../src/testing/conversation.ts';
import { longTest } from '../src/testing/long.ts';
import { TestPlane } from '../src/testing/plane.ts';

const MIB = 1024 * 1024;
const LINUX = process.platform === 'linux';
const scripted = fileURLToPath(new URL('../src/testing/acp-agent.ts', import.meta.url));

let plane: TestPlane;
let open: Conversation[] = [];
beforeAll(async () => {
  plane = await TestPlane.open({ env: { SVC_RETENTION_BYTES_PER_AGENT: String(8192 * MIB) } });
});
afterAll(() => plane?.close());
/** Whatever an agent does, the plane is running, the conversation matches its log, and the agent can be stopped. */
afterEach(async () => {
  expect(plane.isRunning).toBe(true);
  for (const conversation of open) {
    await conversation.expectSameState();
    const { status } = await conversation.get();
    if (status === 'running') expect((await conversation.stop()).status).toBe('cancelled');
    await conversation.close();
  }
  open = [];
  expect(plane.log).not.toContain('"level":"error"');
});

async function begin(name: ScenarioName, argument?: string | number): Promise<Conversation> {
  const argv = [process.execPath, scripted, name, ...(argument === undefined ? [] : [String(argument)])];
  const conversation = await Conversation.start(plane, argv, { prompt: 'Go on.' });
  open.push(conversation);
  return conversation;
}

test('delivers the answer to a permission request to the agent', async () => {
  const conversation = await begin('permission');
  const [review] = await conversation.pending();
  expect((await conversation.get()).activity).toBe('needs_you');
  expect(review!.options.map(({ kind }) => kind)).toEqual(['allow_once', 'allow_always', 'reject_once']);
  await conversation.respond(review!.id, { decision: 'deny' });
  await conversation.untilIdle();
  expect(conversation.text).toBe('answered: no-once');
  expect((await conversation.get()).activity).toBe('idle');
});

test('`asks` shows whether an agent asks first or acts without asking', async () => {
  const asker = await begin('permission');
  const [review] = await asker.pending();
  expect((await asker.get()).asks).toBe('asks');
  await asker.respond(review!.id, { decision: 'allow' });
  await asker.untilIdle();
  const acting = await begin('acts_alone');
  await acting.untilIdle();
  expect(await acting.get()).toMatchObject({ asks: 'acts', permission_mode: 'ask', pending_reviews: 0 });
});

test('a decision without option_id never selects a permanent option', async () => {
  const conversation = await begin('two_always');
  const [first] = await conversation.pending();
  await conversation.respond(first!.id, { decision: 'allow' });
  await conversation.untilIdle();
  await conversation.prompt('Again.');
  const [second] = await conversation.pending();
  await conversation.respond(second!.id, { option_id: 'always-user' });
  await conversation.untilIdle();
  expect(conversation.text).toBe('answered: yes-onceanswered: always-user');
});

test('a permission review without options can only be cancelled', async () => {
  const conversation = await begin('no_options');
  const [review] = await conversation.pending();
  await expect(conversation.respond(review!.id, { decision: 'allow' })).rejects.toThrow(
    'option_id is required',
  );
  await conversation.respond(review!.id, { outcome: 'cancelled' });
  await conversation.untilIdle();
  expect(conversation.text).toBe('answered: cancelled');
});

test('events and reviews of sub-agents are attributed to them, and the turn stays the agent’s', async () => {
  const conversation = await begin('subagents');
  const [review] = await conversation.pending();
  expect(review!.subagent).toEqual({ id: 'child-1', name: 'explorer', unknown_session: false });
  const params = { agent_id: conversation.agent_id };
  const config = await plane.client.call('getAgentConfig', { params });
  expect(config).toMatchObject({
    modes: null,
    subagents: [
      { id: 'child-1', name: 'explorer', status: 'running', parent_id: null },
      { id: 'child-2', name: 'reader', status: 'idle', parent_id: 'child-1' },
    ],
  });
  await conversation.respond(review!.id, { decision: 'allow' });
  await conversation.untilIdle();
  const { last_seq } = await conversation.get();
  await conversation.event(({ seq }) => seq === last_seq);
  const by = (id: unknown) => conversation.events.filter(({ subagent }) => subagent === id).length;
  expect([by('child-1'), by('child-2'), by('unknown-1')]).toEqual([7, 1, 1]);
  expect(conversation.events.filter(({ unknown_session }) => unknown_session)).toHaveLength(1);
  expect((await conversation.get()).activity).toBe('idle');
});

test('events of a sub-agent within the agent’s session are attributed by the tool call that launched it', async () => {
  const conversation = await begin('subagent_calls');
  const [review] = await conversation.pending();
  expect(review!.subagent).toEqual({ id: 'task-1', name: 'Explore', unknown_session: false });
  await conversation.respond(review!.id, { decision: 'deny' });
  await conversation.untilIdle();
  const params = { agent_id: conversation.agent_id };
  expect((await plane.client.call('getAgentConfig', { params })).subagents).toEqual([
    {
      ...{ id: 'task-1', has_session: false, parent_id: null, name: 'Explore' },
      ...{ description: 'Find the failing test', status: 'idle', stop_reason: 'end_turn' },
    },
  ]);
  const { last_seq } = await conversation.get();
  await conversation.event(({ seq }) => seq === last_seq);
  expect(conversation.events.filter(({ subagent }) => subagent === 'task-1')).toHaveLength(3);
});

test('two permission requests with the same id get separate answers', async () => {
  const conversation = await begin('twice');
  const [first, second] = await conversation.pending(2);
  expect([first, second].map((review) => review!.tool_call.title)).toEqual(['first', 'second']);
  await conversation.respond(first!.id, { decision: 'allow' });
  await conversation.respond(second!.id, { decision: 'deny' });
  await conversation.untilIdle();
  expect(conversation.text).toBe('answered: yes-once, no-once');
});

test('a withdrawn permission request cancels its review', async () => {
  const conversation = await begin('withdraws');
  await conversation.untilIdle();
  expect(await conversation.reviews()).toMatchObject([{ status: 'cancelled', delivery: null }]);
  expect(conversation.text).toBe('answered: error -32800');
});

test('cancelling a turn starts the next prompt', async () => {
  const conversation = await begin('slow');
  await conversation.event(({ method }) => method === 'session/update');
  const next = await conversation.prompt('Then this.');
  await conversation.cancel();
  while ((await conversation.prompts()).some(({ id, state }) => id !== next || state !== 'sent'));
  await conversation.cancel();
  await conversation.untilIdle();
  expect(conversation.errors).toEqual([]);
});

test('a turn that ignores its cancellation is reported, and its agent can be stopped', async () => {
  const conversation = await begin('ignores_cancel');
  await conversation.event(({ method }) => method === 'session/update');
  await conversation.cancel();
  await conversation.error('cancel_ignored');
  expect((await conversation.get()).activity).toBe('working');
  expect(await conversation.stop()).toMatchObject({ status: 'cancelled' });
  await conversation.error('turn_lost');
});

test('ten thousand updates in a turn become ten thousand events in order', async () => {
  const conversation = await begin('flood', 10_000);
  await conversation.untilIdle();
  const { last_seq } = await conversation.get();
  await conversation.event(({ seq }) => seq === last_seq);
  expect(conversation.text).toBe(Array.from({ length: 10_000 }, (_, n) => `${n + 1} `).join(''));
});

test('the event of an oversized frame has its size but no payload', async () => {
  const conversation = await begin('long_line', 2 * MIB);
  await conversation.untilIdle();
  const frame = await conversation.event(({ truncated }) => truncated === true);
  expect(frame).toMatchObject({ method: 'session/update', payload: null, size: 2 * MIB + 1 });
});

/** Peak resident memory of the service, bytes. */
function peak(): number {
  return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${plane.pid}/status`, 'utf8'))![1]) * 1024;
}

/** More than a frame may have. */
const LINE_MIB = 100;

longTest(`a line of ${LINE_MIB} MiB becomes output without loss, and memory stays bounded`, async () => {
  const warm = await begin('long_line', 40 * MIB);
  await warm.untilIdle();
  const before = LINUX ? peak() : 0;
  const conversation = await begin('long_line', LINE_MIB * MIB);
  await conversation.untilIdle();
  expect(conversation.errors).toEqual(['frame_too_large']);
  const bytes = await plane.output(conversation.agent_id, { stream: 'stdout' });
  expect(bytes.length).toBe(LINE_MIB * MIB + 1);
  if (LINUX) expect(peak() - before).toBeLessThan(256 * MIB);
});

test('an incomplete frame of an agent that exits becomes output, and its turn is lost', async () => {
  const conversation = await begin('half_frame');
  expect(await plane.finished(conversation.agent_id)).toMatchObject({ status: 'failed', exit_code: 1 });
  await conversation.error('turn_lost');
  const output = conversation.events.filter(({ type }) => type === 'output');
  expect(output).toMatchObject([{ stream: 'stdout', data: '{"jsonrpc":"2.0","method":"session/upd' }]);
});

test('an agent that is killed in a turn loses the turn and can be started again', async () => {
  const conversation = await begin('crash_in_turn');
  await conversation.error('turn_lost');
  expect(await conversation.get()).toMatchObject({
    status: 'failed',
    exit_signal: 'SIGKILL',
    activity: null,
  });
  await plane.client.call('startAgent', { params: { agent_id: conversation.agent_id } });
  await conversation.until('idle');
  // The agent cannot load its earlier session.
  expect(conversation.errors).toEqual(['turn_lost', 'context_lost']);
});

test('an agent of an unsupported ACP version accepts no prompts', async () => {
  const conversation = await begin('v2_only');
  expect(await conversation.error('acp_version_unsupported')).toMatchObject({
    error: 'the agent speaks ACP version 2, this service version 1',
  });
  await conversation.until('needs_you');
  await expect(conversation.prompt('Hello?')).rejects.toThrow(
    'conversation with the agent has failed; see the error in its log',
  );
});

test('a prompt waits until the agent is signed in', async () => {
  const conversation = await begin('auth');
  expect(await conversation.error('auth_required')).toMatchObject({ methods: [{ id: 'test-sign-in' }] });
  await conversation.until('needs_you');
  const params = { agent_id: conversation.agent_id };
  await plane.client.call('authenticateAgent', { params, body: { method_id: 'test-sign-in' } });
  await conversation.untilIdle();
  expect(conversation.text).toBe('Hello.');
});

test('an agent that cannot load its conversation starts a new one, and the loss is reported', async () => {
  const conversation = await begin('load_fails');
  await conversation.untilIdle();
  await conversation.stop();
  await plane.client.call('startAgent', { params: { agent_id: conversation.agent_id } });
  expect(await conversation.error('context_lost')).toMatchObject({
    error: 'the agent starts a new session without the earlier context: No previous sessions',
  });
  await conversation.until('idle');
});

test('lines that are not frames become output', async () => {
  const conversation = await begin('banners');
  await conversation.untilIdle();
  expect(conversation.text).toBe('one two');
  const output = conversation.events.flatMap(({ type, data }) => (type === 'output' ? [data] : []));
  expect(output.join('')).toBe(
    'Loading the model...\n\na line of text\n{"level":"info","msg":"JSON, and no frame"}\n[1,2]\n{broken\n',
  );
});

test('responses without a request change nothing', async () => {
  const conversation = await begin('answers_nothing');
  await conversation.untilIdle();
  expect(conversation.events.filter(({ response_to }) => response_to === 'nor-this')).toHaveLength(1);
  expect(conversation.errors).toEqual([]);
});

test('unknown messages are shown, and unknown requests rejected', async () => {
  const conversation = await begin('unknown_kinds');
  await conversation.untilIdle();
  expect(conversation.text).toBe('answered: error -32601, error -32601, error -32601');
  expect(conversation.errors).toEqual([]);
});

test('payloads contain exactly the bytes that the agent wrote', async () => {
  const conversation = await begin('numbers');
  await conversation.untilIdle();
  expect(await conversation.payloads()).toEqual(expect.arrayContaining(oddFrames('session-1')));
});

test('a program that echoes its input is reported as not an agent', async () => {
  const conversation = await Conversation.start(plane, ['cat'], { prompt: 'Hello?' });
  open.push(conversation);
  expect(await conversation.error('acp_initialize_failed')).toMatchObject({ error: 'method not found' });
});

test('one of fifty concurrent answers by two users succeeds, and the others name its author', async () => {
  const credentials = { username: 'ben', password: 'staple battery correct' };
  await plane.client.call('createUser', { body: { ...credentials, role: 'user' } });
  const { token } = await plane.client.call('login', { body: credentials });
  const ben = new Client({ url: plane.url, token });
  const argv = [process.execPath, scripted, 'permission'];
  const conversation = await Conversation.start(plane, argv, { prompt: 'Go on.', client: ben });
  open.push(conversation);
  const [review] = await conversation.pending();
  const answers = Array.from({ length: 50 }, (_, n) => {
    const args = { params: { review_id: review!.id }, body: { decision: 'allow' as const } };
    return [ben, plane.client][n % 2]!.call('respondReview', args);
  });
  const settled = await Promise.allSettled(answers);
  const won = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  expect(won).toHaveLength(1);
  const winner = won[0]!.answered_by;
  expect(['ana', 'ben']).toContain(winner);
  const lost = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  expect(lost).toHaveLength(49);
  for (const refused of lost) {
    expect(refused).toMatchObject({
      kind: 'conflict',
      message: `permission review is already answered by ${winner}`,
    });
  }
  await conversation.untilIdle();
  expect(conversation.text).toBe('answered: yes-once');
});
