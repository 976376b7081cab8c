/** Requests that wait until an agent reaches a state. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ANA, BEN, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { startAcp } from '../../testing/scripted-acp.ts';
import { ended } from '../../testing/scripted-node.ts';
import { signIn, signOut } from '../../testing/sign-in.ts';
import { sqliteTest } from '../../testing/test-store.ts';
import { limits } from './limits.ts';
import { AgentWaits } from './waiting.ts';

const MINUTE_MS = 60_000;

let fixture: FeaturesFixture;
let waits: AgentWaits;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
  waits = new AgentWaits(fixture.agents, fixture);
  await signIn(fixture.store, ANA, BEN);
});
afterEach(() => fixture.end());

const never = new AbortController().signal;

test('waits for an ACP agent’s permission request, and for the end of its turn', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'go' });
  const needs_you = waits.until(ANA, id, 'needs_you', MINUTE_MS, never);
  const idle = waits.until(ANA, id, 'idle', MINUTE_MS, never);
  await acp.openSession();
  const prompt = await acp.receive('request', 'session/prompt');
  acp.requestPermission('q', [{ optionId: 'y', name: 'y', kind: 'allow_once' }]);
  expect(await needs_you).toMatchObject({ id, activity: 'needs_you', pending_reviews: 1 });
  const [review] = (await fixture.reviews.list(ANA, {}, {})).items;
  await fixture.reviews.respond(ANA, review!.id, { decision: 'allow' }, null);
  acp.send({ kind: 'response', id: prompt.id, result: { stopReason: 'end_turn' } });
  expect(await idle).toMatchObject({ id, activity: 'idle' });
});

test('an aborted wait returns at once, and a user without access gets not found', async () => {
  const { id } = await fixture.create({ start: true });
  const controller = new AbortController();
  const waiting = waits.until(ANA, id, 'ended', MINUTE_MS, controller.signal);
  controller.abort();
  expect(await waiting).toMatchObject({ id, status: 'running' });
  await expect(waits.until(BEN, id, 'ended', MINUTE_MS, never)).rejects.toThrow('agent not found');
});

test('a wait for the end of an agent that is starting again waits for its new session', async () => {
  const { id, session_id } = await fixture.create({ protocol: 'acp', start: true });
  fixture.node.sendFact(session_id!, ended(0));
  await fixture.until(id, 'completed');
  fixture.node.start = () => new Promise(() => {});
  void fixture.agents.start(ANA, id, null).catch(() => {});
  await vi.waitFor(async () => expect((await fixture.get(id)).activity).toBe('starting'), SOON);
  expect(await fixture.get(id)).toMatchObject({ status: 'completed' });
  const controller = new AbortController();
  let is_over = false;
  const waiting = waits.until(ANA, id, 'ended', MINUTE_MS, controller.signal).finally(() => {
    is_over = true;
  });
  for (let n = 0; n < 20; n++) await fixture.store.read(() => null);
  expect(is_over).toBe(false);
  controller.abort();
  await waiting;
});

test('a wait for an agent that is deleted ends with not found', async () => {
  const { id } = await fixture.create();
  const waiting = waits.until(ANA, id, 'ended', MINUTE_MS, never);
  const refused = expect(waiting).rejects.toThrow('agent not found');
  await fixture.agents.delete(ANA, id, { force: false, delete_worktree: false });
  await refused;
});

test('a wait that outlives the caller’s token is refused', async () => {
  const { id, session_id } = await fixture.create({ start: true });
  const waiting = waits.until(ANA, id, 'ended', MINUTE_MS, never);
  const refused = expect(waiting).rejects.toThrow('invalid token');
  await signOut(fixture.store, ANA);
  fixture.node.sendFact(session_id!, ended(0));
  await refused;
});

// The waiters are counted after they have read the agent, which happens in any order on PostgreSQL.
sqliteTest(
  'limits the number of waiting requests of a user, and frees the slots of finished ones',
  async () => {
    const { id } = await fixture.create({ start: true });
    const controller = new AbortController();
    const bens = await fixture.create({ start: true }, null, BEN);
    const many = Array.from({ length: limits.agent_waiters.per_owner }, () =>
      waits.until(ANA, id, 'ended', MINUTE_MS, controller.signal),
    );
    await expect(waits.until(ANA, id, 'ended', 0, never)).rejects.toMatchObject({ kind: 'rate_limited' });
    expect(await waits.until(BEN, bens.id, 'ended', 0, never)).toMatchObject({ id: bens.id });
    controller.abort();
    await Promise.all(many);
    expect(await waits.until(ANA, id, 'ended', 0, never)).toMatchObject({ id });
  },
);
