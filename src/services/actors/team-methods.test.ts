/** What actors of a team may ask for, and as whom: with a session's token, and with the shared secret. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import type { ActorMethod } from '../../contract/actor.ts';
import { mintToken, type TokenSettings } from '../../link/tokens.ts';
import { updateSession } from '../../store/agents.ts';
import { addAgent, addSession } from '../../store/testing.ts';
import { AccountsRoom } from '../../testing/accounts.ts';
import { FakeTeams } from '../../testing/actor-deps.ts';
import { addTeam, addUser, joinTeam, specOf, type TeamRows } from '../../testing/team.ts';
import type { MemberAnswerer } from '../acp/reviews.ts';
import { Actors } from './actors.ts';
import { SessionTokens } from './session-tokens.ts';
import { teamMethods } from './team-methods.ts';

const settings: TokenSettings = {
  shared_secret: 'a shared secret of more than 32 bytes',
  issuer: 'svc',
  audience: 'svc-internal',
};
const session_tokens = new SessionTokens(new Uint8Array(32).fill(7));

let room: AccountsRoom;
let teams: FakeTeams;
let actors: Actors;
let rows: TeamRows;
let sessions: Map<string, number>;
/** Who listed or answered reviews. */
let reviewers: unknown[];

beforeEach(async () => {
  room = await AccountsRoom.open();
  teams = new FakeTeams();
  reviewers = [];
  const heard = async (who: unknown) => {
    reviewers.push(who);
    return [] as never;
  };
  const reviews = {
    list: async (who: unknown) => ({ items: await heard(who) }),
    listFor: heard,
    respond: heard,
    respondAs: (who: MemberAnswerer) => heard(who),
  };
  const { store, clock } = room;
  const methods = teamMethods({ store, reviews, ...teams });
  const common = { store, clock, log: silentLog, session_tokens };
  actors = new Actors({ ...common, methods, settings: () => settings });

  await addUser(store, { id: 'usr_1', username: 'ana' });
  await addUser(store, { id: 'usr_2', username: 'ben' });
  await addUser(store, { id: 'usr_3', username: 'eve' });
  rows = await addTeam(store, 'x', specOf(['boss', 'hand', 'help']), { human_ids: ['usr_2'] });
  sessions = new Map();
  for (const member of ['boss', 'hand']) {
    sessions.set(member, await addSession(store, await addAgent(store, `agt_${member}`), `ses_${member}`));
    await joinTeam(store, `agt_${member}`, rows, member);
  }
});
afterEach(() => room.close());

/** By a session of the member's. */
const as = (member: string, method: ActorMethod, params: object = {}, node_id = 'main') =>
  actors.call({ method, params, token: session_tokens.of(`ses_${member}`), node_id });
/** By the holder of the shared secret. */
const holder = async (method: ActorMethod, params: object = {}) => {
  const token = await mintToken(settings, '', room.clock, { kind: 'actor' });
  return actors.call({ method, params, token, node_id: 'main' });
};
const forbidden = { kind: 'forbidden', message: 'not allowed' };

test('a session’s token stands for its member, in the run of its agent', async () => {
  expect(await as('boss', 'whoami')).toEqual({
    ...{ actor_id: 'boss@team_x', role: 'leader', team_id: 'team_x', run_id: 'run_x' },
    ...{ agent_id: 'agt_boss', session_id: 'ses_boss', node_id: 'main', user_id: 'usr_1' },
  });
  expect(await as('hand', 'whoami', { actor_id: 'hand' })).toMatchObject({
    ...{ actor_id: 'hand@team_x', role: 'worker' },
  });
});

test('a session acts as no other member and no human, in no other run, and from no other node', async () => {
  for (const actor_id of ['boss', 'boss@team_x', 'leader', 'user:ana', 'user', 'hand@team_y'])
    await expect(as('hand', 'inbox', { actor_id })).rejects.toMatchObject({
      kind: 'forbidden',
      message: `not allowed to act as ${actor_id}`,
    });
  await addTeam(room.store, 'y', specOf(['boss', 'hand']));
  for (const run_id of ['run_y', 'run_z'])
    await expect(as('boss', 'step-list', { run_id })).rejects.toThrow('run not found');
  await expect(as('hand', 'inbox', {}, 'n1')).rejects.toThrow('unauthorized');
});

test('another’s token file makes its holder that other, until that session ends', async () => {
  // Whoever can read the file of the leader's session is the leader.
  expect(await as('boss', 'step-add', { step_key: 'a', member_id: 'hand' })).toMatchObject({ step_key: 'a' });
  await room.store.write((tx) => updateSession(tx, sessions.get('boss')!, { state: 'ended' }));
  await expect(as('boss', 'step-add', { step_key: 'b', member_id: 'hand' })).rejects.toThrow('unauthorized');
  expect(teams.acts).toEqual(['boss@team_x adds a']);
});

