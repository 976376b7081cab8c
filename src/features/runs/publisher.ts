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

  constructor(options: RunPublisherOptions) {
    this.#options = options;
  }

  /**
   * Publishes these steps, and also the run if its record changed. Returns the run, with a new version if anything changed.
   *
   * @param before the run when it was last published; absent for a new run
   */
  async publish(tx: Tx, run: RunRow, step_keys: readonly string[], before?: RunRow): Promise<RunRow> {
    const run_changed =
      before === undefined || visible_columns.some((column) => run[column] !== before[column]);
    if (!run_changed && step_keys.length === 0) return run;
    const row = before ? { ...run, version: run.version + 1 } : run;
    if (before) await updateRun(tx, run.num, { version: row.version });
    if (step_keys.length > 0) await this.#publishSteps(tx, row, step_keys);
    if (run_changed) await this.#append(tx, row, 'run', [toRun(row)]);
    tx.wake('run_events', row.num);
    return row;
  }

  /** Publishes the deletion of a run to the fleet feed. */
  async publishDeletion(tx: Tx, run: RunRow): Promise<void> {
    const text = JSON.stringify({ ...toRun(run), deleted: true });
    await this.#options.feed.appendAll(tx, 'run', await getCreatorId(tx, run.team_num), [text], run.team_num);
  }

  /** Records why a person should look at the run; null if there is no longer a reason. */
  async setAttention(tx: Tx, run: RunRow, attention: string | null): Promise<void> {
    if (run.attention === attention) return;
    const attention_at = attention === null ? null : this.#options.clock.now();
    await updateRun(tx, run.num, { attention, attention_at });
    await this.publish(tx, (await runOfNum(tx, run.num))!, [], run);
  }

  /** Adds an event about mail to the run. The fleet feed does not contain these events. */
  async publishMail(tx: Tx, run_num: number, record: object): Promise<void> {
    await insertRunEvents(tx, run_num, this.#options.clock.now(), 'mail', [JSON.stringify(record)]);
    tx.wake('run_events', run_num);
  }

  async #publishSteps(tx: Tx, run: RunRow, step_keys: readonly string[]): Promise<void> {
    const agents = await agentsOfSteps(tx, run, step_keys);
    const steps = (await findSteps(tx, run.num, step_keys)).map((step) =>
      toStep(step, run.id, agents.get(step.step_key) ?? null),
    );
    if (steps.length > 0) await this.#append(tx, run, 'step', steps);
  }

  async #append(
    tx: Tx,
    { num, team_num }: RunRow,
    type: 'run' | 'step',
    records: readonly object[],
  ): Promise<void> {
    const { clock, feed } = this.#options;
    const texts = records.map((record) => JSON.stringify(record));
    await insertRunEvents(tx, num, clock.now(), type, texts);
    await feed.appendAll(tx, type, await getCreatorId(tx, team_num), texts, team_num);
  }
}
