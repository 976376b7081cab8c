/** The rules of the state machine, one by one. `advance.property.test.ts` checks that no order of events breaks them. */
import { describe, expect, test } from 'vitest';
import { MemoryGraph, type RunShape, type StepShape } from '../../../testing/memory-graph.ts';
import { advance } from './advance.ts';
import { type GraphEvent, IllegalTransition } from './graph.ts';

const plain = { member_id: 'p', kind: 'plain' } as const;
const acp = { member_id: 'a', kind: 'acp' } as const;
const outside = { member_id: 'o', kind: 'outside' } as const;

function step(step_key: string, more: Partial<StepShape> = {}): StepShape {
  return { step_key, ...plain, depends_on: [], when: 'on_success', max_attempts: 1, ...more };
}

function begun(steps: StepShape[], more: Partial<RunShape> = {}) {
  const mode = steps.length > 0 ? 'steps' : 'leader';
  const graph = new MemoryGraph({ mode, max_rounds: 2, leader_member_id: 'a', steps, ...more });
  const happen = (event: GraphEvent) =>
    advance(graph, event, 2).map((effect) =>
      'step_key' in effect
        ? `${effect.kind} ${effect.step_key} ${effect.attempt}`
        : `${effect.kind} ${'round' in effect ? effect.round : effect.status}`,
    );
  const completed = (step_key: string, attempt = 1) => happen({ kind: 'step_completed', step_key, attempt });
  const failed = (step_key: string, attempt = 1) =>
    happen({ kind: 'step_failed', step_key, attempt, error_text: 'bad' });
  return { graph, happen, completed, failed, first: happen({ kind: 'begun' }) };
}

describe('a step', () => {
  test('runs in parallel with others up to the limit if its member is plain, and waits for its turn if it is ACP', () => {
    const run = begun([step('x'), step('y'), step('z'), step('1', acp), step('2', acp)]);
    expect(run.first).toEqual(['launch x 1', 'launch y 1', 'launch 1 1']);
    expect(run.completed('x')).toEqual(['launch z 1']);
    expect(run.completed('1')).toEqual(['launch 2 1']);
  });

  test('is retried up to max_attempts, unless its failure is final', () => {
    const run = begun([step('x', { max_attempts: 2 }), step('y', { max_attempts: 2 })]);
    expect(run.failed('x')).toEqual(['launch x 2']);
    run.happen({ kind: 'step_failed', step_key: 'y', attempt: 1, error_text: 'bad', final: true });
    expect(run.failed('x', 2)).toEqual(['run_ended failed']);
    expect(run.graph.run().error).toBe('step x failed: bad');
  });

  test('requires input if its outcome is unknown, and resuming it starts a new attempt', () => {
    const run = begun([step('x')]);
    run.happen({ kind: 'step_unknown', step_key: 'x', attempt: 1, reason: 'outcome unknown' });
    expect(run.graph.run().status).toBe('input_required');
    const resumed = run.happen({ kind: 'step_command', step_key: 'x', command: { kind: 'resumeStep' } });
    expect(resumed).toEqual(['launch x 2']);
    expect(run.completed('x')).toEqual([]);
    expect(run.completed('x', 2)).toEqual(['run_ended completed']);
  });

  test('is started by a command if its member is outside, and keeps its attempt when it is resumed', () => {
    const run = begun([step('x', outside)]);
    for (const kind of ['startStep', 'resumeStep'] as const) {
      if (kind === 'resumeStep')
        run.happen({
          kind: 'step_command',
          step_key: 'x',
          command: { kind: 'requireStepInput', reason: '?' },
        });
      run.happen({ kind: 'step_command', step_key: 'x', command: { kind } });
      expect(run.graph.step('x')).toMatchObject({ status: 'running', attempt: 1, launched: true });
    }
  });

  test('starts a new attempt if the run is resumed while it requires input', () => {
    const run = begun([step('x', acp)]);
    run.happen({ kind: 'step_command', step_key: 'x', command: { kind: 'requireStepInput', reason: '?' } });
    const resumed = run.happen({ kind: 'run_command', command: { kind: 'resumeRun' } });
    expect(resumed).toEqual(['end_attempt x 1', 'launch x 2']);
  });
});

describe('a leader', () => {
  test('gets a new round until it adds no more steps', () => {
    const run = begun([]);
    expect(run.first).toEqual(['start_round 1']);
    run.happen({ kind: 'step_added', step: step('x') });
    expect(run.happen({ kind: 'round_ended', round: 1 })).toEqual([]);
    expect(run.completed('x')).toEqual(['start_round 2']);
    expect(run.happen({ kind: 'round_ended', round: 1 })).toEqual([]);
    expect(run.happen({ kind: 'round_ended', round: 2 })).toEqual(['run_ended completed']);
  });

  test('requires input once it has used all its rounds, and gets more when the run is resumed', () => {
    const run = begun([], { max_rounds: 1 });
    run.happen({ kind: 'step_added', step: step('x') });
    run.completed('x');
    run.happen({ kind: 'round_ended', round: 1 });
    expect(run.graph.run()).toMatchObject({
      status: 'input_required',
      error: 'the leader has used its 1 rounds',
    });
    expect(run.happen({ kind: 'run_command', command: { kind: 'resumeRun' } })).toEqual(['start_round 2']);
  });
});

describe('a run', () => {
  test('can only be resumed or restarted after its end, and only restarted if it is completed', () => {
    const run = begun([step('x')]);
    expect(run.completed('x')).toEqual(['run_ended completed']);
    for (const kind of ['cancelRun', 'completeRun', 'resumeRun'] as const)
      expect(() => run.happen({ kind: 'run_command', command: { kind } })).toThrow(IllegalTransition);
    expect(run.happen({ kind: 'run_command', command: { kind: 'restartRun' } })).toEqual(['launch x 2']);
  });

  test('ends its attempts when it is cancelled', () => {
    const run = begun([step('x'), step('y', acp)]);
    const cancelled = run.happen({ kind: 'run_command', command: { kind: 'cancelRun' } });
    expect(cancelled).toEqual(['end_attempt x 1', 'end_attempt y 1', 'run_ended cancelled']);
    expect(run.completed('x')).toEqual([]);
  });
});