test('a worker ends its own steps, and does nothing that only a leader may', async () => {
  for (const member_id of ['hand', 'help']) await as('boss', 'step-add', { step_key: member_id, member_id });
  const only_leaders: [ActorMethod, object][] = [
    ['step-add', { step_key: 'b', member_id: 'hand' }],
    ['step-complete', { step_key: 'help' }],
    ['step-fail', { step_key: 'help', error_text: 'no' }],
    ['run-complete', { output: 1 }],
    ['run-fail', { error_text: 'no' }],
  ];
  for (const [method, params] of only_leaders)
    await expect(as('hand', method, params)).rejects.toMatchObject(forbidden);
  expect(await as('hand', 'step-complete', { step_key: 'hand', output: { n: 1 } })).toMatchObject({
    ...{ status: 'completed', output: { n: 1 } },
  });
  for (const [method, params] of only_leaders) await as('boss', method, params);
  expect(teams.acts.slice(2)).toEqual([
    ...['hand@team_x completes hand', 'boss@team_x adds b', 'boss@team_x completes help'],
    ...['boss@team_x fails help', 'boss@team_x completes run_x', 'boss@team_x fails run_x'],
  ]);
  await expect(as('hand', 'step-complete', { step_key: 'no' })).rejects.toThrow('step not found');
  await expect(as('hand', 'step-fail', { step_key: 'hand' })).rejects.toThrow('error_text is required');
  const blank = as('hand', 'step-fail', { step_key: 'hand', error_text: ' ' });
  await expect(blank).rejects.toThrow('error_text is required');
});

test('mail goes from the caller to whom it names, and is acknowledged by its receiver alone', async () => {
  const sent = await as('hand', 'send', { to: 'leader', payload: { a: 1 } });
  expect(sent).toMatchObject({ from_actor_id: 'hand@team_x', to_actor_id: 'boss@team_x', payload: { a: 1 } });
  await as('hand', 'send', { to: 'user', payload: {} });
  expect(teams.mail[1]!.to_actor_id).toBe('user:ana');
  await expect(as('hand', 'send', { to: 'nobody', payload: {} })).rejects.toThrow('unknown actor: nobody');
  await expect(as('hand', 'send', { to: 'user:eve', payload: {} })).rejects.toThrow(
    'unknown actor: user:eve',
  );
  const wrong = as('hand', 'send', { to: 'boss', payload: [] });
  await expect(wrong).rejects.toThrow('payload must be an object');
  await expect(as('hand', 'ack', { message_id: 1 })).rejects.toThrow('message not found');
  expect(await as('boss', 'inbox')).toMatchObject({ messages: [{ id: 1 }] });
  await as('boss', 'ack', { message_id: 1 });
  expect(await as('boss', 'inbox')).toEqual({ messages: [] });
  expect(await as('boss', 'inbox', { status: 'all' })).toMatchObject({ messages: [{ id: 1 }] });
});

test('a send with a key is sent once', async () => {
  const send = () => as('hand', 'send', { to: 'boss', payload: {}, idempotency_key: 'k' });
  expect(await send()).toEqual(await send());
  expect(teams.mail).toHaveLength(1);
});

test('receive waits for mail', async () => {
  const received = as('boss', 'receive');
  await as('hand', 'send', { to: 'boss', payload: {} });
  expect(await received).toMatchObject({ messages: [{ id: 1 }] });
});

test('the team is its members and its humans', async () => {
  const { members } = (await as('hand', 'team-members')) as { members: { actor_id: string; role: string }[] };
  expect(members.map(({ actor_id, role }) => [actor_id, role])).toEqual([
    ...[
      ['boss@team_x', 'leader'],
      ['hand@team_x', 'worker'],
      ['help@team_x', 'worker'],
    ],
    ...[
      ['user:ana', 'human'],
      ['user:ben', 'human'],
    ],
  ]);
});

test('the shared secret’s holder names the actor; the run is the only open one, or has to be named', async () => {
  await expect(holder('inbox')).rejects.toThrow('actor_id is required');
  expect(await holder('send', { actor_id: 'help@team_x', to: 'boss', payload: {} })).toMatchObject({
    ...{ from_actor_id: 'help@team_x', run_num: rows.run_num },
  });
  await holder('send', { actor_id: 'user:ben', to: 'boss', payload: {} });
  await addTeam(room.store, 'y', specOf(['boss', 'hand']));
  const which = holder('send', { actor_id: 'user:ana', to: 'boss', payload: {} });
  await expect(which).rejects.toThrow('run_id is required: open runs are run_x, run_y');
  const nowhere = holder('send', { actor_id: 'user:eve', to: 'boss', payload: {} });
  await expect(nowhere).rejects.toThrow('run_id is required: no run is open');
  const named = { to: 'leader', payload: {}, run_id: 'run_y' };
  expect(await holder('send', { actor_id: 'user:ana', ...named })).toMatchObject({
    ...{ to_actor_id: 'boss@team_y' },
  });
  const strange = holder('send', { actor_id: 'user:eve', ...named });
  await expect(strange).rejects.toThrow('unknown actor: user:eve');
  const other = holder('send', { actor_id: 'boss@team_x', ...named });
  await expect(other).rejects.toThrow('unknown actor: boss@team_x');
  // As a member it may do what the member may.
  const added = { run_id: 'run_x', step_key: 's', member_id: 'hand' };
  await expect(holder('step-add', { actor_id: 'help', ...added })).rejects.toMatchObject(forbidden);
  await holder('step-add', { actor_id: 'leader', ...added });
  await holder('step-complete', { actor_id: 'user:ben', run_id: 'run_x', step_key: 's' });
  expect(teams.acts).toEqual(['boss@team_x adds s', 'user:ben completes s']);
});

