import { expect, test } from 'vitest';
import { elicitationRecord } from '../../../testing/elicitation-record.ts';
import { reviewRecord } from '../../../testing/review-record.ts';
import { elicitationItem, reviewItem } from '../../waiting/queue.ts';
import { countStatuses, runCommands, type StepRecord, sumCosts, toShownSteps } from './facts.ts';

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
  const run = { status: 'input_required', spec: { members: [], leader_member_id: null } } as never;
  expect(runCommands(run, { steps: 2, questions: 1 })).toEqual(['cancel']);
  expect(runCommands(run, { steps: 2, questions: 0 })).toEqual(['resume', 'cancel']);
});

test('a step that runs needs the user while its agent waits for an answer', () => {
  const step = (status: string, agent_id: string | null) => ({ status, agent_id }) as StepRecord;
  const waiting = [
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
    ],
    waiting,
  );
  expect(steps.map(({ status }) => status)).toEqual([
    'needs_you',
    'needs_you',
    'running',
    'running',
    'completed',
  ]);
  expect(countStatuses(steps)[0]).toEqual(['needs_you', 2]);
});
