/** Steps, and the run itself, that begin or stop waiting for an answer while an event is applied to their run. */
import type { Tx } from '../../store/store.ts';
import type { Facts } from '../../work/facts.ts';
import { agentsOfSteps } from './queries/assignments.ts';
import type { RunRow } from './queries/runs.ts';
import { findStep } from './queries/steps.ts';
import { findRunWait } from './queries/waiting.ts';
import type { StepState } from './rules/graph.ts';

interface Wait {
  before: boolean;
  now: boolean;
  /** The agent of the attempt that waited. */
  agent_id: string | undefined;
}

/** The display names of whoever answered; null if the wait ended without an answer. */
export interface AnsweredBy {
  step: string | null;
  run: string | null;
}

export class Waits {
  readonly #tx: Tx;
  readonly #run: RunRow;
  readonly #steps = new Map<string, Wait>();
  readonly #run_since_ms: number | null;

  private constructor(tx: Tx, run: RunRow, run_since_ms: number | null) {
    this.#tx = tx;
    this.#run = run;
    this.#run_since_ms = run_since_ms;
  }

  /** `run`: as it is before the event. */
  static async before(tx: Tx, run: RunRow): Promise<Waits> {
    return new Waits(tx, run, await findRunWait(tx, run));
  }

  /** Call it before each write of a step. `known`: the step as it is stored. */
  async observe(known: StepState | undefined, { step_key, status }: StepState): Promise<void> {
    const now = status === 'input_required';
    const wait = this.#steps.get(step_key);
    if (wait) wait.now = now;
    else if ((known?.status === 'input_required') !== now) {
      // Another attempt may get another agent.
      const agent_id = now ? undefined : await this.#agentOf(this.#run, step_key);
      this.#steps.set(step_key, { before: !now, now, agent_id });
    }
  }

  /** Records the changes as facts, and publishes the agents. `run`: as it is after the event. */
  async finish(
    run: RunRow,
    { facts, publishAgent }: { facts: Facts; publishAgent(tx: Tx, agent_id: string): Promise<void> },
    answered_by: AnsweredBy,
  ): Promise<void> {
    const agents = new Set<string | undefined>();
    for (const [step_key, { before, now, agent_id }] of this.#steps) {
      if (before === now) continue;
      agents.add(agent_id ?? (await this.#agentOf(run, step_key)));
      const step = { run_id: run.id, step_key };
      if (!now)
        await facts.record(this.#tx, 'step_answered', run.id, { ...step, answered_by: answered_by.step });
      else {
        const since_ms = (await findStep(this.#tx, run.num, step_key))!.waiting_since!;
        await facts.record(this.#tx, 'step_waits', run.id, { ...step, since_ms });
      }
    }
    await this.#finishRun(run, facts, answered_by.run);
    for (const agent_id of agents) if (agent_id !== undefined) await publishAgent(this.#tx, agent_id);
  }

  async #finishRun(run: RunRow, facts: Facts, answered_by: string | null): Promise<void> {
    const since_ms = await findRunWait(this.#tx, run);
    if (since_ms === this.#run_since_ms) return;
    const run_id = run.id;
    if (this.#run_since_ms !== null)
      await facts.record(this.#tx, 'run_answered', run_id, { run_id, answered_by });
    if (since_ms !== null) await facts.record(this.#tx, 'run_waits', run_id, { run_id, since_ms });
  }

  async #agentOf(run: RunRow, step_key: string): Promise<string | undefined> {
    return (await agentsOfSteps(this.#tx, run, [step_key])).get(step_key);
  }
}
