/** Lists of agents: access, filters, pages, and the limit of a plain list. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { limits } from '../../base/limits.ts';
import { addAgent } from '../../store/testing.ts';
import { ANA, BEN, FeaturesFixture } from '../../testing/features-fixture.ts';
import { addTeam, addUser, joinTeam, specOf } from '../../testing/team.ts';
import { addRun, specWith } from '../../testing/team-runs.ts';
import type { AgentListFilter } from './service.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
  for (const { user_id: id, username } of [ANA, BEN]) await addUser(fixture.store, { id, username });
});
afterEach(() => fixture.end());

/** Adds an agent with these columns. */
async function agent(id: string, columns: Record<string, string> = {}): Promise<void> {
  const num = await addAgent(fixture.store, id);
  const owned = { owner_id: ANA.user_id, ...columns };
  await fixture.store.write((tx) => tx.run(tx.sql.updateTable('agents').set(owned).where('num', '=', num)));
}

const listed = async (filter: AgentListFilter, caller = ANA) =>
  (await fixture.agents.list(caller, filter, {})).items.map(({ id }) => id);

test('filters by labels, owner, repository and text; an agent must match all filters', async () => {
  await agent('agt_1', { labels: '{"env":"prod","tier":"a=b"}', worktree_repo: '/src/one' });
  await agent('agt_2', {
    labels: '{"env":"prod","it\'s":"1"}',
    command: 'npm run BUILD',
    owner_id: BEN.user_id,
  });
  await agent('agt_3', { labels: '{"env":"test"}', workdir: '/srv/100%_done' });

  expect(await listed({ label: ['env=prod'] })).toEqual(['agt_2', 'agt_1']);
  expect(await listed({ label: ['env=prod', 'tier=a=b'] })).toEqual(['agt_1']);
  expect(await listed({ label: ["it's=1"] })).toEqual(['agt_2']);
  expect(await listed({ label: ['env=pro'] })).toEqual([]);
  expect(await listed({ label: ['env='] })).toEqual([]);

  expect(await listed({ owner: BEN.username })).toEqual(['agt_2']);
  expect(await listed({ owner: BEN.user_id })).toEqual(['agt_2']);
  expect(await listed({ owner: 'nobody' })).toEqual([]);
  expect(await listed({ repo: '/src/one' })).toEqual(['agt_1']);

  expect(await listed({ q: 'build npm' })).toEqual(['agt_2']);
  expect(await listed({ q: '  ' })).toEqual(['agt_3', 'agt_2', 'agt_1']);
  expect(await listed({ q: '100%_D' })).toEqual(['agt_3']);
  expect(await listed({ q: '%' })).toEqual(['agt_3']);
  expect(await listed({ q: 'prod' })).toEqual(['agt_2', 'agt_1']);
  expect(await listed({ q: 'prod', label: ['env=prod'], owner: ANA.username })).toEqual(['agt_1']);
});

test('filters by whether agents are archived', async () => {
  await agent('agt_1');
  await agent('agt_2');
  const { archived_at } = await fixture.agents.update(ANA, 'agt_1', { archived: true });
  expect(archived_at).not.toBeNull();
  expect(await listed({ archived: true })).toEqual(['agt_1']);
  expect(await listed({ archived: false })).toEqual(['agt_2']);
  expect(await listed({})).toEqual(['agt_2', 'agt_1']);
  await fixture.agents.update(ANA, 'agt_1', { archived: false });
  expect(await listed({ archived: true })).toEqual([]);
});

test('filters by team id', async () => {
  const team = await addTeam(fixture.store, 'x', specOf(['hand']), { created_by: ANA.user_id });
  await agent('agt_1');
  await agent('agt_2');
  await joinTeam(fixture.store, 'agt_2', team, 'hand');
  expect(await listed({ team_id: 'team_x' })).toEqual(['agt_2']);
  expect(await listed({ team_id: 'team_y' })).toEqual([]);
});

test('filters by run id', async () => {
  const begin = async (agent_id: string) => {
    const { id, team_num, num: run_num } = await addRun(fixture.store, ANA, specWith({ hand: null }));
    await agent(agent_id);
    await joinTeam(fixture.store, agent_id, { team_num, run_num }, 'hand');
    return id;
  };
  await agent('agt_1');
  const run_id = await begin('agt_2');
  await begin('agt_3');
  expect(await listed({ run_id })).toEqual(['agt_2']);
  expect(await listed({ run_id: 'run_x' })).toEqual([]);
});

test('no filter reveals agents that the caller may not see', async () => {
  await agent('agt_1', { labels: '{"a":"b"}', worktree_repo: '/r' });
  const filters = [{ owner: ANA.username }, { label: ['a=b'] }, { repo: '/r' }, { q: 'agt_1' }];
  for (const filter of filters) {
    expect(await listed(filter)).toEqual(['agt_1']);
    expect(await listed(filter, BEN)).toEqual([]);
  }
});

test('a plain list has the newest agents and a cursor for the rest', async () => {
  const count = limits.plain_list_items_max + 2;
  await Promise.all(Array.from({ length: count }, (_, at) => addAgent(fixture.store, `agt_${at}`)));
  const plain = await fixture.agents.list(ANA, {}, {});
  expect(plain.items).toHaveLength(limits.plain_list_items_max);
  const rest = await fixture.agents.list(ANA, {}, { limit: 10, cursor: plain.next_cursor });
  expect(rest.items).toHaveLength(2);
  const ids = [...plain.items, ...rest.items].map(({ id }) => id);
  expect(new Set(ids).size).toBe(count);
  expect(rest.next_cursor).toBeUndefined();
});
