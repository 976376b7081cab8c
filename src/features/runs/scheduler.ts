/**
 * Applies events to runs. It changes the run's graph, publishes the changed records, and has the effects carried out, all in
 * the caller's transaction. No other module writes the status of a run or a step.
 */
import type { Clock } from '../../base/clock.ts';
import type { Tx } from '../../store/store.ts';
import type { Facts } from '../../work/facts.ts';
import { limits } from './limits.ts';
import type { RunPublisher } from './publisher.ts';
import { loadGraph, type StoredGraph } from './queries/graph.ts';
import { type RunRow, readAgain, runOfNum, updateRun } from './queries/runs.ts';
import { dropAnswers, findSteps, lastOutputs } from './queries/steps.ts';
import { advance } from './rules/advance.ts';
import type { Effect, GraphEvent, StepState } from './rules/graph.ts';
import { Waits } from './waits.ts';

export interface SchedulerOptions {
  clock: Clock;
  facts: Facts;
  publisher: RunPublisher;
  /** Publishes an agent's record, which counts the questions of its steps. */
  publishAgent(tx: Tx, agent_id: string): Promise<void>;
}

/** Details of an event. */
export interface EventDetails {
  /** Any JSON value, the run's output if the event completes it. Default: the outputs of the last steps. */
  output?: unknown;
  /** The display name of whoever answers the step that the event names, or the run if it names none. */
  answered_by?: string;
}

/**
 * Carries out effects in the same transaction. For a restart, it is called twice: first with the run before its next attempt,
 * for what must end, and then for what starts, even if nothing does.
 */
export type ExecuteEffects = (tx: Tx, run: RunRow, effects: Effect[]) => Promise<void>;

export class Scheduler {
  readonly #options: SchedulerOptions;
  #execute: ExecuteEffects = async () => {
    throw new Error('the scheduler is not open');
  };

  constructor(options: SchedulerOptions) {
    this.#options = options;
  }

  /**
   * Must be called before the first event. `execute` is passed here and not to the constructor, because it applies events
   * itself.
   */
  open(execute: ExecuteEffects): void {
    this.#execute = execute;
  }

  /**
   * Applies an event to the run. If the event names a step, the step must exist.
   *
   * @throws IllegalTransition for a command that is not allowed now
   */
  async apply(
    tx: Tx,
    run_num: number,
    event: GraphEvent,
    { output, answered_by }: EventDetails = {},
  ): Promise<void> {
    const before = await runOfNum(tx, run_num);
    if (!before) return;
    const graph = loadGraph(tx, before, this.#options.clock.now());
    const waits = await Waits.before(tx, before);
    const adds_steps = event.kind === 'begun' || event.kind === 'step_added';
    const changes = recordChanges(graph, waits, adds_steps);
    const effects = await advance(graph, event, limits.run_plain_steps_max);
    const command = event.kind === 'run_command' ? event.command.kind : null;
    const restarts = command === 'restartRun';
    if (restarts) await this.#restart(tx, before, effects);
    else if (effects.length > 0) await this.#execute(tx, await readAgain(tx, before), effects);
    const ended = effects.find((effect) => effect.kind === 'run_ended');
    if (ended?.status === 'completed') await this.#complete(tx, before, output);
    // Effects change the run and its steps too.
    const has_effects = restarts || effects.length > 0;
    const keys = [...changes.steps];
    const after = await this.#options.publisher.publish(
      tx,
      changes.run || has_effects ? await readAgain(tx, before) : before,
      has_effects ? await findSteps(tx, before.num, keys) : keys.map(graph.row),
      before,
    );
    const begins = event.kind === 'begun' || command === 'resumeRun' || restarts;
    if (begins || ended) await this.#recordRunChanged(tx, after);
    else if (changes.progressed)
      await this.#options.facts.record(tx, 'run_progressed', after.id, { run_id: after.id });
    await waits.finish(after, this.#options, {
      step: event.kind === 'step_command' ? (answered_by ?? null) : null,
      run: event.kind === 'run_command' ? (answered_by ?? null) : null,
    });
  }

  async #restart(tx: Tx, before: RunRow, effects: readonly Effect[]): Promise<void> {
    const isEnd = ({ kind }: Effect) => kind === 'end_attempt' || kind === 'end_round';
    const ends = effects.filter(isEnd);
    if (ends.length > 0) await this.#execute(tx, await readAgain(tx, before), ends);
    const attempt = before.attempt + 1;
    const nothing = { output: null, attention: null, attention_at: null };
    updateRun(tx, before.num, { attempt, ...nothing, started_at: this.#options.clock.now() });
    await dropAnswers(tx, before.num);
    await this.#execute(
      tx,
      await readAgain(tx, before),
      effects.filter((effect) => !isEnd(effect)),
    );
  }

  async #complete(tx: Tx, { num, mode }: RunRow, result: unknown): Promise<void> {
    const output = result === undefined && mode === 'steps' ? await lastOutputs(tx, num) : (result ?? null);
    updateRun(tx, num, { output: output === null ? null : JSON.stringify(output) });
  }

  async #recordRunChanged(tx: Tx, { id, status, attempt }: RunRow): Promise<void> {
    await this.#options.facts.record(tx, 'run_changed', id, { run_id: id, status, attempt });
  }
}

/** What an event changes in the graph of a run. */
interface Changes {
  /** Whether the run's own state was written. */
  run: boolean;
  /** Keys of the steps whose records change visibly. */
  steps: Set<string>;
  /** Whether there are new steps, or others are completed than before. */
  progressed: boolean;
}

/** From now on, the graph records its changes, and `waits` observes its steps. */
function recordChanges(graph: StoredGraph, waits: Waits, adds_steps: boolean): Changes {
  const changes: Changes = { run: false, steps: new Set(), progressed: adds_steps };
  const { putRun, putStep } = graph;
  graph.putRun = (run) => {
    changes.run = true;
    return putRun(run);
  };
  graph.putStep = async (step) => {
    const known = await graph.step(step.step_key);
    if (adds_steps || isVisible(known, step)) changes.steps.add(step.step_key);
    if ((known?.status === 'completed') !== (step.status === 'completed')) changes.progressed = true;
    await waits.observe(known, step);
    await putStep(step);
  };
  return changes;
}

/** Whether the change is visible in the step's record. */
function isVisible(before: StepState | undefined, { status, attempt, error_text }: StepState): boolean {
  return before?.status !== status || before.attempt !== attempt || before.error_text !== error_text;
}
