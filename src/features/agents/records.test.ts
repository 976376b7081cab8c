/** Records of agents are computed once per commit, and checked for every caller. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { addAgent } from '../../store/testing.ts';
import { ANA, BEN, FeaturesFixture } from '../../testing/features-fixture.ts';
import { addUser } from '../../testing/team.ts';
import { limits } from './limits.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
  for (const { user_id: id, username } of [ANA, BEN]) await addUser(fixture.store, { id, username });
});
afterEach(() => fixture.end());

/** Changes columns of the agent `agt_1`. */
const change = (columns: Record<string, string | number>) =>
  fixture.store.write((tx) =>
    tx.run(tx.sql.updateTable('agents').set(columns).where('agents.id', '=', 'agt_1')),
  );

test('every read sees the last commit', async () => {
  await addAgent(fixture.store, 'agt_1');
  for (const name of ['a', 'b', 'c']) {
    await change({ name });
    for (let read = 0; read < 2; read++) expect((await fixture.agents.get(ANA, 'agt_1')).name).toBe(name);
  }
  await fixture.store.write((tx) => tx.run(tx.sql.deleteFrom('agents').where('agents.id', '=', 'agt_1')));
  await expect(fixture.agents.get(ANA, 'agt_1')).rejects.toThrow('agent not found');
});

test('a record that one caller has read is still hidden from others', async () => {
  await addAgent(fixture.store, 'agt_1');
  await fixture.agents.get(ANA, 'agt_1');
  await expect(fixture.agents.get(BEN, 'agt_1')).rejects.toThrow('agent not found');
  await change({ owner_id: BEN.user_id });
  await fixture.agents.get(BEN, 'agt_1');
  const without_scope = { ...BEN, grant: { scopes: ['operate' as const], limits: null } };
  await expect(fixture.agents.get(without_scope, 'agt_1')).rejects.toThrow('read');
});

test('the time of the last change never goes back, even if the clock does', async () => {
  const { clock } = fixture;
  const rename = async (name: string) => {
    const { updated_at } = await fixture.agents.update(ANA, 'agt_1', { name });
    return Date.parse(updated_at) - begun;
  };
  await addAgent(fixture.store, 'agt_1');
  const begun = clock.now();
  expect([await rename('a'), await rename('b')]).toEqual([0, 0]);
  clock.advance(-1_000);
  expect([await rename('c'), await rename('d')]).toEqual([1, 2]);
  clock.advance(2_000);
  expect(await rename('e')).toBe(1_000);
});

test('an agent becomes quiet without a commit', async () => {
  await addAgent(fixture.store, 'agt_1');
  await change({ status: 'running', started_at: fixture.clock.now() });
  const activity = async () => (await fixture.agents.get(ANA, 'agt_1')).activity;
  expect(await activity()).toBe('working');
  fixture.clock.advance(limits.quiet_after_ms + 1);
  expect(await activity()).toBe('quiet');
});
