import { afterEach, beforeEach, expect, test } from 'vitest';
import { sleep } from '../../base/async.ts';
import type { Limits } from '../../core/grant.ts';
import { Feed } from '../../events/feed.ts';
import type { HttpServer } from '../../server/server.ts';
import { Streams } from '../../server/sse.ts';
import { AccountsFixture } from '../../testing/accounts.ts';
import { openFakeHttp, USER_TOKEN } from '../../testing/http.ts';
import { addTeam, addUser, specOf } from '../../testing/team.ts';
import type { Caller } from '../accounts/rules.ts';
import { Membership } from '../teams/membership.ts';
import { deleteTeam, putHumans } from '../teams/queries.ts';
import { streamHandlers } from './http.ts';

let fixture: AccountsFixture;
let server: HttpServer;
let membership: Membership;
let team_num: number;
let is_live: boolean;

/** `ada`, the token's user, is a human member of another user's team, whose agent she follows. */
beforeEach(async () => {
  fixture = await AccountsFixture.open();
  is_live = true;
  await addUser(fixture.store, { id: 'usr_1', username: 'ana' });
  await addUser(fixture.store, { id: 'usr_ada', username: 'ada' });
  ({ team_num } = await addTeam(fixture.store, 'x', specOf(['dev']), { human_ids: ['usr_ada'] }));
  membership = await Membership.open(fixture.store);
  const endless = async function* (_id: string, _position: unknown, signal: AbortSignal) {
    yield Buffer.from('retry: 1000\n\n');
    await sleep(60_000, signal).catch(() => {});
  };
  server = await openFakeHttp(
    streamHandlers({
      agents: { authorizeRead: async () => ({ owner_id: 'usr_1', team_num, agent_id: 'agt_x' }) },
      log: { follow: endless },
      feed: { follow: (_sees, position, signal) => endless('', position, signal) },
      membership,
      tokens: { isLive: async () => is_live },
      // Only a wake can end a stream in time.
      streams: new Streams(fixture.store.wakes, { recheck_ms: 600_000 }),
    }),
  );
});
afterEach(async () => {
  await server.drain();
  await fixture.close();
});

async function follow(path: string) {
  const response = await fetch(server.url + path, { headers: { authorization: `Bearer ${USER_TOKEN}` } });
  const reader = response.body!.getReader();
  const first = await reader.read();
  expect(Buffer.from(first.value!).toString()).toBe('retry: 1000\n\n');
  return reader;
}

test('ends the stream of a team’s agent as soon as the human leaves the team', async () => {
  const reader = await follow('/api/agents/agt_x/events');
  await fixture.store.write(async (tx) => {
    await tx.run(tx.sql.deleteFrom('team_humans').where('user_id', '=', 'usr_ada'));
    await membership.changed(tx, team_num);
  });
  expect(await reader.read()).toMatchObject({ done: true });
});

test.each(['/api/agents/agt_x/events', '/api/events'])(
  'ends the stream %s as soon as the token is revoked',
  async (path) => {
    const reader = await follow(path);
    is_live = false;
    await fixture.store.write((tx) => tx.wake('tokens', 'tok_ada'));
    expect(await reader.read()).toMatchObject({ done: true });
  },
);

test('only root sees what a team’s agent did once its owner has left the team or the team is deleted', async () => {
  const of_team = { owner_id: 'usr_ada', team_num, agent_id: 'agt_x' };
  const ada: Caller = {
    user_id: 'usr_ada',
    username: 'ada',
    role: 'user',
    token_id: 't',
    grant: null,
    ip: null,
  };
  const seen = () => [ada, { ...ada, role: 'root' as const }].map((who) => membership.sees(who, of_team));
  expect(seen()).toEqual([true, true]);
  await fixture.store.write(async (tx) => {
    await putHumans(tx, team_num, []);
    await membership.changed(tx, team_num);
  });
  expect(seen()).toEqual([false, true]);
  await fixture.store.write(async (tx) => {
    await deleteTeam(tx, team_num);
    await membership.changed(tx, team_num);
  });
  expect(seen()).toEqual([false, true]);
  expect(membership.sees(ada, { ...of_team, team_num: null })).toBe(true);
});

test('limits the fleet feed of a limited token to its agents and teams, live and stored', async () => {
  const feed = new Feed({ store: fixture.store, clock: fixture.clock });
  const { team_num: other_num } = await addTeam(fixture.store, 'y', specOf(['dev']), {
    created_by: 'usr_ana',
  });
  const open = await Membership.open(fixture.store);
  const change = (id: string, num: number | null, agent_id: string | null) =>
    fixture.store.write((tx) => feed.append(tx, 'change', 'usr_ana', { id }, num, agent_id));
  const follow = async (limits: Limits) => {
    const grant = { scopes: ['read'] as const, limits };
    const ana: Caller = { user_id: 'usr_ana', username: 'ana', role: 'root', token_id: 't', grant, ip: null };
    const stop = new AbortController();
    let text = '';
    for await (const bytes of feed.follow((entry) => open.sees(ana, entry), { after: 0 }, stop.signal)) {
      text += bytes.toString();
      if (text.includes('"last"')) stop.abort();
    }
    return [...text.matchAll(/"id":"(\w+)"/g)].map(([, id]) => id);
  };
  try {
    await change('mine', null, 'agt_1');
    await change('foreign', null, 'agt_2');
    await change('of_team', team_num, 'agt_3');
    await change('run', team_num, null);
    await change('of_other', other_num, 'agt_4');
    await change('node', null, null);
    const agent = follow({ agent_ids: ['agt_1', 'agt_9'], team_ids: [] });
    const team = follow({ agent_ids: ['agt_9'], team_ids: ['team_x'] });
    await change('foreign', null, 'agt_2');
    await change('live', null, 'agt_1');
    await change('live_run', team_num, null);
    await change('last', null, 'agt_9');
    expect(await agent).toEqual(['mine', 'live', 'last']);
    expect(await team).toEqual(['of_team', 'run', 'live_run', 'last']);
  } finally {
    feed.close();
  }
});

test('hides an agent from a token for its team once the team is deleted', async () => {
  const limits = { agent_ids: [], team_ids: ['team_x'] };
  const ada = { user_id: 'usr_ada', username: 'ada', role: 'user', token_id: 't', ip: null } as const;
  const caller: Caller = { ...ada, grant: { scopes: ['read'], limits } };
  const audience = { owner_id: 'usr_ada', team_num, agent_id: 'agt_x' };
  expect(membership.sees(caller, audience)).toBe(true);
  await fixture.store.write(async (tx) => {
    await tx.run(tx.sql.deleteFrom('teams').where('num', '=', team_num));
    await membership.changed(tx, team_num);
  });
  expect(membership.sees(caller, audience)).toBe(false);
});
