/** What a run does next, rule by rule; that no order of events breaks them is `run.property.test.ts`'s. */
import { describe, expect, test } from 'vitest';
import { MemoryGraph, type RunShape, type StepShape } from '../testing/memory-graph.ts';
import { advance, type Happened, IllegalWord } from './run.ts';

const plain = { member_id: 'p', kind: 'plain' } as const;
const acp = { member_id: 'a', kind: 'acp' } as const;
const outside = { member_id: 'o', kind: 'outside' } as const;

function step(step_key: string, more: Partial<StepShape> = {}): StepShape {
  return { step_key, ...plain, depends_on: [], when: 'on_success', max_attempts: 1, ...more };
}

function begun(steps: StepShape[], more: Partial<RunShape> = {}) {
  const mode = steps.length > 0 ? 'steps' : 'leader';
  const graph = new MemoryGraph({ mode, max_rounds: 2, leader_member_id: 'a', steps, ...more });
  const happen = (happened: Happened) =>
    advance(graph, happened, 2).map((effect) =>
      'step_key' in effect
        ? `${effect.kind} ${effect.step_key} ${effect.attempt}`
        : `${effect.kind} ${'round' in effect ? effect.round : effect.status}`,
    );
  const completed = (step_key: string, attempt = 1) => happen({ kind: 'step_completed', step_key, attempt });
  const failed = (step_key: string, attempt = 1) =>
    happen({ kind: 'step_failed', step_key, attempt, error_text: 'bad' });
  return { graph, happen, completed, failed, first: happen({ kind: 'begun' }) };
}

describe('steps', () => {
  test('of plain members go side by side up to the bound, those of an ACP member one after the other', () => {
    const run = begun([step('x'), step('y'), step('z'), step('1', acp), step('2', acp)]);
    expect(run.first).toEqual(['launch x 1', 'launch y 1', 'launch 1 1']);
    expect(run.completed('x')).toEqual(['launch z 1']);
    expect(run.completed('1')).toEqual(['launch 2 1']);
  });

  test('are tried again as often as they may, unless that is known to be no use', () => {
    const run = begun([step('x', { max_attempts: 2 }), step('y', { max_attempts: 2 })]);
    expect(run.failed('x')).toEqual(['launch x 2']);
    run.happen({ kind: 'step_failed', step_key: 'y', attempt: 1, error_text: 'bad', final: true });
    expect(run.failed('x', 2)).toEqual(['run_ended failed']);
    expect(run.graph.run().error).toBe('step x failed: bad');
  });

  test('of which nobody knows what came wait for a word, and an answer begins a new attempt', () => {
    const run = begun([step('x')]);
    run.happen({ kind: 'step_unclear', step_key: 'x', attempt: 1, reason: 'outcome unknown' });
    expect(run.graph.run().status).toBe('input_required');
    const resumed = run.happen({ kind: 'step_said', step_key: 'x', word: { kind: 'resume' } });
    expect(resumed).toEqual(['launch x 2']);
    expect(run.completed('x')).toEqual([]);
    expect(run.completed('x', 2)).toEqual(['run_ended completed']);
  });

  test('from outside begin by a word, and go on with the same attempt once they have their answer', () => {
    const run = begun([step('x', outside)]);
    for (const kind of ['start', 'resume'] as const) {
      if (kind === 'resume')
        run.happen({ kind: 'step_said', step_key: 'x', word: { kind: 'input_required', reason: '?' } });
      run.happen({ kind: 'step_said', step_key: 'x', word: { kind } });
      expect(run.graph.step('x')).toMatchObject({ status: 'running', attempt: 1, launched: true });
    }
  });

  test('that wait for a word are ended when the run is resumed while their turn goes on', () => {
    const run = begun([step('x', acp)]);
    run.happen({ kind: 'step_said', step_key: 'x', word: { kind: 'input_required', reason: '?' } });
    const resumed = run.happen({ kind: 'run_said', word: { kind: 'resume' } });
    expect(resumed).toEqual(['end_attempt x 1', 'launch x 2']);
  });
});

describe('a leader', () => {
  test('is asked until it adds nothing more', () => {
    const run = begun([]);
    expect(run.first).toEqual(['ask_leader 1']);
    run.happen({ kind: 'step_added', step: step('x') });
    expect(run.happen({ kind: 'leader_ended', round: 1 })).toEqual([]);
    expect(run.completed('x')).toEqual(['ask_leader 2']);
    expect(run.happen({ kind: 'leader_ended', round: 1 })).toEqual([]);
    expect(run.happen({ kind: 'leader_ended', round: 2 })).toEqual(['run_ended completed']);
  });

  test('that never comes to an end waits for a word, after which its rounds count on', () => {
    const run = begun([], { max_rounds: 1 });
    run.happen({ kind: 'step_added', step: step('x') });
    run.completed('x');
    run.happen({ kind: 'leader_ended', round: 1 });
    expect(run.graph.run()).toMatchObject({
      status: 'input_required',
      error: 'the leader has had its 1 rounds',
    });
    expect(run.happen({ kind: 'run_said', word: { kind: 'resume' } })).toEqual(['ask_leader 2']);
  });
});

describe('a run', () => {
  test('that is over takes no word but resume and restart, and a completed one only restart', () => {
    const run = begun([step('x')]);
    expect(run.completed('x')).toEqual(['run_ended completed']);
    for (const kind of ['cancel', 'complete', 'resume'] as const)
      expect(() => run.happen({ kind: 'run_said', word: { kind } })).toThrow(IllegalWord);
    expect(run.happen({ kind: 'run_said', word: { kind: 'restart' } })).toEqual(['launch x 2']);
  });

  test('that is cancelled ends what goes on', () => {
    const run = begun([step('x'), step('y', acp)]);
    const cancelled = run.happen({ kind: 'run_said', word: { kind: 'cancel' } });
    expect(cancelled).toEqual(['end_attempt x 1', 'end_attempt y 1', 'run_ended cancelled']);
    expect(run.completed('x')).toEqual([]);
  });
});
