import { expect, test } from 'vitest';
import { agentRecord } from '../../../testing/agent-record.ts';
import { elicitationRecord } from '../../../testing/elicitation-record.ts';
import { reviewRecord } from '../../../testing/review-record.ts';
import { elicitationItem, listItems, reviewItem } from '../../waiting/queue.ts';
import {
  countStatuses,
  likelyStep,
  matchesFilter,
  runCommands,
  type StepRecord,
  shownStatus,
  sumCosts,
  toShownSteps,
  toTimedWaits,
  waitedFor,
} from './facts.ts';

const external = (member_id: string) => ({ member_id, agent: null });
const agent = (cost: { amount: number; currency: string } | null) => ({
  summary: { now: null, plan: null, diff: null, usage: { used: 1, size: 2, cost } },
});

test('the cost of a run is the sum of what its agents report, per currency', () => {
  const usd = (amount: number) => agent({ amount, currency: 'USD' });
  expect(sumCosts([usd(0.4), usd(0.02), agent({ amount: 1, currency: 'EUR' }), agent(null)])).toEqual([
    '$0.42',
    '€1.00',
  ]);
  expect(sumCosts([usd(0), agent(null)])).toEqual([]);
  expect(sumCosts([{ summary: { now: null, plan: null, diff: null, usage: null } }])).toEqual([]);
});

test('a run whose steps ask continues with their answers; one that waits without a question can be resumed', () => {
  const spec = { members: [], leader_member_id: null, steps: [{ step_key: 'a' }] };
  const run = { status: 'input_required', spec } as never;
  expect(runCommands(run, { questions: 1 })).toEqual(['cancel']);
  expect(runCommands(run, { questions: 0 })).toEqual(['resume', 'cancel']);
});

test('people end a run whose team has neither steps nor an agent that leads, also if they have added steps to it', () => {
  const spec = { members: [{ member_id: 'lead', agent: null }], leader_member_id: 'lead', steps: [] };
  const run = { status: 'running', spec } as never;
  expect(runCommands(run, { questions: 0 })).toEqual(['complete', 'fail', 'cancel']);
});

test('a step that asks needs the user, and one that runs does while its agent waits for an answer', () => {
  const step = (status: string, agent_id: string | null, step_key = 'a') =>
    ({ status, agent_id, step_key }) as StepRecord;
  const asked = { team_id: 't', team_name: 't', run_id: 'run_1', run_number: 1, step_key: 'title' };
  const [question] = listItems(
    {
      ...{ reviews: [], elicitations: [], runs: [], agents: [] },
      steps: [
        {
          ...asked,
          member_id: 'api',
          agent_id: null,
          attempt: 1,
          question: 'Which?',
          waiting_since: '2026-01-02',
        },
      ],
    },
    { id: 'usr_1', role: 'root' },
  );
  const waiting = [
    question!,
    reviewItem(reviewRecord({ agent_id: 'agt_1' })),
    elicitationItem(elicitationRecord({ agent_id: 'agt_2' })),
  ];
  const steps = toShownSteps(
    [
      step('running', 'agt_1'),
      step('running', 'agt_2'),
      step('running', 'agt_3'),
      step('running', null),
      step('completed', 'agt_1'),
      step('input_required', null, 'title'),
      step('input_required', null, 'other'),
    ],
    waiting,
    { members: [] } as never,
  );
  expect(steps.map(({ status }) => status)).toEqual([
    'needs_you',
    'needs_you',
    'running',
    'running',
    'completed',
    'needs_you',
    'input_required',
  ]);
  expect(countStatuses(steps)[0]).toEqual(['needs_you', 3]);
  expect(likelyStep(steps)).toBe(steps[0]);
});

test('a ready step of a member without an agent waits for that member', () => {
  const spec = {
    members: [{ member_id: 'dev', agent: {} }, ...['press', 'proof', 'ship', 'sell', 'bill'].map(external)],
  } as never;
  const shown = (...steps: [status: string, member_id: string][]) =>
    toShownSteps(
      steps.map(([status, member_id]) => ({ status, member_id, agent_id: null }) as never),
      [],
      spec,
    );
  const steps = shown(['ready', 'dev'], ['ready', 'press'], ['running', 'press'], ['pending', 'press']);
  expect(steps.map(({ waits_for }) => waits_for)).toEqual([null, 'press (external)', null, null]);
  expect(waitedFor(steps)).toBe('press (external)');
  expect(waitedFor(shown(['ready', 'press'], ['ready', 'proof'], ['ready', 'press']))).toBe(
    'press, proof (external)',
  );
  const all = ['press', 'proof', 'ship', 'sell', 'bill'];
  expect(waitedFor(shown(...all.map((member_id): [string, string] => ['ready', member_id])))).toBe(
    'press, proof, ship (external) and 2 more',
  );
  expect(waitedFor(shown(['ready', 'dev'], ['running', 'press']))).toBeNull();
});

test('the timeline shows requests of all kinds, and leaves the questions of steps to the steps', () => {
  const since = '2026-01-02T03:04:05.000Z';
  const signs_in = agentRecord({ id: 'agt_3', member_id: 'docs', sign_in_since: since });
  const of_step = {
    ...{ team_id: 't', team_name: 't', run_id: 'run_1', run_number: 1, step_key: 'a', member_id: 'api' },
    ...{ agent_id: 'agt_1', attempt: 1, question: 'Which?', waiting_since: since },
  };
  const items = listItems(
    {
      reviews: [reviewRecord({ origin_actor_id: 'api@team_1', status: 'answered', answered_at: since })],
      elicitations: [elicitationRecord({ origin_actor_id: 'ui@team_1' })],
      steps: [of_step],
      runs: [],
      agents: [signs_in],
    },
    { id: 'usr_1', role: 'root' },
  );
  const waits = toTimedWaits(items).map(({ member_id, open, settled_at }) => [member_id, open, settled_at]);
  expect(waits.sort()).toEqual([
    ['api', false, since],
    ['docs', true, null],
    ['ui', true, null],
  ]);
});

test('a run that needs the user has that filter instead of that of its status, but links keep working', () => {
  const waiting = new Set(['run_1', 'run_2']);
  const running = { id: 'run_1', status: 'running' } as const;
  const asks = { id: 'run_2', status: 'input_required' } as const;
  const other = { id: 'run_3', status: 'running' } as const;
  expect([running, asks, other].map((run) => shownStatus(run, waiting))).toEqual([
    'needs_you',
    'needs_you',
    'running',
  ]);
  const found = (filter?: string) =>
    [running, asks, other].filter((run) => matchesFilter(run, filter, waiting)).map(({ id }) => id);
  expect(found()).toEqual(['run_1', 'run_2', 'run_3']);
  expect(found('needs_you')).toEqual(['run_1', 'run_2']);
  expect(found('running')).toEqual(['run_3']);
  expect(found('input_required')).toEqual(['run_2']);
});
