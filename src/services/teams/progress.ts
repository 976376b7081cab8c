/**
 * How a run gets on: what happened to it is taken into its graph, told, and carried out, in the transaction of whoever
 * saw it happen. Nothing else writes the status of a run or a step.
 */
import type { Clock } from '../../base/clock.ts';
import { limits } from '../../base/limits.ts';
import type { MailHead } from '../../domain/mail.ts';
import { advance, type Effect, type Happened, type StepState } from '../../domain/run.ts';
import type { Feed } from '../../events/feed.ts';
import type { Facts } from '../../flow/facts.ts';
import {
  agentsOfSteps,
  dropAnswers,
  findSteps,
  graphOf,
  insertRunEvents,
  lastOutputs,
  putVersion,
  type RunRow,
  refreshed,
  runOfNum,
  toRun,
  toStep,
  updateRun,
} from '../../store/runs.ts';
import type { Tx } from '../../store/store.ts';
import { creatorOf } from '../../store/teams.ts';

export interface ProgressOptions {
  clock: Clock;
  feed: Feed;
  facts: Facts;
  /**
   * Carries out what follows, in the same transaction. `run`: as it is then. For a restart it is called twice: with the
   * ends of the attempt of before, whose `run` still has that attempt, and then with what begins.
   */
  execute(tx: Tx, run: RunRow, effects: Effect[]): void;
}

export class Progress {
  readonly #options: ProgressOptions;
  /** Followers of run events look again. */
  readonly #listeners = new Set<(run_num: number) => void>();

  constructor(options: ProgressOptions) {
    this.#options = options;
  }

  /** Answers how to stop hearing of runs that have new events, once they are committed. */
  onEvent(listener: (run_num: number) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * `output`: the run's, any JSON, where this completes it; absent: that of the steps nothing depends on, for a run of
   * steps. Throws `IllegalWord`, and for an unknown step nothing is known of what to do: look before.
   */
  apply(tx: Tx, run_num: number, happened: Happened, output?: unknown): void {
    const before = runOfNum(tx, run_num);
    if (!before) return;
    const graph = graphOf(tx, before, this.#options.clock.now());
    const changed = new Set<string>();
    const tellsAll = happened.kind === 'begun' || happened.kind === 'step_added';
    const { putStep } = graph;
    graph.putStep = (step: StepState) => {
      if (tellsAll || isSeen(graph.step(step.step_key), step)) changed.add(step.step_key);
      putStep(step);
    };
    const effects = advance(graph, happened, limits.run_plain_steps_max);
    const restarts = happened.kind === 'run_said' && happened.word.kind === 'restart';
    if (restarts) this.#restart(tx, before, effects);
    else if (effects.length > 0) this.#options.execute(tx, refreshed(tx, before), effects);
    const ended = effects.find((effect) => effect.kind === 'run_ended');
    if (ended?.status === 'completed') this.#complete(tx, before, output);
    const said = happened.kind === 'run_said' && ['resume', 'restart'].includes(happened.word.kind);
    const after = this.#told(tx, refreshed(tx, before), [...changed], before);
    if (ended || said || happened.kind === 'begun') this.#record(tx, after);
  }

  /** Tells what the run and these steps are now. `before`: the run as it was told last; absent: it was not. */
  tell(tx: Tx, run_num: number, step_keys: readonly string[], before?: RunRow): void {
    this.#told(tx, runOfNum(tx, run_num)!, step_keys, before);
  }

  /** Something of the run wants a human's eye; null: it no longer does. */
  wantEye(tx: Tx, run: RunRow, attention: string | null): void {
    if (run.attention === attention) return;
    const attention_at = attention === null ? null : this.#options.clock.now();
    updateRun(tx, run.num, { attention, attention_at });
    this.tell(tx, run.num, [], run);
  }

  /** An event of the run about its mail: the fleet's stream does not tell of that. */
  tellMail(tx: Tx, run_num: number, record: MailHead): void {
    insertRunEvents(tx, run_num, this.#options.clock.now(), 'mail', [JSON.stringify(record)]);
    this.#wake(tx, run_num);
  }

  /** Answers the run, with a new version where it changed. */
  #told(tx: Tx, run: RunRow, step_keys: readonly string[], before: RunRow | undefined): RunRow {
    const other = before === undefined || shown.some((column) => run[column] !== before[column]);
    if (!other && step_keys.length === 0) return run;
    const row = before ? { ...run, version: run.version + 1 } : run;
    if (before) putVersion(tx, run.num, row.version);
    this.#tell(tx, row, step_keys, other);
    return row;
  }

  #tell(tx: Tx, row: RunRow, step_keys: readonly string[], whole: boolean): void {
    const { clock, feed } = this.#options;
    const ts = clock.now();
    const created_by = creatorOf(tx, row.team_num);
    const event = (type: 'run' | 'step', ...records: object[]) => {
      const texts = records.map((record) => JSON.stringify(record));
      insertRunEvents(tx, row.num, ts, type, texts);
      feed.appendAll(tx, type, created_by, texts, row.team_num);
    };
    const agents = step_keys.length > 0 ? agentsOfSteps(tx, row, step_keys) : new Map<string, string>();
    const steps = findSteps(tx, row.num, step_keys);
    if (steps.length > 0)
      event('step', ...steps.map((step) => toStep(step, row.id, agents.get(step.step_key) ?? null)));
    if (whole) event('run', toRun(row));
    this.#wake(tx, row.num);
  }

  #wake(tx: Tx, run_num: number): void {
    tx.afterCommit(() => {
      for (const listener of this.#listeners) listener(run_num);
    });
  }

  #restart(tx: Tx, before: RunRow, effects: readonly Effect[]): void {
    const { execute, clock } = this.#options;
    const isEnd = ({ kind }: Effect) => kind === 'end_attempt' || kind === 'end_leader';
    const ends = effects.filter(isEnd);
    if (ends.length > 0) execute(tx, refreshed(tx, before), ends);
    const attempt = before.attempt + 1;
    const nothing = { output: null, attention: null, attention_at: null };
    updateRun(tx, before.num, { attempt, ...nothing, started_at: clock.now() });
    dropAnswers(tx, before.num);
    execute(
      tx,
      refreshed(tx, before),
      effects.filter((effect) => !isEnd(effect)),
    );
  }

  #complete(tx: Tx, { num, mode }: RunRow, given: unknown): void {
    const output = given === undefined && mode === 'steps' ? lastOutputs(tx, num) : (given ?? null);
    updateRun(tx, num, { output: output === null ? null : JSON.stringify(output) });
  }

  #record(tx: Tx, { id, status, attempt }: RunRow): void {
    this.#options.facts.record(tx, 'run_changed', id, { run_id: id, status, attempt });
  }
}

/** Whether the change makes another record: of what a step still waits for, nobody is told. */
function isSeen(before: StepState | undefined, { status, attempt, error_text }: StepState): boolean {
  return before?.status !== status || before.attempt !== attempt || before.error_text !== error_text;
}

/** What of a run's row makes another record. */
const shown = ['status', 'error', 'output', 'attempt', 'attention', 'started_at', 'ended_at'] as const;
