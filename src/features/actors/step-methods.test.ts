/** Commands of agents on steps and runs. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { mintToken } from '../../link/trust/tokens.ts';
import { type ActorsFixture, openActorsFixture, settings } from '../../testing/actors-fixture.ts';
import { insertAssignment } from '../runs/queries/assignments.ts';
import { findStep, updateStep } from '../runs/queries/steps.ts';
import type { AssignedWork } from '../runs/rules/graph.ts';

let opened: ActorsFixture;
let fixture: ActorsFixture['fixture'];
let as: ActorsFixture['as'];

beforeEach(async () => {
  opened = await openActorsFixture({} as never);
  ({ fixture, as } = opened);
});
afterEach(() => opened.close());

test('a leader adds steps, their members end them, and the run continues', async () => {
  expect(await as('boss', 'step-add', { step_key: 'a', member_id: 'hand', prompt: 'do' })).toMatchObject({
    ...{ run_id: 'run_x', status: 'ready', member_id: 'hand', prompt: 'do' },
  });
  await as('boss', 'step-add', { step_key: 'b', member_id: 'boss', depends_on: ['a', 'a'] });
  const again = as('boss', 'step-add', { step_key: 'a', member_id: 'hand' });
  await expect(again).rejects.toThrow('step already exists for run');
  await expect(as('boss', 'step-add', { step_key: '..', member_id: 'hand' })).rejects.toThrow('must not be');
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
  expect(await fixture.audited()).toEqual(['step_added', 'step_added', 'step_completed', 'step_completed']);
});

test('rejects calls of an agent of an earlier attempt of the run or step', async () => {
  await as('boss', 'step-add', { step_key: 'a', member_id: 'hand' });
  const give = (session_id: string, run_attempt: number, work: AssignedWork) => {
    const common = { run_num: 1, member_id: 'x', agent_id: 'agt_x', created_at: 0 };
    return fixture.store.write((tx) => insertAssignment(tx, { ...common, run_attempt, work, session_id }));
  };
  await give('ses_boss', 0, { kind: 'round', round: 1 });
  await give('ses_hand', 1, { kind: 'step', step_key: 'a', attempt: 1 });
  for (const [method, params] of [
    ['step-add', { step_key: 'b', member_id: 'hand' }],
    ['step-complete', { step_key: 'a' }],
    ['run-complete', {}],
    ['run-fail', { error_text: 'no' }],
  ] as const) {
    await expect(as('boss', method, params)).rejects.toThrow('attempt 0 of the run is over');
  }
  const tried = as('hand', 'step-complete', { step_key: 'a' });
  await expect(tried).rejects.toThrow('attempt 1 of the step is over');
  const put = (changes: Parameters<typeof updateStep>[2]) =>
    fixture.store.write(async (tx) => updateStep(tx, (await findStep(tx, 1, 'a'))!.num, changes));
  await put({ status: 'running', launched: 1, attempt: 2 });
  const late = as('hand', 'step-fail', { step_key: 'a', error_text: 'no' });
  await expect(late).rejects.toThrow('attempt 1 of the step is over');
  await put({ attempt: 1 });
  expect(await as('hand', 'step-complete', { step_key: 'a' })).toMatchObject({ status: 'completed' });
});

test('the audit log says that an operator acted, as whom and from where', async () => {
  await as('boss', 'step-add', { step_key: 'a', member_id: 'hand' });
  const { clock, audit } = fixture;
  for (const actor_id of ['user:ben', 'boss@team_x']) {
    const params = { actor_id, step_key: actor_id.slice(0, 4), member_id: 'hand', run_id: 'run_x' };
    const token = await mintToken(settings, '', clock, { kind: 'actor' });
    await opened.actors.call({ method: 'step-add', params, token, node_id: 'main', ip: '192.0.2.7' });
  }
  const { items } = await audit.list({ event: 'step_added' }, {});
  const by_operator = { authenticated_by: 'internal_grpc' };
  expect(items.map(({ user_id, ip, details }) => ({ user_id, ip, ...details })).toReversed()).toMatchObject([
    { user_id: null, ip: null, actor_id: 'boss@team_x' },
    { user_id: 'usr_2', ip: '192.0.2.7', actor_id: 'user:ben', ...by_operator },
    { user_id: null, ip: '192.0.2.7', actor_id: 'boss@team_x', ...by_operator },
  ]);
  expect(items.at(-1)!.details).not.toHaveProperty('authenticated_by');
});

test('a leader ends the run with its result', async () => {
  expect(await as('boss', 'run-complete', { output: 'done' })).toMatchObject({
    ...{ id: 'run_x', status: 'completed', output: 'done' },
  });
  const { members } = (await as('boss', 'run-members', { run_id: 'run_x' })) as { members: object[] };
  expect(members).toMatchObject([
    ...[{ role: 'leader', agent_id: 'agt_boss' }, { role: 'worker' }, { role: 'worker' }],
    ...[{ role: 'human' }, { role: 'human' }],
  ]);
});
