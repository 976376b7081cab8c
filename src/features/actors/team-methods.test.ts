/**
 * Methods for actors of a team, and the actor as which a call is made: with a session's token, and with the shared
 * secret.
 */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { mintToken, type TokenSettings } from '../../link/trust/tokens.ts';
import { addAgent, addSession } from '../../store/testing.ts';
import { AccountsRoom } from '../../testing/accounts.ts';
import { type ActorServices, actorServices, actsOf } from '../../testing/actor-services.ts';
import { addTeam, addUser, joinTeam, specOf, type TeamRows } from '../../testing/team.ts';
import { updateSession } from '../agents/queries/agents.ts';
import type { Trigger } from '../mailbox/rules/trigger.ts';
import type { MemberAnswerer } from '../reviews/service.ts';
import type { ActorMethod } from './contract.ts';
import { Actors } from './service.ts';
import { SessionTokens } from './session-tokens.ts';

const settings: TokenSettings = {
  shared_secret: 'a shared secret of more than 32 bytes',
  issuer: 'svc',
  audience: 'svc-internal',
};
const session_tokens = new SessionTokens(new Uint8Array(32).fill(7));

let room: AccountsRoom;
let services: ActorServices;
let actors: Actors;
let rows: TeamRows;
let sessions: Map<string, number>;
/** The actors that listed or answered reviews. */
let reviewers: unknown[];

