import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { problems } from '../../core/problem.ts';
import type { Tx } from '../../store/store.ts';
import { deleteUser } from '../../store/users.ts';
import { ANA, BEN, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { ended } from '../../testing/scripted-node.ts';
import { beginRun, plainMember, runOf, untilRun } from '../../testing/team-runs.ts';
import { deleteTeam, putHumans } from '../teams/queries.ts';
import { limits } from './limits.ts';
import { findRun, type RunRow } from './queries/runs.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

const DAY = 86_400_000;
const names = async () => (await fixture.agents.list(ANA, {}, {})).items.map(({ name }) => name);
const sweep = () => fixture.runs.sweep!();

/** A run whose only step has completed. */
async function endedRun(started_by = ANA): Promise<string> {
  const known = new Set(fixture.node.launches.keys());
  const steps = [{ step_key: 'a' }];
  const run_id = await beginRun(fixture, { members: [plainMember('dev', 'true')], steps, started_by });
  await vi.waitFor(() => expect(fixture.node.launches.size).toBe(known.size + 1), SOON);
  const session_id = [...fixture.node.launches.keys()].find((id) => !known.has(id))!;
  fixture.node.sendFact(session_id, ended(0));
  await untilRun(fixture, run_id, 'completed');
  return run_id;
}

async function deleteRun(id: string, caller = ANA) {
  const { team_id } = await runOf(fixture, id);
  const options = { delete_worktrees: false, dry_run: false };
  return fixture.runs.deleter.delete(caller, { team_id, run_id: id }, options);
}

test('publishes the task without the deleted run', async () => {
  await fixture.end();
  const published: { task_num: number; run: RunRow | undefined }[] = [];
  let run_id = '';
  const publishTask = async (tx: Tx, task_num: number) => {
    const run = await findRun(tx, run_id);
    tx.afterCommit(() => void published.push({ task_num, run }));
  };
  fixture = await FeaturesFixture.make(null, null, () => ({ name: 'tasks', extensions: { publishTask } }));
  run_id = await endedRun();
  const { task_num } = await runOf(fixture, run_id);
  await deleteRun(run_id);
  expect(published).toEqual([{ task_num, run: undefined }]);
});

test('a run cannot continue or be deleted again while it is being deleted', async () => {
  const run_id = await endedRun();
  const { team_id } = await runOf(fixture, run_id);
  const { promise: held, resolve: go } = Promise.withResolvers<void>();
  const { deleteUnchecked } = fixture.agents;
  const deleting = vi.spyOn(fixture.agents, 'deleteUnchecked').mockImplementation(async (...args) => {
    await held;
    return deleteUnchecked.apply(fixture.agents, args);
  });
  const deleted = deleteRun(run_id);
  await vi.waitFor(() => expect(deleting).toHaveBeenCalled(), SOON);
  const command = (kind: 'resumeRun' | 'restartRun') =>
    fixture.runs.runs.commandRun(ANA, { team_id, run_id }, { kind }, null);
  await expect(command('restartRun')).rejects.toThrow('run is being deleted');
  await expect(command('resumeRun')).rejects.toThrow('run is being deleted');
  await expect(deleteRun(run_id)).rejects.toThrow('run is being deleted');
  go();
  expect((await deleted).agents).toHaveLength(1);
  await expect(runOf(fixture, run_id)).resolves.toBeUndefined();
});

test('a run whose creator was deleted, and its new agents, belong to the creator of the team', async () => {
  const steps = [{ step_key: 'a' }, { step_key: 'b', depends_on: ['a'] }];
  const run_id = await beginRun(fixture, { members: [plainMember('dev', 'true')], steps, started_by: BEN });
  const launched = async (count: number) => {
    await vi.waitFor(() => expect(fixture.node.launches.size).toBe(count), SOON);
    return [...fixture.node.launches.keys()].at(-1)!;
  };
  const first = await launched(1);
  await fixture.store.write((tx) => deleteUser(tx, BEN.user_id));
  fixture.node.sendFact(first, ended(0));
  const second = await launched(2);
  const { agent_id } = fixture.node.launches.get(second)!;
  expect((await fixture.get(agent_id)).owner_id).toBe(ANA.user_id);
  fixture.node.sendFact(second, ended(0));
  await untilRun(fixture, run_id, 'completed');
  expect((await deleteRun(run_id, { ...ANA, role: 'user' })).agents).toHaveLength(2);
});

test('a run can continue after a deletion that failed', async () => {
  const run_id = await endedRun();
  const { team_id } = await runOf(fixture, run_id);
  vi.spyOn(fixture.node, 'reach').mockRejectedValueOnce(problems.nodeUnreachable());
  await expect(deleteRun(run_id)).rejects.toMatchObject({ code: 'node_unreachable' });
  const restarted = await fixture.runs.runs.commandRun(
    ANA,
    { team_id, run_id },
    { kind: 'restartRun' },
    null,
  );
  expect(restarted.status).toBe('running');
  await expect(deleteRun(run_id)).rejects.toThrow('run has not ended');
});

test('deletes agents of runs 30 days after the run has ended, and no others', async () => {
  await fixture.create({ name: 'own' });
  await endedRun();
  fixture.clock.advance(29 * DAY);
  await endedRun();
  expect(await sweep()).toBe(0);
  expect(await names()).toHaveLength(3);
  fixture.clock.advance(2 * DAY);
  expect(await sweep()).toBe(1);
  expect(await names()).toHaveLength(2);
  expect(await sweep()).toBe(0);
  fixture.clock.advance(30 * DAY);
  expect(await sweep()).toBe(1);
  expect(await names()).toEqual(['own']);
});

test('keeps archived agents of runs', async () => {
  await endedRun();
  const { id } = (await fixture.agents.list(ANA, {}, {})).items[0]!;
  await fixture.agents.update(ANA, id, { archived: true });
  fixture.clock.advance(62 * DAY);
  expect(await sweep()).toBe(0);
  await fixture.agents.update(ANA, id, { archived: false });
  fixture.clock.advance(31 * DAY);
  expect(await sweep()).toBe(1);
});

test('people who have left a team do not see their agents in it, even once it is deleted', async () => {
  const { user_id } = BEN;
  const run_id = await endedRun(BEN);
  const { team_num } = (await fixture.store.read((reader) => findRun(reader, run_id)))!;
  const seen = async () => (await fixture.agents.list(BEN, {}, {})).items.map(({ id }) => id);
  const owners = () =>
    fixture.store.read((reader) => reader.all(reader.sql.selectFrom('agents').select('owner_id')));
  expect(await owners()).toEqual([{ owner_id: user_id }]);
  expect(await seen()).toHaveLength(1);
  await fixture.store.write((tx) => putHumans(tx, team_num, []));
  expect(await seen()).toEqual([]);
  await fixture.store.write((tx) => deleteTeam(tx, team_num));
  expect(await seen()).toEqual([]);
  expect(await owners()).toEqual([{ owner_id: ANA.user_id }]);
});

test('deletes agents 30 days after their team was deleted', async () => {
  const run_id = await endedRun();
  await fixture.store.write(async (tx) => deleteTeam(tx, (await findRun(tx, run_id))!.team_num));
  fixture.clock.advance(29 * DAY);
  expect(await sweep()).toBe(0);
  fixture.clock.advance(2 * DAY);
  expect(await sweep()).toBe(1);
  expect(await names()).toEqual([]);
});

test('deletes the agents of other runs if one cannot be deleted', async () => {
  await endedRun();
  await endedRun();
  fixture.clock.advance(31 * DAY);
  vi.spyOn(fixture.agents, 'deleteUnchecked').mockRejectedValueOnce(new TypeError('x is not a function'));
  expect(await sweep()).toBe(1);
  expect(await sweep()).toBe(1);
});

test('deletes an agent after as many as a sweep takes that cannot be deleted', async () => {
  for (let i = 0; i <= limits.expired_agents_per_sweep; i++) await fixture.create({ name: `agent ${i}` });
  // As after the deletion of their team.
  await fixture.store.write((tx) => tx.run(tx.sql.updateTable('agents').set({ member_id: 'dev' })));
  fixture.clock.advance(31 * DAY);
  const { deleteUnchecked } = fixture.agents;
  const deletable = (await fixture.agents.list(ANA, {}, {})).items.find(
    ({ name }) => name === `agent ${limits.expired_agents_per_sweep}`,
  )!;
  const deleting = vi.spyOn(fixture.agents, 'deleteUnchecked').mockImplementation(async (...args) => {
    if (args[0] !== deletable.id) throw new TypeError('x is not a function');
    return deleteUnchecked.apply(fixture.agents, args);
  });
  expect(await sweep()).toBe(0);
  expect(await sweep()).toBe(1);
  deleting.mockRestore();
  expect(await sweep()).toBe(limits.expired_agents_per_sweep);
});

test('keeps agents of runs while their node does not answer', async () => {
  await endedRun();
  fixture.clock.advance(31 * DAY);
  const { reach } = fixture.node;
  fixture.node.reach = () => Promise.reject(problems.nodeUnreachable());
  expect(await sweep()).toBe(0);
  fixture.node.reach = reach.bind(fixture.node);
  expect(await sweep()).toBe(1);
});
