/** The real program with an agent that speaks ACP v2, built with the agent class of the SDK. */
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { problems } from '../src/core/problem.ts';
import { Conversation } from '../src/testing/conversation.ts';
import { firstOf, is_long, longTest } from '../src/testing/long.ts';
import type { TestPlane } from '../src/testing/plane.ts';
import { sharedPlane } from '../src/testing/shared-plane.ts';

const speaks_v1 = fileURLToPath(new URL('../src/testing/acp-agent.ts', import.meta.url));
const speaks_v2 = fileURLToPath(new URL('../src/testing/acp-v2-agent.ts', import.meta.url));
const agentArgv = (mode?: string) => [process.execPath, speaks_v2, ...(mode ? [mode] : [])];

let plane: TestPlane;
let conversation: Conversation | undefined;
const share = sharedPlane({ env: { SVC_AGENTS_ACP_VERSION: '2' } });
const speaksV1 = sharedPlane();
afterEach(async () => {
  await conversation?.expectSameState();
  await conversation?.close();
  conversation = undefined;
  expect(plane.log).not.toContain('"level":"error"');
});

const config = () => plane.client.call('getAgentConfig', { params: { agent_id: conversation!.agent_id } });
/** Waits until the agent's messages contain a text. */
const messageWith = (text: string) => conversation!.event(() => conversation!.text.includes(text));
/** Waits until no turn or prompt is left, and checks the log. */
async function untilIdleAndChecked(): Promise<void> {
  await conversation!.untilIdle();
  await conversation!.expectSameState();
}
const stopReasons = () =>
  conversation!.events.flatMap(
    ({ turn_ended }) => (turn_ended as { stop_reason: string } | undefined)?.stop_reason ?? [],
  );

longTest('a turn is complete after kills of the plane during its permission review', async () => {
  plane = await share();
  conversation = await Conversation.start(plane, agentArgv(), { prompt: 'change' });
  const [review] = await conversation.pending();
  expect(review!.tool_call).toMatchObject({ title: 'Change the configuration?', kind: 'edit' });
  expect((await conversation.get()).activity).toBe('needs_you');
  for (let kill = 0; kill < (is_long ? 2 : 1); kill++) {
    await plane.kill();
    // The setting does not change the protocol version of an open session.
    await plane.start({ SVC_AGENTS_ACP_VERSION: '1' });
    expect(await conversation.pending()).toMatchObject([{ id: review!.id, status: 'pending' }]);
    expect(await config()).toMatchObject({ protocol_version: 2 });
  }
  await conversation.respond(review!.id, { decision: 'allow' });
  await untilIdleAndChecked();
  expect(conversation.text).toBe('I will look.It is changed.');
  expect(stopReasons()).toEqual(['end_turn']);
  expect(await conversation.delivered()).toMatchObject([{ status: 'answered', delivery: 'written' }]);
  expect(conversation.errors).toEqual([]);
  expect(await conversation.get()).toMatchObject({ activity: 'idle', asks: 'asks', session_count: 1 });
  expect(await config()).toMatchObject({
    ...{ phase: 'ready', protocol_version: 2, title: 'Debugging', modes: null },
    agent: { name: 'v2', title: 'The v2 agent', version: '1' },
    config_options: [{ id: 'how', currentValue: 'auto' }],
    commands: [{ name: 'review' }],
    plan: [{ content: 'Change it', status: 'in_progress' }],
    usage: { used: 10, size: 100 },
    capabilities: { image: true, audio: false },
  });
  await plane.kill();
  await plane.start();
});

test.each(firstOf(1, ['acp_frames_committed@4', 'review_answered', 'stdin_written@3']))(
  'a plane that is killed at %s resumes the turn without loss',
  async (point) => {
    plane = await share();
    await plane.kill('SIGTERM');
    const [name, n] = point.split('@');
    const failpoint = `${name}:kill${n === undefined ? '' : `@${n}`}`;
    await plane.start({ SVC_FAILPOINT: failpoint });
    const revived = plane.ended().then(() => plane.start());
    conversation = await Conversation.start(plane, agentArgv(), { prompt: 'change' });
    const [review] = await conversation.pending();
    await conversation.respond(review!.id, { decision: 'allow' });
    await revived;
    await untilIdleAndChecked();
    expect(conversation.text).toBe('I will look.It is changed.');
    expect(stopReasons()).toEqual(['end_turn']);
    expect(await conversation.get()).toMatchObject({ activity: 'idle', session_count: 1 });
  },
);

