import { afterEach, beforeEach, expect, test } from 'vitest';
import { sleep } from '../base/async.ts';
import { Membership } from '../services/teams/membership.ts';
import { AccountsRoom } from '../testing/accounts.ts';
import { openFakeHttp, USER_TOKEN } from '../testing/http.ts';
import { addTeam, addUser, specOf } from '../testing/team.ts';
import type { HttpServer } from './server.ts';
import { Streams } from './sse.ts';
import { streamHandlers } from './streams.ts';

let room: AccountsRoom;
let server: HttpServer;
let membership: Membership;
let team_num: number;

/** `ada`, whom the token is of, is a human of another's team, whose agent she follows. */
beforeEach(async () => {
  room = await AccountsRoom.open();
  await addUser(room.store, { id: 'usr_1', username: 'ana' });
  await addUser(room.store, { id: 'usr_ada', username: 'ada' });
  ({ team_num } = await addTeam(room.store, 'x', specOf(['dev']), { human_ids: ['usr_ada'] }));
  membership = await Membership.open(room.store);
  const endless = async function* (_id: string, _position: unknown, signal: AbortSignal) {
    yield Buffer.from('retry: 1000\n\n');
    await sleep(60_000, signal).catch(() => {});
  };
  server = await openFakeHttp(
    streamHandlers({
      agents: { mayRead: async () => ({ owner_id: 'usr_1', team_num, agent_id: 'agt_x' }) },
      log: { follow: endless },
      feed: { follow: (_sees, position, signal) => endless('', position, signal) },
      membership,
      tokens: { isLive: async () => true },
      streams: new Streams({ recheck_ms: 20 }),
    }),
  );
});
afterEach(async () => {
  await server.drain();
  await room.close();
});

test('the stream of a team’s agent ends for a human who is taken off the team', async () => {
  const response = await fetch(`${server.url}/api/agents/agt_x/events`, {
    headers: { authorization: `Bearer ${USER_TOKEN}` },
  });
  const reader = response.body!.getReader();
  const first = await reader.read();
  expect(Buffer.from(first.value!).toString()).toBe('retry: 1000\n\n');
  await room.store.write((tx) => {
    tx.run(tx.sql.deleteFrom('team_humans').where('user_id', '=', 'usr_ada'));
    membership.changed(tx, team_num);
  });
  expect(await reader.read()).toMatchObject({ done: true });
});
