/** Secrets in conversations: they are never shown, and the agent still gets its own text back. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { limits } from '../../base/limits.ts';
import { ANA, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { startAcp } from '../../testing/scripted-acp.ts';

const KEY = 'k3y "of" mine\\and yours';
const env = { KEY, MODE: 'fast-and-loose' };

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

async function shown(id: string, count: number) {
  return vi.waitFor(async () => {
    const events = await fixture.events(id);
    expect(events.filter(({ type }) => type === 'acp_event').length).toBeGreaterThanOrEqual(count);
    return events;
  }, SOON);
}

test('no message in the log contains a secret in either direction, and the agent gets it unchanged', async () => {
  const { id, acp } = await startAcp(fixture, { env, prompt: `use ${KEY}` });
  await acp.openSession();
  const request = await acp.receive('request', 'session/prompt');
  expect(JSON.stringify(request)).toContain(JSON.stringify(KEY).slice(1, -1));
  acp.sendUpdate({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: `it is ${KEY}.` } });
  acp.write(`not a message: ${KEY}\n`);
  const escaped = JSON.stringify(KEY).replaceAll('k', '\\u006b');
  acp.write(`{"jsonrpc":"2.0","method":"_x","params":{"n":1.50,"key":${escaped}}}\n`);
  const events = await shown(id, 7);
  expect(JSON.stringify(events)).not.toContain(JSON.stringify(KEY).slice(1, -1));
  const texts = events.map(({ payload }) => JSON.stringify(payload) ?? '');
  expect(texts.filter((text) => text.includes('[redacted:KEY]'))).toHaveLength(3);
  expect(texts.some((text) => text.includes('use [redacted:KEY]'))).toBe(true);
  expect(texts.some((text) => text.includes('it is [redacted:KEY].'))).toBe(true);
  expect(events.find(({ type }) => type === 'output')?.data).toBe('not a message: [redacted:KEY]\n');
});

test('redacts the id of a request that is too large for an event', async () => {
  const { id, acp } = await startAcp(fixture, { env });
  await acp.openSession();
  const params = 'x'.repeat(limits.acp_payload_bytes_max);
  acp.send({ kind: 'request', id: `use ${KEY}`, method: '_x', params });
  const event = (await shown(id, 5)).find(({ truncated }) => truncated === true);
  expect(event).toMatchObject({ method: '_x', request_id: 'use [redacted:KEY]', payload: null });
});

test('redacts the agent’s self-description; settings keep their ids', async () => {
  const { id, acp } = await startAcp(fixture, { env, prompt: 'go' });
  const modes = { currentModeId: env.MODE, availableModes: [{ id: env.MODE, name: 'x' }] };
  await acp.openSession({}, { modes });
  await acp.receive('request', 'session/prompt');
  acp.sendUpdate({ sessionUpdate: 'session_info_update', title: `use ${KEY}` });
  acp.sendUpdate({ sessionUpdate: 'plan', entries: [{ content: KEY, status: 'pending' }] });
  acp.sendUpdate({ sessionUpdate: 'subagent_update', sessionId: 'child', title: KEY });
  await shown(id, 8);
  expect(await fixture.prompting.config(ANA, id)).toMatchObject({
    title: 'use [redacted:KEY]',
    plan: [{ content: '[redacted:KEY]' }],
    subagents: [{ id: 'child', name: '[redacted:KEY]' }],
    modes,
  });
});

test('a request is shown without secrets, and answered with the agent’s own id', async () => {
  const { id, acp } = await startAcp(fixture, { env, prompt: 'go' });
  await acp.openSession();
  await acp.receive('request', 'session/prompt');
  acp.requestPermission(
    'q',
    [{ optionId: 'fast-and-loose', name: `be ${env.MODE}`, kind: 'allow_once' }],
    `echo ${KEY}`,
  );
  const [review] = await vi.waitFor(async () => {
    const { items } = await fixture.reviews.list(ANA, {}, {});
    expect(items).toHaveLength(1);
    return items;
  }, SOON);
  expect((await fixture.agents.get(ANA, id)).summary.now).toBe('echo [redacted:KEY]');
  expect(review).toMatchObject({
    agent_id: id,
    tool_call: { title: 'echo [redacted:KEY]' },
    options: [{ option_id: 'fast-and-loose', name: 'be [redacted:MODE]' }],
  });
  await fixture.reviews.respond(ANA, review!.id, { decision: 'allow' }, null);
  const answer = await acp.receive('response');
  expect(answer.result).toEqual({ outcome: { outcome: 'selected', optionId: 'fast-and-loose' } });
});

test('secrets are redacted in terminal output, which is base64', async () => {
  const { id, acp } = await startAcp(fixture, { env });
  await acp.openSession();
  const data = (text: string) => Buffer.from(text).toString('base64');
  const terminal = { terminalId: 't' };
  const plain = { sessionUpdate: 'terminal_output_chunk', ...terminal, data: data('all is well') };
  acp.sendUpdate({ sessionUpdate: 'terminal_output_chunk', ...terminal, data: data(`key: ${KEY}\n`) });
  acp.sendUpdate({ sessionUpdate: 'terminal_update', ...terminal, output: { data: data(`again: ${KEY}`) } });
  acp.sendUpdate(plain);
  const events = await shown(id, 7);
  const updates = events.flatMap(({ payload, method }) =>
    method === 'session/update' ? [(payload as { params: { update: unknown } }).params.update] : [],
  );
  expect(updates).toEqual([
    { sessionUpdate: 'terminal_output_chunk', ...terminal, data: data('key: [redacted:KEY]\n') },
    { sessionUpdate: 'terminal_update', ...terminal, output: { data: data('again: [redacted:KEY]') } },
    plain,
  ]);
});

test('values of a preset are not secrets, and an agent that cannot be prompted reveals none', async () => {
  const { id, acp } = await startAcp(fixture, {
    ...{ preset: 'codex', command: 'true' },
    env: { ...env, INITIAL_AGENT_MODE: 'read-only' },
  });
  await acp.respond('initialize', { error: { code: -1, message: `read-only, and ${KEY} is wrong` } });
  const error = await vi.waitFor(async () => {
    const found = (await fixture.events(id)).find(({ type }) => type === 'error');
    expect(found).toBeDefined();
    return found!;
  }, SOON);
  expect(error.error).toContain('read-only, and [redacted:KEY] is wrong');
});