test('prompts wait for the current turn, and a turn can be cancelled or fail', async () => {
  plane = await share();
  conversation = await Conversation.start(plane, agentArgv(), { prompt: 'slow' });
  await messageWith('I take my time.');
  const next = await conversation.prompt('change');
  expect(await conversation.prompts()).toMatchObject([{ state: 'sent' }, { id: next, state: 'queued' }]);
  await conversation.cancel();
  const [review] = await conversation.pending();
  await conversation.cancel();
  expect(await conversation.delivered()).toMatchObject([{ id: review!.id, status: 'cancelled' }]);
  await untilIdleAndChecked();
  await conversation.prompt('fail');
  await conversation.error('prompt_failed');
  await untilIdleAndChecked();
  await conversation.prompt('hello');
  await untilIdleAndChecked();
  expect(conversation.text).toMatch(/You said: hello$/);
  expect(stopReasons()).toEqual(['cancelled', 'cancelled', 'error', 'end_turn']);
  expect(conversation.errors).toEqual(['prompt_failed']);
});

test('work that the agent starts on its own delays prompts, and can be cancelled', async () => {
  plane = await share();
  conversation = await Conversation.start(plane, agentArgv(), { prompt: 'later' });
  await messageWith('I continue without a prompt.');
  expect((await conversation.get()).activity).toBe('working');
  const next = await conversation.prompt('hello');
  expect(await conversation.prompts()).toMatchObject([{ id: next, state: 'queued' }]);
  await conversation.cancel();
  await untilIdleAndChecked();
  expect(conversation.text).toBe('I continue without a prompt.You said: hello');
  await conversation.until('idle');
  await expect(conversation.cancel()).rejects.toThrow(problems.noTurn().message);
});

test('a mode is set as a config option, and a restart resumes the session', async () => {
  plane = await share();
  conversation = await Conversation.start(plane, agentArgv(), { prompt: 'hello' });
  await untilIdleAndChecked();
  const params = { agent_id: conversation.agent_id };
  const set = (mode_id: string) => plane.client.call('setAgentConfig', { params, body: { mode_id } });
  expect(await set('ask')).toMatchObject({ config_options: [{ id: 'how', currentValue: 'ask' }] });
  await expect(set('other')).rejects.toThrow('the agent does not offer the mode other');
  await conversation.stop();
  await plane.client.call('startAgent', { params });
  await conversation.prompt('again');
  await messageWith('You said: again');
  await untilIdleAndChecked();
  expect(conversation.events.map(({ method }) => method)).toContain('session/resume');
  expect(conversation.errors).toEqual([]);
  expect((await conversation.get()).session_count).toBe(2);
});

test('signing in works as in version 1', async () => {
  plane = await share();
  conversation = await Conversation.start(plane, agentArgv('signs_in'), { prompt: 'hello' });
  await conversation.error('auth_required');
  const { auth_methods } = await config();
  expect(auth_methods).toEqual([{ id: 'key', name: 'Key', description: null, type: 'agent' }]);
  const params = { agent_id: conversation.agent_id };
  await plane.client.call('authenticateAgent', { params, body: { method_id: 'key' } });
  await untilIdleAndChecked();
  expect(conversation.text).toBe('You said: hello');
});

test('an agent that only speaks version 1 gets version 1', async () => {
  plane = await share();
  const argv = [process.execPath, speaks_v1, 'permission'];
  conversation = await Conversation.start(plane, argv, { prompt: 'Go on.' });
  const [review] = await conversation.pending();
  await conversation.respond(review!.id, { decision: 'deny' });
  await untilIdleAndChecked();
  expect(conversation.text).toBe('answered: no-once');
  expect(await config()).toMatchObject({ protocol_version: 1 });
  expect(conversation.events.some(({ turn_ended, accepted }) => turn_ended || accepted)).toBe(false);
});

test('an agent that only speaks version 2 fails if the plane does not offer it', async () => {
  plane = await speaksV1();
  conversation = await Conversation.start(plane, agentArgv(), { prompt: 'hello' });
  await conversation.event(({ type }) => type === 'error');
  expect(conversation.errors).toEqual(['acp_initialize_failed']);
  expect(await config()).toMatchObject({ phase: 'failed', protocol_version: null });
});
