import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ANA, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { ended } from '../../testing/scripted-node.ts';
import { limits } from './limits.ts';
import { restartFacts } from './restarts.ts';

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
