/**
 * Methods for actors of a team, and the actor as which a call is made: with a session's token, and with the shared
 * secret.
 */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { mintToken } from '../../link/trust/tokens.ts';
import { addAgent, addSession } from '../../store/testing.ts';
import {
  type ActorsFixture,
  actionsOf,
  openActorsFixture,
  session_tokens,
  settings,
} from '../../testing/actors-fixture.ts';
import { addTeam, specOf } from '../../testing/team.ts';
import { updateSession } from '../agents/queries/agents.ts';
import type { MemberAnswerer } from '../reviews/service.ts';
import { insertAssignment } from '../runs/queries/assignments.ts';
import type { ActorMethod } from './contract.ts';

let opened: ActorsFixture;
let fixture: ActorsFixture['fixture'];
let actors: ActorsFixture['actors'];
let as: ActorsFixture['as'];
let holder: ActorsFixture['withSharedSecret'];
/** The actors that listed or answered reviews. */
let reviewers: unknown[];

beforeEach(async () => {
  reviewers = [];
  const reviewsOf = async (who: unknown) => {
    reviewers.push(who);
    return [] as never;
  };
  opened = await openActorsFixture({
    list: async (who: unknown) => ({ items: await reviewsOf(who) }),
    listFor: reviewsOf,
    respond: reviewsOf,
    respondAs: (who: MemberAnswerer) => reviewsOf(who),
  });
  ({ fixture, actors, as, withSharedSecret: holder } = opened);
});
afterEach(() => opened.close());

/** Calls with a token that is signed with the shared secret and names the member's session and an actor. */
const fromSession = async (member: string, method: ActorMethod, params: object = {}, named = '') => {
  const claims = { session_id: `ses_${member}` };
  const token = await mintToken(settings, named, fixture.clock, { kind: 'actor', claims });
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
    await expect(as('hand', 'step-list', { actor_id })).rejects.toMatchObject({
      kind: 'forbidden',
      message: `not allowed to act as ${actor_id}`,
    });
  await addTeam(fixture.store, 'y', specOf(['boss', 'hand']));
  for (const run_id of ['run_y', 'run_z'])
    await expect(as('boss', 'step-list', { run_id })).rejects.toThrow('run not found');
  await expect(as('hand', 'step-list', {}, 'n1')).rejects.toThrow('unauthorized');
});

test('the holder of another agent’s token file acts as that agent, until its session ends', async () => {
  // Anyone who can read the file of the leader's session acts as the leader.
  expect(await as('boss', 'step-add', { step_key: 'a', member_id: 'hand' })).toMatchObject({ step_key: 'a' });
  await fixture.store.write((tx) => updateSession(tx, opened.sessions.get('boss')!, { state: 'ended' }));
  await expect(as('boss', 'step-add', { step_key: 'b', member_id: 'hand' })).rejects.toThrow('unauthorized');
  expect(await actionsOf(fixture)).toEqual(['boss@team_x step_added a']);
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
  expect((await actionsOf(fixture)).slice(3)).toEqual([
    ...['hand@team_x step_completed hand', 'boss@team_x step_added b', 'boss@team_x step_completed help'],
    ...['boss@team_x step_failed other', 'boss@team_x run_completed run_x'],
  ]);
  await expect(as('hand', 'step-complete', { step_key: 'no' })).rejects.toThrow('step not found');
  await expect(as('hand', 'step-fail', { step_key: 'hand' })).rejects.toThrow('error_text is required');
  const blank = as('hand', 'step-fail', { step_key: 'hand', error_text: ' ' });
  await expect(blank).rejects.toThrow('error_text is required');
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
  await expect(holder('step-list')).rejects.toThrow('actor_id is required');
  expect(await holder('step-list', { actor_id: 'help@team_x' })).toEqual({ steps: [] });
  expect(await holder('step-list', { actor_id: 'user:ben' })).toEqual({ steps: [] });
  await addTeam(fixture.store, 'y', specOf(['boss', 'hand']));
  const which = holder('step-list', { actor_id: 'user:ana' });
  await expect(which).rejects.toThrow('run_id is required: open runs are run_x, run_y');
  const nowhere = holder('step-list', { actor_id: 'user:eve' });
  await expect(nowhere).rejects.toThrow('run_id is required: no run is open');
  expect(await holder('step-list', { actor_id: 'user:ana', run_id: 'run_y' })).toEqual({ steps: [] });
  const outsider_call = holder('step-list', { actor_id: 'user:eve', run_id: 'run_y' });
  await expect(outsider_call).rejects.toThrow('unknown actor: user:eve');
  const other = holder('step-list', { actor_id: 'boss@team_x', run_id: 'run_y' });
  await expect(other).rejects.toThrow('unknown actor: boss@team_x');
  // As a member, it has the member's rights.
  const added = { run_id: 'run_x', step_key: 's', member_id: 'hand' };
  await expect(holder('step-add', { actor_id: 'help', ...added })).rejects.toMatchObject(forbidden);
  await holder('step-add', { actor_id: 'leader', ...added });
  await holder('step-complete', { actor_id: 'user:ben', run_id: 'run_x', step_key: 's' });
  expect(await actionsOf(fixture)).toEqual(['boss@team_x step_added s', 'user:ben step_completed s']);
});

