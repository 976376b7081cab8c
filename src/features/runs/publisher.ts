/**
 * Publishes runs: each change of a run or a step becomes an event of the run and an entry of the fleet feed, in the caller's
 * transaction.
 */
import type { Clock } from '../../base/clock.ts';
import type { Feed } from '../../events/feed.ts';
import type { Tx } from '../../store/store.ts';
import { agentsOfSteps } from './queries/assignments.ts';
import { insertRunEvents } from './queries/events.ts';
import { type RunRow, runOfNum, toRun, updateRun } from './queries/runs.ts';
import { type StepRow, toStep } from './queries/steps.ts';
import { withoutReasons, withReason } from './rules/attention.ts';

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

  constructor(options: RunPublisherOptions) {
    this.#options = options;
  }

  /**
   * Publishes these steps as they are now, and also the run if its record changed. Returns the run, with a new version if
   * anything changed. While the run waits for people, it is always published, because their commands name its version.
   *
   * @param before the run when it was last published; absent for a new run
   */
  async publish(tx: Tx, run: RunRow, steps: readonly StepRow[], before?: RunRow): Promise<RunRow> {
    const run_changed =
      before === undefined || visible_columns.some((column) => run[column] !== before[column]);
    if (!run_changed && steps.length === 0) return run;
    const row = before ? { ...run, version: run.version + 1 } : run;
    if (before) updateRun(tx, run.num, { version: row.version });
    if (steps.length > 0) await this.#publishSteps(tx, row, steps);
    if (run_changed || row.status === 'input_required') await this.#append(tx, row, 'run', [toRun(row)]);
    tx.wake('run_events', row.num);
    return row;
  }

  /** Publishes the deletion of a run to the fleet feed. */
  async publishDeletion(tx: Tx, run: RunRow): Promise<void> {
    const text = JSON.stringify({ ...toRun(run), deleted: true });
    await this.#options.feed.appendAll(tx, 'run', run.team_created_by, [text], run.team_num);
  }

  /** Records one more reason why a person should look at the run. `isOver`: reasons that it replaces. Idempotent. */
  addAttention(
    tx: Tx,
    run: RunRow,
    reason: string,
    isOver: (other: string) => boolean = () => false,
  ): Promise<void> {
    return this.#setAttention(tx, run, withReason(withoutReasons(run.attention, isOver), reason));
  }

  /** Removes the reasons that are over. Other ones remain. Idempotent. */
  dropAttention(tx: Tx, run: RunRow, isOver: (reason: string) => boolean): Promise<void> {
    return this.#setAttention(tx, run, withoutReasons(run.attention, isOver));
  }

  async #setAttention(tx: Tx, run: RunRow, attention: string | null): Promise<void> {
    if (run.attention === attention) return;
    const attention_at = attention === null ? null : (run.attention_at ?? this.#options.clock.now());
    updateRun(tx, run.num, { attention, attention_at });
    await this.publish(tx, (await runOfNum(tx, run.num))!, [], run);
  }

  /** Adds an event about mail to the run. The fleet feed does not contain these events. */
  async publishMail(tx: Tx, run_num: number, record: object): Promise<void> {
    insertRunEvents(tx, run_num, this.#options.clock.now(), 'mail', [JSON.stringify(record)]);
    tx.wake('run_events', run_num);
  }

  async #publishSteps(tx: Tx, run: RunRow, steps: readonly StepRow[]): Promise<void> {
    const of_agents = steps.filter(({ kind }) => kind !== 'outside').map(({ step_key }) => step_key);
    const agents = await agentsOfSteps(tx, run, of_agents);
    const records = steps.map((step) => toStep(step, run.id, agents.get(step.step_key) ?? null));
    await this.#append(tx, run, 'step', records);
  }

  async #append(
    tx: Tx,
    { num, team_num, team_created_by }: RunRow,
    type: 'run' | 'step',
    records: readonly object[],
  ): Promise<void> {
    const { clock, feed } = this.#options;
    const texts = records.map((record) => JSON.stringify(record));
    insertRunEvents(tx, num, clock.now(), type, texts);
    await feed.appendAll(tx, type, team_created_by, texts, team_num);
  }
}
