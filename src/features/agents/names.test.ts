/** Agents of the same name: how they are listed, and which of them a new agent may replace. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { problems } from '../../core/problem.ts';
import { ANA, BEN, LivesRoom } from '../../testing/lives.ts';
import { addTeam, joinTeam, specOf } from '../../testing/team.ts';
import type { CreateAgent } from './creation.ts';

let room: LivesRoom;
beforeEach(async () => {
  room = await LivesRoom.make();
});
afterEach(() => room.end());

const replace = (more: Partial<CreateAgent> = {}, key: string | null = null) =>
  room.create(more, key, ANA, { replace: true });
const ids = async () => (await room.agents.list(ANA, {}, {})).items.map(({ id }) => id);

test('lists other agents of the same name, but only those of the same owner', async () => {
  const first = await room.create();
  await room.create({ name: 'b' });
  const foreign = await room.create({}, null, BEN);
  const second = await room.create();
  expect(await room.agents.namesakes(second)).toEqual([first.id]);
  expect(await room.agents.namesakes(foreign)).toEqual([]);
});

test('a replacement deletes the owner’s agents of the same name and no others', async () => {
  const [ended, other, foreign] = [
    await room.create(),
    await room.create({ name: 'b' }),
    await room.create({}, null, BEN),
  ];
  await room.create();
  const created = await replace();
  expect(await ids()).toEqual([created.id, foreign.id, other.id]);
  expect(await room.agents.namesakes(created)).toEqual([]);
  await expect(room.get(ended.id)).rejects.toThrow('agent not found');
});

test('a replacement is rejected while an agent of the same name is running', async () => {
  const ended = await room.create();
  const running = await room.create({ start: true });
  await expect(replace()).rejects.toMatchObject({ kind: 'conflict', message: 'agent is running' });
  expect(await ids()).toEqual([running.id, ended.id]);
});

test('a replacement that fails deletes nothing', async () => {
  const before = await room.create();
  room.node.folders.resolve = async () => {
    throw problems.workdirMissing();
  };
  await expect(replace()).rejects.toThrow('workdir does not exist');
  expect(await ids()).toEqual([before.id]);
});

test('a replacement does not delete agents of a team’s run', async () => {
  const rows = await addTeam(room.store, 'x', specOf(['hand']), { created_by: ANA.user_id });
  const member = await room.create();
  await joinTeam(room.store, member.id, rows, 'hand');
  const created = await replace();
  expect(await ids()).toEqual([created.id, member.id]);
  expect(await room.agents.namesakes(created)).toEqual([member.id]);
});

test('a repeated replacement with the same key returns the first agent', async () => {
  const created = await replace({}, 'key');
  expect((await replace({}, 'key')).id).toBe(created.id);
  expect(await ids()).toEqual([created.id]);
});
