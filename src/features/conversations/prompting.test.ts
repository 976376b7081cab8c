/** Prompts and turns, with a scripted agent. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { limits as sharedLimits } from '../../base/limits.ts';
import { committedCalls } from '../../testing/committed-calls.ts';
import { ANA, BEN, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { ScriptedAcp, startAcp } from '../../testing/scripted-acp.ts';
import { limits } from './limits.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

const text = (words: string) => [{ type: 'text', text: words }];
const say = (id: string, words: string) => fixture.prompting.prompt(ANA, id, text(words), null);
const waiting = async (id: string) =>
  (await fixture.prompting.list(ANA, id)).map(({ state, content }) => [state, content[0]!.text]);
const allRefused = (calls: Promise<unknown>[], message: string) =>
  Promise.all(calls.map((call) => expect(call).rejects.toThrow(message)));
const ends = (acp: ScriptedAcp, stopReason = 'end_turn') =>
  acp.respond('session/prompt', { result: { stopReason } });

test('prompts wait for the agent and for its turns, and are sent one after another', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'first' });
  expect(await say(id, 'second')).toMatchObject({ queued: true });
  await say(id, 'third');
  await acp.openSession();
  const first = await acp.receive('request', 'session/prompt');
  expect(first.params).toEqual({ sessionId: 'acp-1', prompt: text('first') });
  expect(await waiting(id)).toEqual([
    ['sent', 'first'],
    ['queued', 'second'],
    ['queued', 'third'],
  ]);
  expect((await fixture.get(id)).activity).toBe('working');
  acp.send({ kind: 'response', id: first.id, result: { stopReason: 'end_turn' } });
  expect((await ends(acp)).params).toMatchObject({ prompt: text('second') });
  expect((await ends(acp)).params).toMatchObject({ prompt: text('third') });
  await vi.waitFor(async () => expect(await waiting(id)).toEqual([]), SOON);
  expect((await fixture.get(id)).activity).toBe('idle');
  expect(await say(id, 'fourth')).toMatchObject({ queued: false });
  await fixture.expectSameState(id);
});

test('an agent never receives half of a surrogate pair', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'first \ud83d' });
  const { prompt_id } = await say(id, 'second \udE00');
  const edited = await fixture.prompting.edit(ANA, id, prompt_id, text('edited \udE00 😀'));
  expect(edited.content).toEqual(text('edited \ufffd 😀'));
  await acp.openSession();
  expect((await ends(acp)).params).toMatchObject({ prompt: text('first \ufffd') });
  expect((await ends(acp)).params).toMatchObject({ prompt: text('edited \ufffd 😀') });
});

test('turns of an agent without a team are not published to other features', async () => {
  const recorded = committedCalls(fixture.facts, 'record');
  const { id, acp } = await startAcp(fixture, { prompt: 'first' });
  const { prompt_id } = await say(id, 'second');
  await fixture.prompting.remove(ANA, id, prompt_id);
  await acp.openSession();
  await ends(acp);
  await vi.waitFor(async () => expect((await fixture.get(id)).activity).toBe('idle'), SOON);
  expect(recorded.map(([kind]) => kind)).toEqual(['session_started']);
});

test('a prompt is found by its id, even after its turn, but only with access', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'first' });
  const second = await say(id, 'second');
  await acp.openSession();
  const { id: first_id } = await ends(acp, 'refusal');
  const get = (prompt_id: string, caller = ANA) => fixture.prompting.get(caller, id, prompt_id);
  await vi.waitFor(async () => {
    expect(await get(String(first_id))).toMatchObject({ state: 'ended', stop_reason: 'refusal' });
  }, SOON);
  expect(await get(second.prompt_id)).toMatchObject({ state: 'sent', content: text('second') });
  await expect(get('prm_x')).rejects.toThrow('prompt not found');
  await expect(get(second.prompt_id, BEN)).rejects.toThrow('agent not found');
});

test('a queued prompt can be changed and withdrawn, and is sent as last changed', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'first' });
  const second = await say(id, 'second');
  const third = await say(id, 'third');
  await acp.openSession();
  const sent = await acp.receive('request', 'session/prompt');
  expect(await fixture.prompting.edit(ANA, id, second.prompt_id, text('better'))).toMatchObject({
    id: second.prompt_id,
    state: 'queued',
    content: text('better'),
  });
  await fixture.prompting.remove(ANA, id, third.prompt_id);
  const changes = (prompt_id: string) => [
    fixture.prompting.edit(ANA, id, prompt_id, text('late')),
    fixture.prompting.remove(ANA, id, prompt_id),
  ];
  await allRefused(changes(String(sent.id)), 'prompt was already sent');
  await allRefused(changes(third.prompt_id), 'prompt not found');
  acp.send({ kind: 'response', id: sent.id, result: { stopReason: 'end_turn' } });
  expect((await ends(acp)).params).toMatchObject({ prompt: text('better') });
  await vi.waitFor(async () => expect(await waiting(id)).toEqual([]), SOON);
  await fixture.expectSameState(id);
});

test('a prompt with a key is sent once, even if its answer was lost and it was withdrawn since', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'first' });
  await acp.openSession();
  const request = new Uint8Array(32);
  expect(await fixture.idempotency.begin(ANA, 'key', request)).toHaveProperty('first');
  const { prompt_id } = await fixture.prompting.prompt(ANA, id, text('once'), 'key');
  await fixture.close();
  await fixture.open();
  const stored = { status: 200, body: { prompt_id, queued: true } };
  expect(await fixture.idempotency.begin(ANA, 'key', request)).toMatchObject({ stored });
  await fixture.prompting.remove(ANA, id, prompt_id);
  expect(await fixture.idempotency.begin(ANA, 'key', request)).toMatchObject({ stored });
  expect(await waiting(id)).toHaveLength(1);
});

test('a cancelled turn ends when the agent confirms it, after its requests were answered', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'first' });
  await expect(fixture.prompting.cancel(ANA, id)).rejects.toThrow('no turn is running');
  await acp.openSession();
  const prompt = await acp.receive('request', 'session/prompt');
  await say(id, 'second');
  acp.requestPermission(7);
  acp.requestPermission('x');
  await vi.waitFor(async () => expect((await fixture.get(id)).pending_reviews).toBe(2), SOON);
  expect((await fixture.get(id)).activity).toBe('needs_you');
  expect(await fixture.prompting.cancel(ANA, id)).toMatchObject({ status: 'running', pending_reviews: 0 });
  const cancelled = { outcome: { outcome: 'cancelled' } };
  expect(await acp.receive('response')).toEqual({ kind: 'response', id: 7, result: cancelled });
  expect(await acp.receive('response')).toEqual({ kind: 'response', id: 'x', result: cancelled });
  expect((await acp.receive('notification', 'session/cancel')).params).toEqual({ sessionId: 'acp-1' });
  expect(await waiting(id)).toEqual([
    ['sent', 'first'],
    ['queued', 'second'],
  ]);
  acp.send({ kind: 'response', id: prompt.id, result: { stopReason: 'cancelled' } });
  await ends(acp);
  const reviews = (await fixture.reviews.list(ANA, { agent_id: id }, {})).items;
  expect(reviews.map(({ status, answered_by }) => [status, answered_by])).toEqual([
    ['cancelled', 'ana'],
    ['cancelled', 'ana'],
  ]);
  await vi.waitFor(async () => expect(await waiting(id)).toEqual([]), SOON);
  await fixture.advanceClock(sharedLimits.turn_cancel_ms);
  expect(await fixture.errors(id)).toEqual([]);
  await fixture.expectSameState(id);
});

test('a cancellation that names a prompt cancels no other turn, and no request in it', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'first' });
  await acp.openSession();
  const prompt = await acp.receive('request', 'session/prompt');
  acp.requestPermission(7);
  await vi.waitFor(async () => expect((await fixture.get(id)).pending_reviews).toBe(1), SOON);
  for (const other of ['prm_other', null]) {
    await expect(fixture.prompting.cancel(ANA, id, other)).rejects.toThrow('no turn is running');
  }
  expect((await fixture.get(id)).pending_reviews).toBe(1);
  await fixture.prompting.cancel(ANA, id, String(prompt.id));
  expect(await acp.receive('response')).toMatchObject({ id: 7 });
  await acp.receive('notification', 'session/cancel');
});

test('a turn that continues after its cancellation is reported once', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'first' });
  await acp.openSession();
  await acp.receive('request', 'session/prompt');
  await fixture.prompting.cancel(ANA, id);
  await fixture.advanceClock(sharedLimits.turn_cancel_ms);
  await vi.waitFor(async () => expect(await fixture.errors(id)).toEqual(['cancel_ignored']), SOON);
  await fixture.advanceClock(sharedLimits.turn_cancel_ms);
  expect(await fixture.errors(id)).toEqual(['cancel_ignored']);
  expect((await fixture.get(id)).activity).toBe('working');
});

test('an error from the agent ends the turn, and the next prompt is sent', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'first' });
  await say(id, 'second');
  await acp.openSession();
  await acp.respond('session/prompt', { error: { code: -32603, message: 'out of tokens' } });
  await ends(acp, 'refusal');
  await vi.waitFor(async () => expect(await waiting(id)).toEqual([]), SOON);
  const failed = (await fixture.events(id)).find(({ type }) => type === 'error');
  expect(failed).toMatchObject({ code: 'prompt_failed', error: 'out of tokens' });
  await fixture.expectSameState(id);
});

test('a turn is lost if the agent dies; queued prompts go to the next session', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'first' });
  const second = await say(id, 'second');
  await acp.openSession();
  const lost = await acp.receive('request', 'session/prompt');
  acp.sendUpdate({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'half' } });
  fixture.node.end(acp.session_id, 1);
  await fixture.until(id, 'failed');
  await vi.waitFor(async () => expect(await waiting(id)).toEqual([['queued', 'second']]), SOON);
  expect((await fixture.events(id)).at(-1)).toMatchObject({ code: 'turn_lost', prompt_id: lost.id });
  expect(await fixture.get(id)).toMatchObject({ activity: null });
  const { session_id } = await fixture.agents.start(ANA, id, null);
  const next = new ScriptedAcp(fixture, session_id!);
  await next.openSession();
  expect((await next.receive('request', 'session/prompt')).id).toBe(second.prompt_id);
  await fixture.expectSameState(id);
});

test('an agent that is being stopped gets a cancel and no further prompt', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'first' });
  await say(id, 'second');
  await acp.openSession();
  const prompt = await acp.receive('request', 'session/prompt');
  acp.requestPermission(1);
  await vi.waitFor(async () => expect((await fixture.get(id)).pending_reviews).toBe(1), SOON);
  fixture.node.stop = async (session_id) => {
    await acp.receive('response');
    await acp.receive('notification', 'session/cancel');
    acp.send({ kind: 'response', id: prompt.id, result: { stopReason: 'cancelled' } });
    fixture.node.end(session_id, 0);
    return { cleanup: 'swept', survivors: [] };
  };
  expect(await fixture.agents.stop(ANA, id, 0)).toMatchObject({ status: 'cancelled' });
  expect(await waiting(id)).toEqual([['queued', 'second']]);
  expect(await fixture.errors(id)).toEqual([]);
  await fixture.expectSameState(id);
});

test('a conversation continues unchanged across restarts of the plane', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'first' });
  const again = async () => {
    await fixture.close();
    await fixture.open();
  };
  await again();
  await acp.initialize();
  await again();
  await acp.respond('session/new', { result: { sessionId: 'acp-1' } });
  const prompt = await acp.receive('request', 'session/prompt');
  acp.write('{"jsonrpc":"2.0","id":1,"method":"session/request_permission","par');
  await again();
  acp.write('ams":{"options":[{"optionId":"y","kind":"allow_once"}]}}\n');
  await vi.waitFor(async () => expect((await fixture.get(id)).pending_reviews).toBe(1), SOON);
  await again();
  const [review] = (await fixture.reviews.list(ANA, {}, {})).items;
  await fixture.reviews.respond(ANA, review!.id, { decision: 'allow' }, null);
  await again();
  expect(await acp.receive('response')).toMatchObject({ result: { outcome: { optionId: 'y' } } });
  acp.send({ kind: 'response', id: prompt.id, result: { stopReason: 'end_turn' } });
  await vi.waitFor(async () => expect(await waiting(id)).toEqual([]), SOON);
  expect(acp.lines).toHaveLength(4);
  await fixture.expectSameState(id);
});

test('the number of queued prompts is limited, and content that the agent does not support is rejected', async () => {
  const { id, acp } = await startAcp(fixture);
  await acp.openSession({ agentCapabilities: { promptCapabilities: { image: true } } });
  await vi.waitFor(async () => expect((await fixture.get(id)).activity).toBe('idle'), SOON);
  const prompt = (content: { type: string; [field: string]: unknown }[]) =>
    fixture.prompting.prompt(ANA, id, content, null);
  const image = { type: 'image', mimeType: 'image/png', data: 'AAAA' };
  await prompt([...text('look'), image]);
  await expect(prompt([{ type: 'image' }])).rejects.toThrow('content[0] must be a content block of ACP');
  const sound = { type: 'audio', mimeType: 'audio/wav', data: 'AAAA' };
  await expect(prompt([image, sound])).rejects.toThrow('content of type audio is not taken by this agent');
  for (let n = 1; n < limits.prompts_waiting_max; n++) await say(id, 'more');
  await expect(say(id, 'too much')).rejects.toThrow('too many prompts are waiting');
});

test('a prompt that is too large for an event reaches the agent in full', async () => {
  const { id, acp } = await startAcp(fixture);
  await acp.openSession();
  const words = 'x'.repeat(sharedLimits.acp_payload_bytes_max);
  const { prompt_id: request_id } = await say(id, words);
  const { params } = await acp.receive('request', 'session/prompt');
  expect((params as { prompt: { text: string }[] }).prompt[0]!.text === words).toBe(true);
  const event = (await fixture.events(id)).find(({ truncated }) => truncated === true);
  const about = { direction: 'to_agent', method: 'session/prompt', request_id };
  expect(event).toMatchObject({ ...about, payload: null });
  expect(event!.size).toBe(acp.lines.at(-1)!.length + 1);
});

test('only the owner can prompt, and only a running ACP agent', async () => {
  const plain = await fixture.create({ start: true });
  await expect(say(plain.id, 'hello')).rejects.toThrow('agent does not speak ACP');
  await expect(fixture.prompting.config(ANA, plain.id)).rejects.toThrow('agent does not speak ACP');
  await expect(fixture.create({ prompt: 'hello' })).rejects.toThrow('prompt needs an agent that speaks ACP');
  await expect(fixture.agents.input(ANA, (await startAcp(fixture)).id, 'x', false, null)).rejects.toThrow(
    'agent speaks ACP',
  );
  const rests = await fixture.create({ protocol: 'acp' });
  await expect(say(rests.id, 'hello')).rejects.toThrow('agent is not running');
  await expect(fixture.prompting.cancel(ANA, rests.id)).rejects.toThrow('agent is not running');
  const { id, acp } = await startAcp(fixture, { prompt: 'first' });
  await acp.openSession();
  const asBen = [
    fixture.prompting.prompt(BEN, id, text('hello'), null),
    fixture.prompting.list(BEN, id),
    fixture.prompting.edit(BEN, id, 'prm_x', text('hello')),
    fixture.prompting.remove(BEN, id, 'prm_x'),
    fixture.prompting.cancel(BEN, id),
    fixture.prompting.config(BEN, id),
    fixture.prompting.configure(BEN, id, { mode_id: 'auto' }),
    fixture.prompting.authenticate(BEN, id, 'key'),
  ];
  await allRefused(asBen, 'agent not found');
});

test('a session whose stdin is lost gets no further prompt, which waits for the next session', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'first' });
  await say(id, 'second');
  await acp.openSession();
  const prompt = await acp.receive('request', 'session/prompt');
  await fixture.close();
  // What a plane from an older backup finds.
  fixture.node.views.get(acp.session_id)!.stdin_bytes = 1_000_000;
  await fixture.open();
  acp.send({ kind: 'response', id: prompt.id, result: { stopReason: 'end_turn' } });
  await vi.waitFor(async () => expect(await waiting(id)).toEqual([['queued', 'second']]), SOON);
  expect(await fixture.errors(id)).toEqual(['stdin_lost']);
  await expect(say(id, 'third')).rejects.toMatchObject({ code: 'stdin_lost' });
});
