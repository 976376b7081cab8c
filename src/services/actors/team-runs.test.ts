/** What agents say to steps and runs, by the real rules, on a real database. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import type { ActorMethod } from '../../contract/actor.ts';
import { Feed } from '../../events/feed.ts';
import { Facts } from '../../flow/facts.ts';
import { findStep, insertAttempt, updateStep } from '../../store/runs.ts';
import { addAgent, addSession } from '../../store/testing.ts';
import { AccountsRoom } from '../../testing/accounts.ts';
import { FakeTeams } from '../../testing/actor-deps.ts';
import { addTeam, addUser, joinTeam, specOf } from '../../testing/team.ts';
import { Progress } from '../teams/progress.ts';
import { Actors } from './actors.ts';
import { SessionTokens } from './session-tokens.ts';
import { teamMethods } from './team-methods.ts';
import { actorRuns } from './team-runs.ts';

const session_tokens = new SessionTokens(new Uint8Array(32).fill(7));

let room: AccountsRoom;
let feed: Feed;
let actors: Actors;

beforeEach(async () => {
  room = await AccountsRoom.open();
  const { store, clock, audit } = room;
  feed = new Feed({ store, clock });
  const facts = new Facts({ store, clock, log: silentLog });
  const progress = new Progress({ clock, feed, facts, execute: () => {} });
  const reviews = {} as never;
  const methods = teamMethods({ store, reviews, ...new FakeTeams(), runs: actorRuns({ progress, audit }) });
  const settings = () => ({ shared_secret: 'x', issuer: 'x', audience: 'x' });
  actors = new Actors({ store, clock, log: silentLog, session_tokens, methods, settings });
  await addUser(store, { id: 'usr_1', username: 'ana' });
  const rows = await addTeam(store, 'x', specOf(['boss', 'hand']));
  for (const member of ['boss', 'hand']) {
    await addSession(store, await addAgent(store, `agt_${member}`), `ses_${member}`);
    await joinTeam(store, `agt_${member}`, rows, member);
  }
});
afterEach(async () => {
  feed.close();
  await room.close();
});

const as = (member: string, method: ActorMethod, params: object = {}) =>
  actors.call({ method, params, token: session_tokens.of(`ses_${member}`), node_id: 'main' });

test('a leader adds steps, their members end them, and the run goes on by itself', async () => {
  expect(await as('boss', 'step-add', { step_key: 'a', member_id: 'hand', prompt: 'do' })).toMatchObject({
    ...{ run_id: 'run_x', status: 'ready', member_id: 'hand', prompt: 'do' },
  });
  await as('boss', 'step-add', { step_key: 'b', member_id: 'boss', depends_on: ['a'] });
  const again = as('boss', 'step-add', { step_key: 'a', member_id: 'hand' });
  await expect(again).rejects.toThrow('step already exists for run');
  await expect(as('boss', 'step-add', { step_key: 'c', member_id: 'no' })).rejects.toThrow('member_id must');
  await expect(as('boss', 'step-complete', { step_key: 'b' })).rejects.toThrow('step is pending');
  expect(await as('hand', 'step-complete', { step_key: 'a', output: { n: 1 } })).toMatchObject({
    ...{ status: 'completed', output: { n: 1 } },
  });
  await expect(as('hand', 'step-fail', { step_key: 'a', error_text: 'no' })).rejects.toThrow(
    'step is completed',
  );
  const { steps } = (await as('hand', 'step-list')) as { steps: object[] };
  expect(steps).toMatchObject([{ status: 'completed' }, { step_key: 'b', status: 'ready' }]);
  await as('boss', 'step-complete', { step_key: 'b' });
  await expect(as('boss', 'run-fail', { error_text: 'late' })).rejects.toThrow('run is completed');
  expect(await room.audited()).toEqual(['step_added', 'step_added', 'step_completed', 'step_completed']);
});

test('an agent of an earlier attempt, of the run or of the step, comes too late with what it says', async () => {
  await as('boss', 'step-add', { step_key: 'a', member_id: 'hand' });
  const given = (session_id: string, run_attempt: number, step_key: string, attempt: number) => {
    const whose = { run_num: 1, member_id: 'x', agent_id: 'agt_x', over: 0, created_at: 0 };
    const row = { ...whose, run_attempt, step_key, attempt, session_id };
    return room.store.write((tx) => insertAttempt(tx, row));
  };
  await given('ses_boss', 0, '', 1);
  await given('ses_hand', 1, 'a', 1);
  for (const [method, params] of [
    ['step-add', { step_key: 'b', member_id: 'hand' }],
    ['step-complete', { step_key: 'a' }],
    ['run-complete', {}],
    ['run-fail', { error_text: 'no' }],
    ['time-trigger-set', { every_seconds: 60, payload: {} }],
  ] as const) {
    await expect(as('boss', method, params)).rejects.toThrow('attempt 0 of the run is over');
  }
  const tried = as('hand', 'step-complete', { step_key: 'a' });
  await expect(tried).rejects.toThrow('attempt 1 of the step is over');
  const put = (changes: Parameters<typeof updateStep>[2]) =>
    room.store.write((tx) => updateStep(tx, findStep(tx, 1, 'a')!.num, changes));
  await put({ status: 'running', launched: 1, attempt: 2 });
  const late = as('hand', 'step-fail', { step_key: 'a', error_text: 'no' });
  await expect(late).rejects.toThrow('attempt 1 of the step is over');
  await put({ attempt: 1 });
  expect(await as('hand', 'step-complete', { step_key: 'a' })).toMatchObject({ status: 'completed' });
});

test('a leader ends the run with what came of it', async () => {
  expect(await as('boss', 'run-complete', { output: 'done' })).toMatchObject({
    ...{ id: 'run_x', status: 'completed', output: 'done' },
  });
  const { members } = (await as('boss', 'run-members', { run_id: 'run_x' })) as { members: object[] };
  expect(members).toMatchObject([
    ...[{ role: 'leader', agent_id: 'agt_boss' }, { role: 'worker' }, { role: 'human' }],
  ]);
});
