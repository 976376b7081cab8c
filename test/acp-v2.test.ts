/** The real program with an agent that speaks ACP v2, built with the agent class of the SDK. */
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { problems } from '../src/core/problem.ts';
import { Conversation } from '../src/testing/conversation.ts';
import { TestPlane } from '../src/testing/plane.ts';

const speaks_v1 = fileURLToPath(new URL('../src/testing/acp-agent.ts', import.meta.url));
const speaks_v2 = fileURLToPath(new URL('../src/testing/acp-v2-agent.ts', import.meta.url));
const agentArgv = (mode?: string) => [process.execPath, speaks_v2, ...(mode ? [mode] : [])];
const PREVIEW = { SVC_AGENTS_ACP_VERSION: '2' };

let plane: TestPlane;
let talk: Conversation | undefined;
afterEach(async () => {
  await talk?.expectTrue();
  await talk?.close();
  talk = undefined;
  expect(plane.log).not.toContain('"level":"error"');
  await plane.close();
});

const config = () => plane.client.call('getAgentConfig', { params: { agent_id: talk!.agent_id } });
/** Waits until the agent's messages contain a text. */
const messageWith = (text: string) => talk!.event(() => talk!.words.includes(text));
/** Waits until no turn or prompt is left, and checks the log. */
async function silence(): Promise<void> {
  await talk!.silence();
  await talk!.expectTrue();
}
const stopReasons = () =>
  talk!.events.flatMap(
    ({ turn_ended }) => (turn_ended as { stop_reason: string } | undefined)?.stop_reason ?? [],
  );

test('a turn is complete after kills of the plane during its permission review', async () => {
  plane = await TestPlane.open({ env: PREVIEW });
  talk = await Conversation.start(plane, agentArgv(), { prompt: 'change' });
  const [review] = await talk.pending();
  expect(review!.tool_call).toMatchObject({ title: 'Change the configuration?', kind: 'edit' });
  expect((await talk.get()).activity).toBe('needs_you');
  for (let kill = 0; kill < 2; kill++) {
    await plane.kill();
    // The setting does not change the protocol version of an open session.
    await plane.start({ SVC_AGENTS_ACP_VERSION: '1' });
    expect(await talk.pending()).toMatchObject([{ id: review!.id, status: 'pending' }]);
    expect(await config()).toMatchObject({ protocol_version: 2 });
  }
  await talk.respond(review!.id, { decision: 'allow' });
  await silence();
  expect(talk.words).toBe('I will look.It is changed.');
  expect(stopReasons()).toEqual(['end_turn']);
  expect(await talk.delivered()).toMatchObject([{ status: 'answered', delivery: 'written' }]);
  expect(talk.errors).toEqual([]);
  expect(await talk.get()).toMatchObject({ activity: 'idle', asks: 'asks', session_count: 1 });
  expect(await config()).toMatchObject({
    ...{ phase: 'ready', protocol_version: 2, title: 'Debugging', modes: null },
    agent: { name: 'v2', title: 'The v2 agent', version: '1' },
    config_options: [{ id: 'how', currentValue: 'auto' }],
    commands: [{ name: 'review' }],
    plan: [{ content: 'Change it', status: 'in_progress' }],
    usage: { used: 10, size: 100 },
    capabilities: { image: true, audio: false },
  });
});

test.each(['stdin_written@3', 'acp_frames_committed@4', 'review_answered'])(
  'a plane that is killed at %s resumes the turn without loss',
  async (point) => {
    plane = await TestPlane.open();
    await plane.kill('SIGTERM');
    const [name, n] = point.split('@');
    const failpoint = `${name}:kill${n === undefined ? '' : `@${n}`}`;
    await plane.start({ ...PREVIEW, SVC_FAILPOINT: failpoint });
    const revived = plane.ended().then(() => plane.start());
    talk = await Conversation.start(plane, agentArgv(), { prompt: 'change' });
    const [review] = await talk.pending();
    await talk.respond(review!.id, { decision: 'allow' });
    await revived;
    await silence();
    expect(talk.words).toBe('I will look.It is changed.');
    expect(stopReasons()).toEqual(['end_turn']);
    expect(await talk.get()).toMatchObject({ activity: 'idle', session_count: 1 });
  },
);