beforeEach(async () => {
  room = await AccountsRoom.open();
  services = actorServices(room);
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
  const methods = services.methods(reviews);
  const common = { store, clock, log: silentLog, session_tokens };
  actors = new Actors({ ...common, settings: () => settings });
  actors.open(methods);

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
afterEach(async () => {
  await services.close();
  await room.close();
});

/** With the token of the member's session. */
const as = (member: string, method: ActorMethod, params: object = {}, node_id = 'main') =>
  actors.call({ method, params, token: session_tokens.of(`ses_${member}`), node_id });
/** With the shared secret. */
const holder = async (method: ActorMethod, params: object = {}) => {
  const token = await mintToken(settings, '', room.clock, { kind: 'actor' });
  return actors.call({ method, params, token, node_id: 'main' });
};
const forbidden = { kind: 'forbidden', message: 'not allowed' };

test('a session’s token acts as its member, in the run of its agent', async () => {
  expect(await as('boss', 'whoami')).toEqual({
    ...{ actor_id: 'boss@team_x', role: 'leader', team_id: 'team_x', run_id: 'run_x' },
    ...{ agent_id: 'agt_boss', session_id: 'ses_boss', node_id: 'main', user_id: 'usr_1' },
  });
  expect(await as('hand', 'whoami', { actor_id: 'hand' })).toMatchObject({
    ...{ actor_id: 'hand@team_x', role: 'worker' },
  });
});

test('a session cannot act as another member or person, in another run, or from another node', async () => {
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

test('the holder of another agent’s token file acts as that agent, until its session ends', async () => {
  // Anyone who can read the file of the leader's session acts as the leader.
  expect(await as('boss', 'step-add', { step_key: 'a', member_id: 'hand' })).toMatchObject({ step_key: 'a' });
  await room.store.write((tx) => updateSession(tx, sessions.get('boss')!, { state: 'ended' }));
  await expect(as('boss', 'step-add', { step_key: 'b', member_id: 'hand' })).rejects.toThrow('unauthorized');
  expect(await actsOf(room)).toEqual(['boss@team_x step_added a']);
});

test('a worker ends its own steps, and cannot do what only a leader may', async () => {
  for (const member_id of ['hand', 'help']) await as('boss', 'step-add', { step_key: member_id, member_id });
  await as('boss', 'step-add', { step_key: 'other', member_id: 'help' });
  const only_leaders: [ActorMethod, object][] = [
    ['step-add', { step_key: 'b', member_id: 'hand' }],
    ['step-complete', { step_key: 'help' }],
    ['step-fail', { step_key: 'other', error_text: 'no' }],
    ['run-complete', { output: 1 }],
  ];
  await expect(as('hand', 'run-fail', { error_text: 'no' })).rejects.toMatchObject(forbidden);
  for (const [method, params] of only_leaders)
    await expect(as('hand', method, params)).rejects.toMatchObject(forbidden);
  expect(await as('hand', 'step-complete', { step_key: 'hand', output: { n: 1 } })).toMatchObject({
    ...{ status: 'completed', output: { n: 1 } },
  });
  for (const [method, params] of only_leaders) await as('boss', method, params);
  await expect(as('boss', 'run-fail', { error_text: 'no' })).rejects.toThrow('run is completed');
  expect((await actsOf(room)).slice(3)).toEqual([
    ...['hand@team_x step_completed hand', 'boss@team_x step_added b', 'boss@team_x step_completed help'],
    ...['boss@team_x step_failed other', 'boss@team_x run_completed run_x'],
  ]);
  await expect(as('hand', 'step-complete', { step_key: 'no' })).rejects.toThrow('step not found');
  await expect(as('hand', 'step-fail', { step_key: 'hand' })).rejects.toThrow('error_text is required');
  const blank = as('hand', 'step-fail', { step_key: 'hand', error_text: ' ' });
  await expect(blank).rejects.toThrow('error_text is required');
});

test('mail goes from the caller to its receiver, who alone can acknowledge it', async () => {
  const sent = await as('hand', 'send', { to: 'leader', payload: { a: 1 } });
  expect(sent).toMatchObject({ from_actor_id: 'hand@team_x', to_actor_id: 'boss@team_x', payload: { a: 1 } });
  const to_user = await as('hand', 'send', { to: 'user', payload: {} });
  expect(to_user).toMatchObject({ to_actor_id: 'user:ana' });
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
  expect((await as('boss', 'inbox')) as object).toMatchObject({ messages: [{ payload: {} }] });
});

test('receive waits for mail', async () => {
  const received = as('boss', 'receive');
  await as('hand', 'send', { to: 'boss', payload: {} });
  expect(await received).toMatchObject({ messages: [{ id: 1 }] });
});

test('the team consists of its members and its human members', async () => {
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

test('a holder of the shared secret names the actor; the run is the only open one, or must be named', async () => {
  await expect(holder('inbox')).rejects.toThrow('actor_id is required');
  expect(await holder('send', { actor_id: 'help@team_x', to: 'boss', payload: {} })).toMatchObject({
    ...{ from_actor_id: 'help@team_x', run_id: 'run_x' },
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
  // As a member, it has the member's rights.
  const added = { run_id: 'run_x', step_key: 's', member_id: 'hand' };
  await expect(holder('step-add', { actor_id: 'help', ...added })).rejects.toMatchObject(forbidden);
  await holder('step-add', { actor_id: 'leader', ...added });
  await holder('step-complete', { actor_id: 'user:ben', run_id: 'run_x', step_key: 's' });
  expect(await actsOf(room)).toEqual(['boss@team_x step_added s', 'user:ben step_completed s']);
});

test('a holder of the shared secret who calls from a session and names no actor acts as the session’s member', async () => {
  const claims = { session_id: 'ses_hand' };
  const token = await mintToken(settings, '', room.clock, { kind: 'actor', claims });
  const whoami = await actors.call({ method: 'whoami', params: {}, token, node_id: 'main' });
  expect(whoami).toMatchObject({ actor_id: 'hand@team_x', run_id: 'run_x', role: 'worker' });
});

test('a list of steps omits large fields; one step is shown in full', async () => {
  await as('boss', 'step-add', { step_key: 'a', member_id: 'hand', prompt: 'do', input: { n: 1 } });
  const { steps } = (await as('hand', 'step-list')) as { steps: object[] };
  expect(steps).toMatchObject([{ step_key: 'a', member_id: 'hand', status: 'ready' }]);
  expect(steps[0]).not.toHaveProperty('prompt');
  expect(await as('hand', 'step-list', { step_key: 'a' })).toMatchObject({
    steps: [{ prompt: 'do', input: { n: 1 } }],
  });
  await expect(as('hand', 'step-list', { step_key: 'b' })).rejects.toThrow('step not found');
});

test('triggers belong to the caller', async () => {
  const trigger = (await as('hand', 'time-trigger-set', { every_seconds: 60, payload: {} })) as Trigger;
  expect(trigger).toMatchObject({ actor_id: 'hand@team_x', every_seconds: 60 });
  const { id: trigger_id } = trigger;
  expect(await as('boss', 'time-trigger-list')).toEqual({ triggers: [] });
  await expect(as('boss', 'time-trigger-cancel', { trigger_id })).rejects.toThrow('not found');
  await as('hand', 'time-trigger-cancel', { trigger_id });
  expect(await as('hand', 'time-trigger-list')).toEqual({ triggers: [] });
});

test('reviews are listed and answered as the calling member or person', async () => {
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
  // Only reviews: an operator cannot read everyone's mail.
  await expect(holder('inbox')).rejects.toThrow('actor_id is required');
  // An agent without a team that knows the secret is not an operator.
  await addSession(room.store, await addAgent(room.store, 'agt_a'), 'ses_a');
  await expect(respond(await mint({ session_id: 'ses_a' }))).rejects.toThrow('actor_id is required');
  await expect(respond(session_tokens.of('ses_a'))).rejects.toThrow('actor_id is required');
});

test('an agent without a team is not an actor', async () => {
  await addSession(room.store, await addAgent(room.store, 'agt_a'), 'ses_a');
  await expect(as('a', 'inbox')).rejects.toThrow('actor_id is required');
  await expect(as('a', 'inbox', { actor_id: 'boss@team_x' })).rejects.toMatchObject({ kind: 'forbidden' });
});
