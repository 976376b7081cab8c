import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { rfc3339 } from '../../base/clock.ts';
import { ANA, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { ended } from '../../testing/scripted-node.ts';
import { limits } from './limits.ts';
import { capRestarts, restartFacts } from './restarts.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

test('the delay grows unless the session ran for long, by the clock of the node', async () => {
  const { id } = await fixture.create({ restart_policy: 'on_failure', start: true });
  // The clock of this node is decades behind, and its sessions take a millisecond.
  expect(await delayOfFailure(id, 1)).toBe(limits.restart_backoff_ms);
  await fixture.advanceClock(limits.restart_backoff_ms);
  expect(await delayOfFailure(id, 2)).toBe(2 * limits.restart_backoff_ms);
  await fixture.advanceClock(2 * limits.restart_backoff_ms);
  expect(await delayOfFailure(id, 3, limits.restart_backoff_ms_max)).toBe(limits.restart_backoff_ms);
});

test('a restart that was scheduled while the clock was ahead waits no longer than the longest delay', async () => {
  const { id } = await fixture.create({ restart_policy: 'on_failure', start: true });
  const ahead_ms = 100 * limits.restart_backoff_ms_max;
  await fixture.advanceClock(ahead_ms);
  expect(await delayOfFailure(id, 1)).toBe(limits.restart_backoff_ms);
  await fixture.advanceClock(-ahead_ms);
  await capRestarts(fixture.core);
  const latest = fixture.clock.now() + limits.restart_backoff_ms_max;
  expect((await fixture.get(id)).restart_at).toBe(rfc3339(latest));
  expect(await capRestarts(fixture.core)).toBe(0);
  await fixture.advanceClock(limits.restart_backoff_ms_max);
  await fixture.until(id, 'running');
});

test('a member of a team gets no restart policy, and one from an earlier release has no effect', async () => {
  const { id, session_id } = await fixture.create({ start: true });
  const change = (values: object) =>
    fixture.store.write((tx) => tx.run(tx.sql.updateTable('agents').set(values).where('id', '=', id)));
  await change({ member_id: 'coder' });
  await expect(fixture.agents.update(ANA, id, { restart_policy: 'on_failure' })).rejects.toThrow(
    'restart_policy is not allowed for members of teams',
  );
  await change({ restart_policy: 'on_failure' });
  fixture.node.sendFact(session_id!, ended(1));
  await fixture.until(id, 'failed');
  const failed = { payload: { agent_id: id, session_id: session_id!, status: 'failed', message: null } };
  await fixture.store.write((tx) => restartFacts(fixture.core).session_ended!(tx, failed as never));
  expect(await timers()).toEqual([]);
  await fixture.store.write((tx) =>
    fixture.core.timers.set(tx, 'agent_restart', id, fixture.clock.now(), { session_id: session_id! }),
  );
  await vi.waitFor(async () => expect(await timers()).toEqual([]), SOON);
  expect(await fixture.get(id)).toMatchObject({ status: 'failed', session_count: 1 });
});

test('the restart after an end that an earlier release recorded is scheduled', async () => {
  const { id, session_id } = await fixture.create({ restart_policy: 'on_failure', start: true });
  fixture.node.sendFact(session_id!, ended(1));
  await fixture.until(id, 'failed');
  await fixture.store.write(async (tx) => {
    await fixture.core.timers.clear(tx, 'agent_restart', id);
    const failed = { agent_id: id, session_id: session_id!, status: 'failed' };
    await fixture.facts.record(tx, 'session_ended', session_id!, failed);
  });
  await vi.waitFor(async () => expect(await timers()).toHaveLength(1), SOON);
});

test('a stop cancels the scheduled restart, which the record shows', async () => {
  const { id, session_id } = await fixture.create({ restart_policy: 'on_failure', start: true });
  expect((await fixture.get(id)).restart_at).toBeNull();
  // In the transaction of the failure, because a stop may follow at once.
  const scheduled = new Promise<number | null>((resolve) => {
    const publish = fixture.core.records.publish.bind(fixture.core.records);
    vi.spyOn(fixture.core.records, 'publish').mockImplementation(async (tx, agent_id) => {
      await publish(tx, agent_id);
      const { status, restart_at } = await fixture.core.records.mustFind(tx, agent_id);
      if (status === 'failed') resolve(restart_at);
    });
  });
  fixture.node.sendFact(session_id!, ended(1));
  const due_at = await scheduled;
  expect(due_at).toBe(fixture.clock.now() + limits.restart_backoff_ms);
  await vi.waitFor(async () => expect((await fixture.get(id)).restart_at).toBe(rfc3339(due_at!)), SOON);
  const stopped = await fixture.agents.stop(ANA, id, 0);
  expect(stopped).toMatchObject({ status: 'failed', restart_at: null, session_count: 1 });
  expect(await timers()).toEqual([]);
  await expect(fixture.agents.stop(ANA, id, 0)).rejects.toThrow('agent is not running');
});

const timers = () =>
  fixture.store.read((reader) =>
    reader.all(reader.sql.selectFrom('timers').select('due_at').where('kind', '=', 'agent_restart')),
  );

/** Lets session `count` fail after `ran_ms`, and returns the time until the restart. */
async function delayOfFailure(agent_id: string, count: number, ran_ms = 1): Promise<number> {
  await vi.waitFor(
    async () =>
      expect(await fixture.get(agent_id)).toMatchObject({ status: 'running', session_count: count }),
    SOON,
  );
  const { session_id } = await fixture.get(agent_id);
  const failure = ended(1);
  if (failure.kind === 'ended') failure.end.ended_at_ms = 2 + ran_ms;
  fixture.node.sendFact(session_id!, failure);
  const due = await vi.waitFor(async () => {
    const [timer] = await timers();
    return timer!.due_at;
  }, SOON);
  return due - fixture.clock.now();
}
