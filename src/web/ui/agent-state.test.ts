import { expect, test } from 'vitest';
import { agentState, apiStatus, canStop, stopLabel } from './agent-state.ts';

type Fields = Parameters<typeof agentState>[0];
const of = (status: Fields['status'], more: Partial<Fields> = {}): Fields => ({
  ...{ status, activity: null, needs_you: null, run_id: null, stopped_by_run: null },
  ...more,
});

test.each<[Fields, string]>([
  [of('running', { activity: 'working', needs_you: 'permission' }), 'needs_you'],
  [of('running', { activity: 'needs_you', needs_you: 'sign_in' }), 'needs_you'],
  // The agent of a step that asked may have ended.
  [of('completed', { needs_you: 'question' }), 'needs_you'],
  [of('failed'), 'failed'],
  [of('running', { activity: 'needs_you' }), 'failed'],
  [of('running', { activity: 'idle' }), 'your_turn'],
  // Its run gives it its next step.
  [of('running', { activity: 'idle', run_id: 'run_1' }), 'waiting'],
  [of('running', { activity: 'idle', run_id: 'run_1', needs_you: 'question' }), 'needs_you'],
  [of('running', { activity: 'working' }), 'working'],
  [of('running'), 'working'],
  [of('running', { activity: 'quiet' }), 'quiet'],
  [of('running', { activity: 'starting' }), 'starting'],
  [of('created', { activity: 'starting' }), 'starting'],
  [of('created'), 'created'],
  [of('completed'), 'completed'],
  [of('cancelled'), 'cancelled'],
  [of('cancelled', { run_id: 'run_1' }), 'cancelled'],
  [of('cancelled', { run_id: 'run_1', stopped_by_run: 'completed' }), 'run_ended'],
  [of('cancelled', { run_id: 'run_1', stopped_by_run: 'failed', activity: 'starting' }), 'run_ended'],
  [of('failed', { run_id: 'run_1' }), 'failed'],
])('%j is shown as %s', (fields, state) => {
  expect(agentState(fields)).toBe(state);
});

test('the status in the API stays readable', () => {
  expect(apiStatus(of('running', { activity: 'needs_you' }))).toBe('running, needs you');
  expect(apiStatus(of('failed'))).toBe('failed');
});

test('a running agent can be stopped, and so can the restart of a failed one', () => {
  const restart_at = '2026-01-02T03:04:05.000Z';
  expect(canStop({ status: 'running', restart_at: null })).toBe(true);
  expect(stopLabel({ status: 'running' })).toBe('Stop agent');
  expect(canStop({ status: 'failed', restart_at })).toBe(true);
  expect(stopLabel({ status: 'failed' })).toBe('Cancel restart');
  expect(canStop({ status: 'failed', restart_at: null })).toBe(false);
  // A record of an earlier version.
  expect(canStop({ status: 'completed' } as Parameters<typeof canStop>[0])).toBe(false);
});