test('a holder of the shared secret who calls from a session acts only as the session’s member', async () => {
  for (const named of ['', 'hand', 'hand@team_x'])
    expect(await fromSession('hand', 'whoami', {}, named)).toMatchObject({
      ...{ actor_id: 'hand@team_x', run_id: 'run_x', role: 'worker' },
    });
  await addTeam(fixture.store, 'y', specOf(['boss', 'hand']));
  await expect(fromSession('hand', 'step-list', { run_id: 'run_y' })).rejects.toThrow('run not found');
  const review = { review_id: 'rev_1', decision: 'allow' };
  for (const actor_id of ['user:ana', 'boss@team_x']) {
    const refusal = { kind: 'forbidden', message: `not allowed to act as ${actor_id}` };
    const answer = fromSession('hand', 'permission-review-respond', { actor_id, ...review });
    await expect(answer).rejects.toMatchObject(refusal);
    const named = fromSession('hand', 'permission-review-respond', review, actor_id);
    await expect(named).rejects.toMatchObject(refusal);
  }
  expect(reviewers).toEqual([]);
});

test('a holder of the shared secret who calls from a session of an earlier attempt changes nothing', async () => {
  await as('boss', 'step-add', { step_key: 'a', member_id: 'hand' });
  const given = { run_num: 1, member_id: 'x', agent_id: 'agt_x', created_at: 0 };
  await fixture.store.write(async (tx) => {
    const round = { kind: 'round', round: 1 } as const;
    await insertAssignment(tx, { ...given, run_attempt: 0, work: round, session_id: 'ses_boss' });
    const step = { kind: 'step', step_key: 'a', attempt: 1 } as const;
    await insertAssignment(tx, { ...given, run_attempt: 1, work: step, session_id: 'ses_hand' });
  });
  const of_run = fromSession('boss', 'run-complete');
  await expect(of_run).rejects.toMatchObject({ message: 'attempt 0 of the run is over' });
  const of_step = fromSession('hand', 'step-complete', { step_key: 'a' });
  await expect(of_step).rejects.toMatchObject({ message: 'attempt 1 of the step is over' });
  // An operator is in no attempt.
  const step = await holder('step-complete', { actor_id: 'hand@team_x', step_key: 'a' });
  expect(step).toMatchObject({ status: 'completed' });
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

test('reviews are listed and answered as the calling member or person', async () => {
  const review_id = 'rev_1';
  await as('boss', 'permission-review-list');
  await as('boss', 'permission-review-respond', { review_id, decision: 'allow' });
  await holder('permission-review-respond', { actor_id: 'user:ben', review_id, outcome: 'cancelled' });
  await holder('permission-review-respond', { actor_id: 'boss@team_x', review_id, outcome: 'cancelled' });
  const boss = { actor_id: 'boss@team_x', member_id: 'boss', ip: null, ...opened.rows };
  const ben = { user_id: 'usr_2', username: 'ben', role: 'user', token_id: '', grant: null, ip: null };
  expect(reviewers).toEqual([boss, boss, ben, { ...boss, run_num: null, operator: true }]);
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
    mintToken(settings, '', fixture.clock, { kind: 'actor', claims });
  await expect(respond(await mint())).rejects.toThrow('actor_id is required');

  await fixture.store.write((tx) =>
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
  // Only reviews: an operator has no other rights of actors.
  await expect(holder('step-list')).rejects.toThrow('actor_id is required');
  // An agent without a team that knows the secret is not an operator.
  await addSession(fixture.store, await addAgent(fixture.store, 'agt_a'), 'ses_a');
  await expect(respond(await mint({ session_id: 'ses_a' }))).rejects.toThrow('actor_id is required');
  await expect(respond(session_tokens.of('ses_a'))).rejects.toThrow('actor_id is required');
});

test('an agent without a team is not an actor', async () => {
  await addSession(fixture.store, await addAgent(fixture.store, 'agt_a'), 'ses_a');
  await expect(as('a', 'step-list')).rejects.toThrow('actor_id is required');
  await expect(as('a', 'step-list', { actor_id: 'boss@team_x' })).rejects.toMatchObject({
    kind: 'forbidden',
  });
});
