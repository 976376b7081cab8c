/** Scripted ACP agents, most of which misbehave: the plane stays up, the log is correct, and each agent can be stopped. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { Client } from '../src/client/client.ts';
import { oddFrames, type ScenarioName } from '../src/testing/acp-scenarios.ts';
import { Conversation } from '../src/testing/conversation.ts';
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
    await conversation.expectTrue();
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
  const talk = await begin('permission');
  const [review] = await talk.pending();
  expect((await talk.get()).activity).toBe('needs_you');
  expect(review!.options.map(({ kind }) => kind)).toEqual(['allow_once', 'allow_always', 'reject_once']);
  await talk.respond(review!.id, { decision: 'deny' });
  await talk.silence();
  expect(talk.words).toBe('answered: no-once');
  expect((await talk.get()).activity).toBe('idle');
});

test('`asks` shows whether an agent asks first or acts without asking', async () => {
  const asker = await begin('permission');
  const [review] = await asker.pending();
  expect((await asker.get()).asks).toBe('asks');
  await asker.respond(review!.id, { decision: 'allow' });
  await asker.silence();
  const acting = await begin('acts_alone');
  await acting.silence();
  expect(await acting.get()).toMatchObject({ asks: 'acts', permission_mode: 'ask', pending_reviews: 0 });
});

test('a decision without option_id never selects an option that lasts', async () => {
  const talk = await begin('two_always');
  const [first] = await talk.pending();
  await talk.respond(first!.id, { decision: 'allow' });
  await talk.silence();
  await talk.prompt('Again.');
  const [second] = await talk.pending();
  await talk.respond(second!.id, { option_id: 'always-user' });
  await talk.silence();
  expect(talk.words).toBe('answered: yes-onceanswered: always-user');
});

test('a permission review without options can only be cancelled', async () => {
  const talk = await begin('no_options');
  const [review] = await talk.pending();
  await expect(talk.respond(review!.id, { decision: 'allow' })).rejects.toThrow('option_id is required');
  await talk.respond(review!.id, { outcome: 'cancelled' });
  await talk.silence();
  expect(talk.words).toBe('answered: cancelled');
});

test('events and reviews of sub-agents are attributed to them, and the turn stays the agent’s', async () => {
  const talk = await begin('subagents');
  const [review] = await talk.pending();
  expect(review!.subagent).toEqual({ id: 'child-1', name: 'explorer', unknown_session: false });
  const params = { agent_id: talk.agent_id };
  const config = await plane.client.call('getAgentConfig', { params });
  expect(config).toMatchObject({
    modes: null,
    subagents: [
      { id: 'child-1', name: 'explorer', status: 'running', parent_id: null },
      { id: 'child-2', name: 'reader', status: 'idle', parent_id: 'child-1' },
    ],
  });
  await talk.respond(review!.id, { decision: 'allow' });
  await talk.silence();
  const { last_seq } = await talk.get();
  await talk.event(({ seq }) => seq === last_seq);
  const by = (id: unknown) => talk.events.filter(({ subagent }) => subagent === id).length;
  expect([by('child-1'), by('child-2'), by('unknown-1')]).toEqual([7, 1, 1]);
  expect(talk.events.filter(({ unknown_session }) => unknown_session)).toHaveLength(1);
  expect((await talk.get()).activity).toBe('idle');
});

test('events of a sub-agent within the agent’s session are attributed by the tool call that launched it', async () => {
  const talk = await begin('subagent_calls');
  const [review] = await talk.pending();
  expect(review!.subagent).toEqual({ id: 'task-1', name: 'Explore', unknown_session: false });
  await talk.respond(review!.id, { decision: 'deny' });
  await talk.silence();
  const params = { agent_id: talk.agent_id };
  expect((await plane.client.call('getAgentConfig', { params })).subagents).toEqual([
    {
      ...{ id: 'task-1', has_session: false, parent_id: null, name: 'Explore' },
      ...{ description: 'Find the failing test', status: 'idle', stop_reason: 'end_turn' },
    },
  ]);
  const { last_seq } = await talk.get();
  await talk.event(({ seq }) => seq === last_seq);
  expect(talk.events.filter(({ subagent }) => subagent === 'task-1')).toHaveLength(3);
});

test('two permission requests with the same id get separate answers', async () => {
  const talk = await begin('twice');
  const [first, second] = await talk.pending(2);
  expect([first, second].map((review) => review!.tool_call.title)).toEqual(['first', 'second']);
  await talk.respond(first!.id, { decision: 'allow' });
  await talk.respond(second!.id, { decision: 'deny' });
  await talk.silence();
  expect(talk.words).toBe('answered: yes-once, no-once');
});

test('a withdrawn permission request cancels its review', async () => {
  const talk = await begin('withdraws');
  await talk.silence();
  expect(await talk.reviews()).toMatchObject([{ status: 'cancelled', delivery: null }]);
  expect(talk.words).toBe('answered: error -32800');
});

test('cancelling a turn starts the next prompt', async () => {
  const talk = await begin('slow');
  await talk.event(({ method }) => method === 'session/update');
  const next = await talk.prompt('Then this.');
  await talk.cancel();
  while ((await talk.prompts()).some(({ id, state }) => id !== next || state !== 'sent'));
  await talk.cancel();
  await talk.silence();
  expect(talk.errors).toEqual([]);
});

test('a turn that ignores its cancellation is reported, and its agent can be stopped', async () => {
  const talk = await begin('ignores_cancel');
  await talk.event(({ method }) => method === 'session/update');
  await talk.cancel();
  await talk.error('cancel_ignored');
  expect((await talk.get()).activity).toBe('working');
  expect(await talk.stop()).toMatchObject({ status: 'cancelled' });
  await talk.error('turn_lost');
});

test('ten thousand updates in a turn become ten thousand events in order', async () => {
  const talk = await begin('flood', 10_000);
  await talk.silence();
  const { last_seq } = await talk.get();
  await talk.event(({ seq }) => seq === last_seq);
  expect(talk.words).toBe(Array.from({ length: 10_000 }, (_, n) => `${n + 1} `).join(''));
});

test('the event of an oversized frame has its size but no payload', async () => {
  const talk = await begin('long_line', 2 * MIB);
  await talk.silence();
  const frame = await talk.event(({ truncated }) => truncated === true);
  expect(frame).toMatchObject({ method: 'session/update', payload: null, size: 2 * MIB + 1 });
});

/** Peak resident memory of the service, bytes. */
function peak(): number {
  return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${plane.pid}/status`, 'utf8'))![1]) * 1024;
}

test('a line of 100 MiB becomes output without loss, and memory stays bounded', async () => {
  const warm = await begin('long_line', 40 * MIB);
  await warm.silence();
  const before = LINUX ? peak() : 0;
  const talk = await begin('long_line', 100 * MIB);
  await talk.silence();
  expect(talk.errors).toEqual(['frame_too_large']);
  const bytes = await plane.output(talk.agent_id, { stream: 'stdout' });
  expect(bytes.length).toBe(100 * MIB + 1);
  if (LINUX) expect(peak() - before).toBeLessThan(256 * MIB);
});

test('an incomplete frame of an agent that exits becomes output, and its turn is lost', async () => {
  const talk = await begin('half_frame');
  expect(await plane.finished(talk.agent_id)).toMatchObject({ status: 'failed', exit_code: 1 });
  await talk.error('turn_lost');
  const output = talk.events.filter(({ type }) => type === 'output');
  expect(output).toMatchObject([{ stream: 'stdout', data: '{"jsonrpc":"2.0","method":"session/upd' }]);
});

test('an agent that is killed in a turn loses the turn and can be started again', async () => {
  const talk = await begin('crash_in_turn');
  await talk.error('turn_lost');
  expect(await talk.get()).toMatchObject({ status: 'failed', exit_signal: 'SIGKILL', activity: null });
  await plane.client.call('startAgent', { params: { agent_id: talk.agent_id } });
  await talk.until('idle');
  // The agent cannot load its earlier session.
  expect(talk.errors).toEqual(['turn_lost', 'context_lost']);
});

test('an agent of an unsupported ACP version accepts no prompts', async () => {
  const talk = await begin('v2_only');
  expect(await talk.error('acp_version_unsupported')).toMatchObject({
    error: 'the agent speaks ACP version 2, this service version 1',
  });
  await talk.until('needs_you');
  await expect(talk.prompt('Hello?')).rejects.toThrow(
    'conversation with the agent has failed; see the error in its log',
  );
});

test('a prompt waits until the agent is signed in', async () => {
  const talk = await begin('auth');
  expect(await talk.error('auth_required')).toMatchObject({ methods: [{ id: 'test-sign-in' }] });
  await talk.until('needs_you');
  const params = { agent_id: talk.agent_id };
  await plane.client.call('authenticateAgent', { params, body: { method_id: 'test-sign-in' } });
  await talk.silence();
  expect(talk.words).toBe('Hello.');
});

test('an agent that cannot load its conversation starts a new one, and the loss is reported', async () => {
  const talk = await begin('load_fails');
  await talk.silence();
  await talk.stop();
  await plane.client.call('startAgent', { params: { agent_id: talk.agent_id } });
  expect(await talk.error('context_lost')).toMatchObject({
    error: 'the agent starts a new session without the earlier context: No previous sessions',
  });
  await talk.until('idle');
});

test('lines that are not frames become output', async () => {
  const talk = await begin('banners');
  await talk.silence();
  expect(talk.words).toBe('one two');
  const output = talk.events.flatMap(({ type, data }) => (type === 'output' ? [data] : []));
  expect(output.join('')).toBe(
    'Loading the model...\n\na line of text\n{"level":"info","msg":"JSON, and no frame"}\n[1,2]\n{broken\n',
  );
});

test('responses without a request change nothing', async () => {
  const talk = await begin('answers_nothing');
  await talk.silence();
  expect(talk.events.filter(({ response_to }) => response_to === 'nor-this')).toHaveLength(1);
  expect(talk.errors).toEqual([]);
});

test('unknown messages are shown, and unknown requests rejected', async () => {
  const talk = await begin('unknown_kinds');
  await talk.silence();
  expect(talk.words).toBe('answered: error -32601, error -32601, error -32601');
  expect(talk.errors).toEqual([]);
});

test('payloads contain exactly the bytes that the agent wrote', async () => {
  const talk = await begin('numbers');
  await talk.silence();
  expect(await talk.payloads()).toEqual(expect.arrayContaining(oddFrames('session-1')));
});

test('a program that echoes its input is reported as not an agent', async () => {
  const talk = await Conversation.start(plane, ['cat'], { prompt: 'Hello?' });
  open.push(talk);
  expect(await talk.error('acp_initialize_failed')).toMatchObject({ error: 'method not found' });
});

test('one of fifty concurrent answers by two users succeeds, and the others name its author', async () => {
  const credentials = { username: 'ben', password: 'staple battery correct' };
  await plane.client.call('createUser', { body: { ...credentials, role: 'user' } });
  const { token } = await plane.client.call('login', { body: credentials });
  const ben = new Client({ url: plane.url, token });
  const argv = [process.execPath, scripted, 'permission'];
  const talk = await Conversation.start(plane, argv, { prompt: 'Go on.', client: ben });
  open.push(talk);
  const [review] = await talk.pending();
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
  await talk.silence();
  expect(talk.words).toBe('answered: yes-once');
});