test('the shared secret’s holder who calls from a session, and names nobody, is its member in its run', async () => {
  const claims = { session_id: 'ses_hand' };
  const token = await mintToken(settings, '', room.clock, { kind: 'actor', claims });
  const whoami = await actors.call({ method: 'whoami', params: {}, token, node_id: 'main' });
  expect(whoami).toMatchObject({ actor_id: 'hand@team_x', run_id: 'run_x', role: 'worker' });
});

test('a list of steps leaves out what may be large; one step is shown whole', async () => {
  await as('boss', 'step-add', { step_key: 'a', member_id: 'hand', prompt: 'do', input: { n: 1 } });
  const { steps } = (await as('hand', 'step-list')) as { steps: object[] };
  expect(steps).toMatchObject([{ step_key: 'a', member_id: 'hand', status: 'ready' }]);
  expect(steps[0]).not.toHaveProperty('prompt');
  expect(await as('hand', 'step-list', { step_key: 'a' })).toMatchObject({
    steps: [{ prompt: 'do', input: { n: 1 } }],
  });
  await expect(as('hand', 'step-list', { step_key: 'b' })).rejects.toThrow('step not found');
});

test('triggers are the caller’s own', async () => {
  expect(await as('hand', 'time-trigger-set', { every_seconds: 60, payload: {} })).toMatchObject({
    ...{ id: 'trg_1', actor_id: 'hand@team_x' },
  });
  expect(await as('boss', 'time-trigger-list')).toEqual({ triggers: [] });
  await expect(as('boss', 'time-trigger-cancel', { trigger_id: 'trg_1' })).rejects.toThrow('not found');
  await as('hand', 'time-trigger-cancel', { trigger_id: 'trg_1' });
  expect(await as('hand', 'time-trigger-list')).toEqual({ triggers: [] });
});

test('reviews are listed and answered as the member or the human that calls', async () => {
  const review_id = 'rev_1';
  await as('boss', 'permission-review-list');
  await as('boss', 'permission-review-respond', { review_id, decision: 'allow' });
  await holder('permission-review-respond', { actor_id: 'user:ben', review_id, outcome: 'cancelled' });
  const boss = { actor_id: 'boss@team_x', member_id: 'boss', ...rows };
  const ben = { user_id: 'usr_2', username: 'ben', role: 'user', token_id: '', grant: null, ip: null };
  expect(reviewers).toEqual([boss, boss, ben]);
  const both = { review_id, decision: 'allow', outcome: 'cancelled' };
  const refused = as('boss', 'permission-review-respond', both);
  await expect(refused).rejects.toThrow('must be one of decision, option_id and outcome');
});

test('an operator with the shared secret answers reviews as the first root user without naming an actor', async () => {
  const review_id = 'rev_1';
  const respond = (token: string, more: object = {}) =>
    actors.call({
      ...{ method: 'permission-review-respond', params: { review_id, decision: 'allow', ...more } },
      ...{ token, node_id: 'main', ip: '192.0.2.7' },
    });
  const mint = (claims: { session_id?: string } = {}) =>
    mintToken(settings, '', room.clock, { kind: 'actor', claims });
  await expect(respond(await mint())).rejects.toThrow('actor_id is required');

  await room.store.write((tx) =>
    tx.run(tx.sql.updateTable('users').set({ role: 'root' }).where('id', 'in', ['usr_2', 'usr_3'])),
  );
  await respond(await mint());
  await respond(await mint(), { actor_id: 'user:ana' });
  await holder('permission-review-list');
  const ben = { user_id: 'usr_2', username: 'ben', role: 'root', token_id: '', grant: null, ip: '192.0.2.7' };
  expect(reviewers).toEqual([
    ben,
    { ...ben, user_id: 'usr_1', username: 'ana', role: 'user' },
    { ...ben, ip: null },
  ]);
  // Only reviews: mail of everybody is not an operator's.
  await expect(holder('inbox')).rejects.toThrow('actor_id is required');
  // An agent of no team that knows the secret is no operator.
  await addSession(room.store, await addAgent(room.store, 'agt_a'), 'ses_a');
  await expect(respond(await mint({ session_id: 'ses_a' }))).rejects.toThrow('actor_id is required');
  await expect(respond(session_tokens.of('ses_a'))).rejects.toThrow('actor_id is required');
});

test('an agent of no team is nobody’s actor', async () => {
  await addSession(room.store, await addAgent(room.store, 'agt_a'), 'ses_a');
  await expect(as('a', 'inbox')).rejects.toThrow('actor_id is required');
  await expect(as('a', 'inbox', { actor_id: 'boss@team_x' })).rejects.toMatchObject({ kind: 'forbidden' });
});
