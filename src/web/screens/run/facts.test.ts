import { expect, test } from 'vitest';
import { runCommands, sumCosts } from './facts.ts';

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
