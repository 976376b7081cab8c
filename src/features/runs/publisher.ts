/**
 * Publishes runs: each change of a run or a step becomes an event of the run and an entry of the fleet feed, in the caller's
 * transaction.
 */
import type { Clock } from '../../base/clock.ts';
import type { Feed } from '../../events/feed.ts';
import type { Tx } from '../../store/store.ts';
import { getCreatorId } from '../teams/queries.ts';
import { agentsOfSteps } from './queries/attempts.ts';
import { insertRunEvents } from './queries/events.ts';
import { type RunRow, runOfNum, toRun, updateRun } from './queries/runs.ts';
import { findSteps, toStep } from './queries/steps.ts';

export interface RunPublisherOptions {
  clock: Clock;
  feed: Feed;
}

/** Columns of a run that are in its record and can change. */
const visible_columns = [
  'status',
  'error',
  'output',
  'attempt',
  'attention',
  'started_at',
  'ended_at',
] as const;

export class RunPublisher {
  readonly #options: RunPublisherOptions;
  /** Called with the number of a run that has new events. */
  readonly #listeners = new Set<(run_num: number) => void>();

  constructor(options: RunPublisherOptions) {
    this.#options = options;
  }

  /** Calls the listener after each commit that adds events to a run. Returns a function that unsubscribes. */
  onEvent(listener: (run_num: number) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Publishes these steps, and also the run if its record changed. Returns the run, with a new version if anything changed.
   *
   * @param before the run when it was last published; absent for a new run
   */
  publish(tx: Tx, run: RunRow, step_keys: readonly string[], before?: RunRow): RunRow {
    const run_changed =
      before === undefined || visible_columns.some((column) => run[column] !== before[column]);
    if (!run_changed && step_keys.length === 0) return run;
    const row = before ? { ...run, version: run.version + 1 } : run;
    if (before) updateRun(tx, run.num, { version: row.version });
    if (step_keys.length > 0) this.#publishSteps(tx, row, step_keys);
    if (run_changed) this.#append(tx, row, 'run', [toRun(row)]);
    this.#wake(tx, row.num);
    return row;
  }

  /** Publishes the deletion of a run to the fleet feed. */
  publishDeletion(tx: Tx, run: RunRow): void {
    const text = JSON.stringify({ ...toRun(run), deleted: true });
    this.#options.feed.appendAll(tx, 'run', getCreatorId(tx, run.team_num), [text], run.team_num);
  }

  /** Records why a person should look at the run; null if there is no longer a reason. */
  setAttention(tx: Tx, run: RunRow, attention: string | null): void {
    if (run.attention === attention) return;
    const attention_at = attention === null ? null : this.#options.clock.now();
    updateRun(tx, run.num, { attention, attention_at });
    this.publish(tx, runOfNum(tx, run.num)!, [], run);
  }

  /** Adds an event about mail to the run. The fleet feed does not contain these events. */
  publishMail(tx: Tx, run_num: number, record: object): void {
    insertRunEvents(tx, run_num, this.#options.clock.now(), 'mail', [JSON.stringify(record)]);
    this.#wake(tx, run_num);
  }

  #publishSteps(tx: Tx, run: RunRow, step_keys: readonly string[]): void {
    const agents = agentsOfSteps(tx, run, step_keys);
    const steps = findSteps(tx, run.num, step_keys).map((step) =>
      toStep(step, run.id, agents.get(step.step_key) ?? null),
    );
    if (steps.length > 0) this.#append(tx, run, 'step', steps);
  }

  #append(tx: Tx, { num, team_num }: RunRow, type: 'run' | 'step', records: readonly object[]): void {
    const { clock, feed } = this.#options;
    const texts = records.map((record) => JSON.stringify(record));
    insertRunEvents(tx, num, clock.now(), type, texts);
    feed.appendAll(tx, type, getCreatorId(tx, team_num), texts, team_num);
  }

  #wake(tx: Tx, run_num: number): void {
    tx.afterCommit(() => {
      for (const listener of this.#listeners) listener(run_num);
    });
  }
}
