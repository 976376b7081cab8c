/** The graph of a run in memory, written independently of the stored one, so that both can be compared. */

import type { RunGraph, RunState, StepState, Tally } from '../features/runs/rules/graph.ts';
import { isStepOver, type RunMode } from '../features/runs/rules/run.ts';
import type { MemberKind, StepCondition } from '../features/teams/rules/team.ts';

export interface StepShape {
  step_key: string;
  member_id: string;
  kind: MemberKind;
  depends_on: string[];
  when: StepCondition;
  max_attempts: number;
}

export interface RunShape {
  mode: RunMode;
  max_rounds: number;
  leader_member_id: string | null;
  steps: StepShape[];
}

export class MemoryGraph implements RunGraph {
  readonly #shape: RunShape;
  readonly #defined_keys: Set<string>;
  #run: RunState;
  #steps: Map<string, StepState>;

  constructor(shape: RunShape) {
    this.#shape = shape;
    this.#defined_keys = new Set(shape.steps.map(({ step_key }) => step_key));
    this.#run = {
      status: 'pending',
      mode: shape.mode,
      rounds: 0,
      rounds_before: 0,
      max_rounds: shape.max_rounds,
      round_state: 'unasked',
      steps_seen: 0,
      error: null,
    };
    this.#steps = new Map(shape.steps.map((step) => [step.step_key, newStep(step)]));
  }

  /** A copy of the stored state, as after a crash. */
  copy(): MemoryGraph {
    const copy = new MemoryGraph(this.#shape);
    copy.#run = structuredClone(this.#run);
    copy.#steps = structuredClone(this.#steps);
    return copy;
  }

  run(): RunState {
    return { ...this.#run };
  }
  async putRun(run: RunState): Promise<void> {
    this.#run = { ...run };
  }
  async step(step_key: string): Promise<StepState | undefined> {
    const step = this.#steps.get(step_key);
    return step && { ...step };
  }
  async putStep(step: StepState): Promise<void> {
    this.#steps.set(step.step_key, { ...step });
  }
  async dependents(step_key: string): Promise<StepState[]> {
    return (await this.steps()).filter(({ depends_on }) => depends_on.includes(step_key));
  }
  async steps(): Promise<StepState[]> {
    return [...this.#steps.values()].map((step) => ({ ...step }));
  }
  async dropAdded(): Promise<void> {
    for (const key of this.#steps.keys()) if (!this.#defined_keys.has(key)) this.#steps.delete(key);
  }
  async waitingPlain(count: number): Promise<StepState[]> {
    return (await this.#waiting('plain')).slice(0, count);
  }
  async waitingAcp(): Promise<StepState[]> {
    const busy = new Set(
      (await this.steps()).flatMap(({ launched, member_id }) => (launched ? [member_id] : [])),
    );
    const { leader_member_id } = this.#shape;
    if (this.#run.round_state === 'asking' && leader_member_id !== null) busy.add(leader_member_id);
    return (await this.#waiting('acp')).filter(
      ({ member_id }) => !busy.has(member_id) && busy.add(member_id),
    );
  }
  async tally(): Promise<Tally> {
    const steps = await this.steps();
    return {
      open: steps.some((step) => !isStepOver(step)),
      active: steps.some(({ status }) => status === 'ready' || status === 'running'),
    };
  }
  async hasFailed(): Promise<boolean> {
    return (await this.steps()).some(({ status }) => status === 'failed');
  }
  async plainLive(): Promise<number> {
    return (await this.steps()).filter(({ kind, launched }) => kind === 'plain' && launched).length;
  }
  async size(): Promise<number> {
    return this.#steps.size;
  }

  async #waiting(wanted: MemberKind): Promise<StepState[]> {
    return (await this.steps()).filter(
      ({ kind, status, launched }) => kind === wanted && status === 'ready' && !launched,
    );
  }
}

function newStep(step: StepShape): StepState {
  return {
    ...step,
    status: 'pending',
    waits_for: step.depends_on.length,
    upstream_failed: false,
    attempt: 0,
    attempts_since_resume: 0,
    launched: false,
    error_text: null,
  };
}
