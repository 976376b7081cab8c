/** Marks of what a person has seen: monotonic, per person, and deleted with the agent and the user. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { addAgent } from '../../store/testing.ts';
import { ANA, BEN, FeaturesFixture } from '../../testing/features-fixture.ts';
import { addUser } from '../../testing/team.ts';
import { SeenMarks } from './seen.ts';

let fixture: FeaturesFixture;
let marks: SeenMarks;
let agent_num: number;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
  for (const { user_id: id, username } of [ANA, BEN]) await addUser(fixture.store, { id, username });
  agent_num = await addAgent(fixture.store, 'agt_1');
  await fixture.store.write(async (tx) => {
    const heads = { agent_num, last_seq: 7, first_seq: 1, bytes: 0 };
    await tx.run(
      tx.sql
        .insertInto('heads')
        .values(heads)
        .onConflict((conflict) => conflict.column('agent_num').doUpdateSet(heads)),
    );
    await tx.run(tx.sql.updateTable('agents').set({ owner_id: ANA.user_id }).where('num', '=', agent_num));
  });
  marks = new SeenMarks(fixture.core);
});
afterEach(() => fixture.end());

const list = (caller = ANA) => marks.list(caller, {}).then(({ items }) => items);

test('a mark never goes down, and never beyond the last event', async () => {
  expect(await list()).toEqual([]);
  expect(await marks.mark(ANA, 'agt_1', 5)).toEqual({ agent_id: 'agt_1', last_seen: 5 });
  expect(await marks.mark(ANA, 'agt_1', 3)).toEqual({ agent_id: 'agt_1', last_seen: 5 });
  expect(await marks.mark(ANA, 'agt_1', 99)).toEqual({ agent_id: 'agt_1', last_seen: 7 });
  expect(await list()).toEqual([{ agent_id: 'agt_1', last_seen: 7 }]);
});

test('people have their own marks, only on agents that they may read', async () => {
  await expect(marks.mark(BEN, 'agt_1', 5)).rejects.toThrow('agent not found');
  const root = { ...BEN, role: 'root' as const };
  await marks.mark(root, 'agt_1', 4);
  expect(await list()).toEqual([]);
  expect(await list(root)).toEqual([{ agent_id: 'agt_1', last_seen: 4 }]);
  // Without the role, the mark is kept but the agent is hidden.
  expect(await list(BEN)).toEqual([]);
});

test('pages have a cursor for the rest', async () => {
  await marks.mark(ANA, 'agt_1', 1);
  const second = await addAgent(fixture.store, 'agt_2');
  await fixture.store.write(async (tx) => {
    await tx.run(
      tx.sql.insertInto('agents_seen').values({ user_id: ANA.user_id, agent_num: second, last_seen: 2 }),
    );
    await tx.run(tx.sql.updateTable('agents').set({ owner_id: ANA.user_id }).where('num', '=', second));
  });
  const first = await marks.list(ANA, { limit: 1 });
  expect(first.items.map(({ agent_id }) => agent_id)).toEqual(['agt_1']);
  const rest = await marks.list(ANA, { limit: 1, cursor: first.next_cursor });
  expect(rest).toEqual({ items: [{ agent_id: 'agt_2', last_seen: 2 }] });
});

test('marks are deleted with the agent, and with the user', async () => {
  await marks.mark(ANA, 'agt_1', 5);
  await marks.mark({ ...BEN, role: 'root' as const }, 'agt_1', 5);
  const users = () =>
    fixture.store.read((reader) => reader.all(reader.sql.selectFrom('agents_seen').select('user_id')));
  await fixture.store.write((tx) => tx.run(tx.sql.deleteFrom('users').where('id', '=', BEN.user_id)));
  expect(await users()).toEqual([{ user_id: ANA.user_id }]);
  await fixture.store.write((tx) => tx.run(tx.sql.deleteFrom('agents').where('num', '=', agent_num)));
  expect(await users()).toEqual([]);
});
