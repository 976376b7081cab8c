/** Agents of the main node, on a plane that runs no agents itself (`server.local_node = false`). */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { problems } from '../../core/problem.ts';
import { ANA, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { ended } from '../../testing/scripted-node.ts';
import { beginRun, plainMember } from '../../testing/team-runs.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
  fixture.registered = ['a', 'b'];
});
afterEach(() => fixture.end());

const refused = { kind: 'conflict', code: 'no_local_node', message: problems.noLocalNode().message };

test('are neither created nor started, with or without a node in the request', async () => {
  const agent = await fixture.create();
  fixture.is_local = false;
  await expect(fixture.create()).rejects.toMatchObject(refused);
  await expect(fixture.create({ node_id: undefined as never })).rejects.toMatchObject(refused);
  await expect(fixture.agents.start(ANA, agent.id, null)).rejects.toMatchObject(refused);
  await expect(fixture.agents.restart(ANA, agent.id, 0, null)).rejects.toMatchObject(refused);
  expect(await fixture.get(agent.id)).toMatchObject({ status: 'created', session_count: 0, pending: null });
  expect((await fixture.agents.list(ANA, {}, {})).items).toHaveLength(1);
});

test('are not started by a request that was kept before, which is given up', async () => {
  const agent = await fixture.create();
  const { node } = fixture;
  node.reach = () => Promise.reject(problems.nodeUnreachable());
  await expect(fixture.agents.start(ANA, agent.id, null)).rejects.toMatchObject({ pending: 'start' });
  fixture.is_local = false;
  node.reach = async () => {};
  await vi.waitFor(async () => expect((await fixture.get(agent.id)).pending).toBeNull(), SOON);
  expect(await fixture.get(agent.id)).toMatchObject({ status: 'created', session_count: 0 });
  expect(await fixture.errors(agent.id)).toEqual([refused.code]);
});

test('are not restarted automatically', async () => {
  const agent = await fixture.create({ restart_policy: 'on_failure', start: true });
  fixture.node.sendFact(agent.session_id!, ended(1));
  await fixture.until(agent.id, 'failed');
  const timers = () =>
    fixture.store.read((reader) => reader.all(reader.sql.selectFrom('timers').selectAll()));
  await vi.waitFor(async () => expect(await timers()).toHaveLength(1), SOON);
  fixture.is_local = false;
  await fixture.advanceClock(3_600_000);
  expect(await timers()).toEqual([]);
  expect(await fixture.get(agent.id)).toMatchObject({ status: 'failed', session_count: 1 });
});

test('are not created for a run', async () => {
  fixture.is_local = false;
  const members = [plainMember('m', 'true')];
  await expect(beginRun(fixture, { members, steps: [{ step_key: 's' }] })).rejects.toMatchObject(refused);
});

test('can be read and deleted when they have ended', async () => {
  const agent = await fixture.create({ start: true });
  fixture.node.sendFact(agent.session_id!, ended(0));
  await fixture.until(agent.id, 'completed');
  fixture.is_local = false;
  expect(await fixture.events(agent.id)).not.toEqual([]);
  await fixture.agents.delete(ANA, agent.id, { force: false, delete_worktree: false });
  expect((await fixture.agents.list(ANA, {}, {})).items).toEqual([]);
});
