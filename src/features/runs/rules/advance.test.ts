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

async function begun(steps: StepShape[], more: Partial<RunShape> = {}) {
  const mode = steps.length > 0 ? 'steps' : 'leader';
  const graph = new MemoryGraph({ mode, max_rounds: 2, leader_member_id: 'a', steps, ...more });
  const happen = async (event: GraphEvent) =>
    (await advance(graph, event, 2)).map((effect) =>
      'step_key' in effect
        ? `${effect.kind} ${effect.step_key} ${effect.attempt}`
        : `${effect.kind} ${'round' in effect ? effect.round : effect.status}`,
    );
  const completed = (step_key: string, attempt = 1) => happen({ kind: 'step_completed', step_key, attempt });
  const failed = (step_key: string, attempt = 1) =>
    happen({ kind: 'step_failed', step_key, attempt, error_text: 'bad' });
  return { graph, happen, completed, failed, first: await happen({ kind: 'begun' }) };
}

describe('a step', () => {
  test('runs in parallel with others up to the limit if its member is plain, and waits for its turn if it is ACP', async () => {
    const run = await begun([step('x'), step('y'), step('z'), step('1', acp), step('2', acp)]);
    expect(run.first).toEqual(['launch x 1', 'launch y 1', 'launch 1 1']);
    expect(await run.completed('x')).toEqual(['launch z 1']);
    expect(await run.completed('1')).toEqual(['launch 2 1']);
  });

  test('is retried up to max_attempts, unless its failure is final', async () => {
    const run = await begun([step('x', { max_attempts: 2 }), step('y', { max_attempts: 2 })]);
    expect(await run.failed('x')).toEqual(['launch x 2']);
    await run.happen({ kind: 'step_failed', step_key: 'y', attempt: 1, error_text: 'bad', final: true });
    expect(await run.failed('x', 2)).toEqual(['run_ended failed']);
    expect(run.graph.run().error).toBe('step x failed: bad');
  });

  test('requires input if its outcome is unknown, and resuming it starts a new attempt', async () => {
    const run = await begun([step('x')]);
    await run.happen({ kind: 'step_unknown', step_key: 'x', attempt: 1, reason: 'outcome unknown' });
    expect(run.graph.run().status).toBe('input_required');
    const resumed = await run.happen({
      kind: 'step_command',
      step_key: 'x',
      command: { kind: 'resumeStep' },
    });
    expect(resumed).toEqual(['launch x 2']);
    expect(await run.completed('x')).toEqual([]);
    expect(await run.completed('x', 2)).toEqual(['run_ended completed']);
  });

  test('is started by a command if its member is outside, and keeps its attempt when it is resumed', async () => {
    const run = await begun([step('x', outside)]);
    for (const kind of ['startStep', 'resumeStep'] as const) {
      if (kind === 'resumeStep')
        await run.happen({
          kind: 'step_command',
          step_key: 'x',
          command: { kind: 'requireStepInput', reason: '?' },
        });
      await run.happen({ kind: 'step_command', step_key: 'x', command: { kind } });
      expect(await run.graph.step('x')).toMatchObject({ status: 'running', attempt: 1, launched: true });
    }
  });

  test('starts a new attempt if the run is resumed while it requires input', async () => {
    const run = await begun([step('x', acp)]);
    await run.happen({
      kind: 'step_command',
      step_key: 'x',
      command: { kind: 'requireStepInput', reason: '?' },
    });
    const resumed = await run.happen({ kind: 'run_command', command: { kind: 'resumeRun' } });
    expect(resumed).toEqual(['end_attempt x 1', 'launch x 2']);
  });
});

describe('a leader', () => {
  test('gets a new round until it adds no more steps', async () => {
    const run = await begun([]);
    expect(run.first).toEqual(['start_round 1']);
    await run.happen({ kind: 'step_added', step: step('x') });
    expect(await run.happen({ kind: 'round_ended', round: 1 })).toEqual([]);
    expect(await run.completed('x')).toEqual(['start_round 2']);
    expect(await run.happen({ kind: 'round_ended', round: 1 })).toEqual([]);
    expect(await run.happen({ kind: 'round_ended', round: 2 })).toEqual(['run_ended completed']);
  });

  test('requires input once it has used all its rounds, and gets more when the run is resumed', async () => {
    const run = await begun([], { max_rounds: 1 });
    await run.happen({ kind: 'step_added', step: step('x') });
    await run.completed('x');
    await run.happen({ kind: 'round_ended', round: 1 });
    expect(run.graph.run()).toMatchObject({
      status: 'input_required',
      error: 'the leader has used its 1 rounds',
    });
    expect(await run.happen({ kind: 'run_command', command: { kind: 'resumeRun' } })).toEqual([
      'start_round 2',
    ]);
  });
});

describe('a run', () => {
  test('can only be resumed or restarted after its end, and only restarted if it is completed', async () => {
    const run = await begun([step('x')]);
    expect(await run.completed('x')).toEqual(['run_ended completed']);
    for (const kind of ['cancelRun', 'completeRun', 'resumeRun'] as const)
      await expect(run.happen({ kind: 'run_command', command: { kind } })).rejects.toThrow(IllegalTransition);
    expect(await run.happen({ kind: 'run_command', command: { kind: 'restartRun' } })).toEqual([
      'launch x 2',
    ]);
  });

  test('ends its attempts when it is cancelled', async () => {
    const run = await begun([step('x'), step('y', acp)]);
    const cancelled = await run.happen({ kind: 'run_command', command: { kind: 'cancelRun' } });
    expect(cancelled).toEqual(['end_attempt x 1', 'end_attempt y 1', 'run_ended cancelled']);
    expect(await run.completed('x')).toEqual([]);
  });
});