test('prompts wait for the current turn, and a turn can be cancelled or fail', async () => {
  plane = await TestPlane.open({ env: PREVIEW });
  talk = await Conversation.start(plane, agentArgv(), { prompt: 'slow' });
  await messageWith('I take my time.');
  const next = await talk.prompt('change');
  expect(await talk.prompts()).toMatchObject([{ state: 'sent' }, { id: next, state: 'queued' }]);
  await talk.cancel();
  const [review] = await talk.pending();
  await talk.cancel();
  expect(await talk.delivered()).toMatchObject([{ id: review!.id, status: 'cancelled' }]);
  await silence();
  await talk.prompt('fail');
  await talk.error('prompt_failed');
  await silence();
  await talk.prompt('hello');
  await silence();
  expect(talk.words).toMatch(/You said: hello$/);
  expect(stopReasons()).toEqual(['cancelled', 'cancelled', 'error', 'end_turn']);
  expect(talk.errors).toEqual(['prompt_failed']);
});

test('work that the agent starts on its own delays prompts, and can be cancelled', async () => {
  plane = await TestPlane.open({ env: PREVIEW });
  talk = await Conversation.start(plane, agentArgv(), { prompt: 'later' });
  await messageWith('I go on by myself.');
  expect((await talk.get()).activity).toBe('working');
  const next = await talk.prompt('hello');
  expect(await talk.prompts()).toMatchObject([{ id: next, state: 'queued' }]);
  await talk.cancel();
  await silence();
  expect(talk.words).toBe('I go on by myself.You said: hello');
  await talk.until('idle');
  await expect(talk.cancel()).rejects.toThrow(problems.noTurn().message);
});

test('a mode is set as a config option, and a restart resumes the session', async () => {
  plane = await TestPlane.open({ env: PREVIEW });
  talk = await Conversation.start(plane, agentArgv(), { prompt: 'hello' });
  await silence();
  const params = { agent_id: talk.agent_id };
  const set = (mode_id: string) => plane.client.call('setAgentConfig', { params, body: { mode_id } });
  expect(await set('ask')).toMatchObject({ config_options: [{ id: 'how', currentValue: 'ask' }] });
  await expect(set('other')).rejects.toThrow('the agent does not offer the mode other');
  await talk.stop();
  await plane.client.call('startAgent', { params });
  await talk.prompt('again');
  await messageWith('You said: again');
  await silence();
  expect(talk.events.map(({ method }) => method)).toContain('session/resume');
  expect(talk.errors).toEqual([]);
  expect((await talk.get()).session_count).toBe(2);
});

test('signing in works as in version 1', async () => {
  plane = await TestPlane.open({ env: PREVIEW });
  talk = await Conversation.start(plane, agentArgv('signs_in'), { prompt: 'hello' });
  await talk.error('auth_required');
  const { auth_methods } = await config();
  expect(auth_methods).toEqual([{ id: 'key', name: 'Key', description: null, type: 'agent' }]);
  const params = { agent_id: talk.agent_id };
  await plane.client.call('authenticateAgent', { params, body: { method_id: 'key' } });
  await silence();
  expect(talk.words).toBe('You said: hello');
});

test('an agent that only speaks version 1 gets version 1', async () => {
  plane = await TestPlane.open({ env: PREVIEW });
  const argv = [process.execPath, speaks_v1, 'permission'];
  talk = await Conversation.start(plane, argv, { prompt: 'Go on.' });
  const [review] = await talk.pending();
  await talk.respond(review!.id, { decision: 'deny' });
  await silence();
  expect(talk.words).toBe('answered: no-once');
  expect(await config()).toMatchObject({ protocol_version: 1 });
  expect(talk.events.some(({ turn_ended, accepted }) => turn_ended || accepted)).toBe(false);
});

test('an agent that only speaks version 2 fails if the plane does not offer it', async () => {
  plane = await TestPlane.open();
  talk = await Conversation.start(plane, agentArgv(), { prompt: 'hello' });
  await talk.event(({ type }) => type === 'error');
  expect(talk.errors).toEqual(['acp_initialize_failed']);
  expect(await config()).toMatchObject({ phase: 'failed', protocol_version: null });
});
