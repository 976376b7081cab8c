import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { scopes } from '../core/grant.ts';
import { decide, viewOf } from '../core/policy.ts';
import { type Caller, roles } from '../features/accounts/rules.ts';
import { listAgents } from '../features/agents/queries/agents.ts';
import { listTeams } from '../features/teams/queries.ts';
import { addTeam, addUser, joinTeam, specOf } from '../testing/team.ts';
import { on_postgres, openTestStore } from '../testing/test-store.ts';
import { agentResource, teamResource } from './resources.ts';
import type { Reader, Store } from './store.ts';
import { addAgent } from './testing.ts';
import { teamsInView } from './views.ts';

const users = ['ana', 'ben', 'eve'].map((username) => ({ id: `usr_${username}`, username }));
/** One agent per owner and team; one team has a human, one has none. */
const agents = users.flatMap(({ id: owner_id, username }) =>
  [null, 'one', 'two'].map((team) => ({ id: `agt_${username}_${team}`, owner_id, team })),
);

let folder: string;
let store: Store;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-views-'));
  store = await openTestStore(folder);
  for (const user of users) await addUser(store, user);
  const teams = {
    one: await addTeam(store, 'one', specOf(['dev']), { created_by: 'usr_ana', human_ids: ['usr_ben'] }),
    two: await addTeam(store, 'two', specOf(['dev']), { created_by: 'usr_ben' }),
  };
  for (const { id, owner_id, team } of agents) {
    await addAgent(store, id);
    await store.write((tx) => tx.run(tx.sql.updateTable('agents').set({ owner_id }).where('id', '=', id)));
    if (team !== null) await joinTeam(store, id, teams[team as keyof typeof teams], 'dev');
  }
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

const anyLimits = fc.record({
  agent_ids: fc.subarray(agents.map(({ id }) => id)),
  team_ids: fc.subarray(['team_one', 'team_two', 'team_none']),
});
const anyCaller: fc.Arbitrary<Caller> = fc
  .record({ user: fc.constantFrom(...users), role: fc.constantFrom(...roles), limits: fc.option(anyLimits) })
  .map(({ user, role, limits }) => ({
    ...{ user_id: user.id, username: user.username, role, token_id: 'tok_1', ip: null },
    grant: limits && { scopes, limits },
  }));

const everything = { user_id: null, limits: null };
const idsOf = (rows: { id: string }[]) => rows.map(({ id }) => id);

test('lists show exactly the agents and teams that the policy lets a caller read', async () => {
  const compare = async (reader: Reader, caller: Caller) => {
    const view = viewOf(caller);
    const agents_read: { id: string }[] = [];
    for (const row of await listAgents(reader, { view: everything })) {
      if (decide(caller, 'agent.read', await agentResource(reader, row)) === 'allow') agents_read.push(row);
    }
    const teams_read: { id: string; num: number }[] = [];
    for (const row of await listTeams(reader, { view: everything })) {
      if (decide(caller, 'team.read', await teamResource(reader, row)) === 'allow') teams_read.push(row);
    }
    expect(idsOf(await listAgents(reader, { view }))).toEqual(idsOf(agents_read));
    expect(idsOf(await listTeams(reader, { view }))).toEqual(idsOf(teams_read));
    const nums = (await reader.all(teamsInView(reader, view))).map(({ num }) => num);
    expect(nums.toSorted()).toEqual(teams_read.map(({ num }) => num).toSorted());
  };
  await fc.assert(
    fc.asyncProperty(anyCaller, (caller) => store.read((reader) => compare(reader, caller))),
    { numRuns: on_postgres ? 50 : 300 },
  );
});
