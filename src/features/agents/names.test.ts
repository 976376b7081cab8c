/** Agents of the same name: how they are listed, and which of them a new agent may replace. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { problems } from '../../core/problem.ts';
import { ANA, BEN, FeaturesFixture } from '../../testing/features-fixture.ts';
import { addTeam, joinTeam, specOf } from '../../testing/team.ts';
import type { CreateAgent } from './creation.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

const replace = (more: Partial<CreateAgent> = {}, key: string | null = null) =>
  fixture.create(more, key, ANA, { replace: true });
const ids = async () => (await fixture.agents.list(ANA, {}, {})).items.map(({ id }) => id);

test('lists other agents of the same name, but only those of the same owner', async () => {
  const first = await fixture.create();
  await fixture.create({ name: 'b' });
  const foreign = await fixture.create({}, null, BEN);
  const second = await fixture.create();
  expect(await fixture.agents.namesakes(ANA, second, 10)).toEqual({ ids: [first.id], count: 1 });
  expect(await fixture.agents.namesakes(BEN, foreign, 10)).toEqual({ ids: [], count: 0 });
  const third = await fixture.create();
  expect(await fixture.agents.namesakes(ANA, third, 1)).toEqual({ ids: [second.id], count: 2 });
});

test('does not report agents in a team that their owner has left', async () => {
  const rows = await addTeam(fixture.store, 'x', specOf(['hand']), { created_by: ANA.user_id });
  const hidden = await fixture.create({}, null, BEN);
  await joinTeam(fixture.store, hidden.id, rows, 'hand');
  const created = await fixture.create({}, null, BEN);
  expect(await fixture.agents.namesakes(BEN, created, 10)).toEqual({ ids: [], count: 0 });
});

test('a replacement deletes the owner’s agents of the same name and no others', async () => {
  const [ended, other, foreign] = [
    await fixture.create(),
    await fixture.create({ name: 'b' }),
    await fixture.create({}, null, BEN),
  ];
  await fixture.create();
  const created = await replace();
  expect(await ids()).toEqual([created.id, foreign.id, other.id]);
  expect(await fixture.agents.namesakes(ANA, created, 10)).toEqual({ ids: [], count: 0 });
  await expect(fixture.get(ended.id)).rejects.toThrow('agent not found');
});

test('a replacement is rejected while an agent of the same name is running', async () => {
  const ended = await fixture.create();
  const running = await fixture.create({ start: true });
  await expect(replace()).rejects.toMatchObject({ kind: 'conflict', message: 'agent is running' });
  expect(await ids()).toEqual([running.id, ended.id]);
});

test('a replacement that fails deletes nothing', async () => {
  const before = await fixture.create();
  fixture.node.folders.resolve = async () => {
    throw problems.workdirMissing();
  };
  await expect(replace()).rejects.toThrow('workdir does not exist');
  expect(await ids()).toEqual([before.id]);
});

test('a replacement does not delete agents of a team’s run', async () => {
  const rows = await addTeam(fixture.store, 'x', specOf(['hand']), { created_by: ANA.user_id });
  const member = await fixture.create();
  await joinTeam(fixture.store, member.id, rows, 'hand');
  const created = await replace();
  expect(await ids()).toEqual([created.id, member.id]);
  expect(await fixture.agents.namesakes(ANA, created, 10)).toEqual({ ids: [member.id], count: 1 });
});

test('a repeated replacement with the same key returns the first agent', async () => {
  const created = await replace({}, 'key');
  expect((await replace({}, 'key')).id).toBe(created.id);
  expect(await ids()).toEqual([created.id]);
});
