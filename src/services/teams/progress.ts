/**
 * How a run gets on: what happened to it is taken into its graph, told, and carried out, in the transaction of whoever
 * saw it happen. Nothing else writes the status of a run or a step.
 */
import type { Clock } from '../../base/clock.ts';
import { limits } from '../../base/limits.ts';
import type { MailHead } from '../../domain/mail.ts';
import { advance, type Effect, type Happened, type StepState } from '../../domain/run.ts';
import type { TeamSpec } from '../../domain/team.ts';
import type { Feed } from '../../events/feed.ts';
import {
  agentsOfSteps,
  findStep,
  graphOf,
  type RunRow,
  runOfNum,
  toRun,
  toStep,
  updateRun,
} from '../../store/runs.ts';
import type { Tx } from '../../store/store.ts';
import { teamOfNum } from '../../store/teams.ts';

export interface ProgressOptions {
  clock: Clock;
  feed: Feed;
  /** Carries out what follows, in the same transaction. `run`: as it is then. */
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

  /** Throws `IllegalWord`, and for an unknown step nothing is known of what to do: look before. */
  apply(tx: Tx, run_num: number, happened: Happened): void {
    const now = this.#options.clock.now();
    const row = runOfNum(tx, run_num);
    if (!row) return;
    const spec = JSON.parse(row.spec) as TeamSpec;
    const graph = graphOf(tx, row, spec.leader_member_id, now);
    const changed = new Map<string, StepState>();
    const putStep = graph.putStep;
    graph.putStep = (step) => {
      changed.set(step.step_key, step);
      putStep(step);
    };
    const effects = advance(graph, happened, limits.run_plain_steps_max);
    const after = runOfNum(tx, run_num)!;
    if (changed.size > 0 || after.status !== row.status || after.error !== row.error) {
      updateRun(tx, run_num, { version: row.version + 1 });
    }
    this.#options.execute(tx, runOfNum(tx, run_num)!, effects);
    this.tell(tx, run_num, [...changed.keys()], row);
  }

  /** Tells what the run and these steps are now. `before`: the run as it was told last; absent: it was not. */
  tell(tx: Tx, run_num: number, step_keys: readonly string[], before?: RunRow): void {
    const row = runOfNum(tx, run_num)!;
    const agents = step_keys.length > 0 ? agentsOfSteps(tx, row) : new Map<string, string>();
    for (const key of step_keys) {
      const step = findStep(tx, run_num, key);
      if (step) this.event(tx, row, 'step', { ...toStep(step, row.id, agents.get(key) ?? null) });
    }
    const { version: _, ...shown } = toRun(row);
    const { version: __, ...told } = before ? toRun(before) : { version: 0 };
    if (JSON.stringify(shown) !== JSON.stringify(told)) this.event(tx, row, 'run', { ...toRun(row) });
  }

  /** An event of the run about its mail: the fleet's stream does not tell of that. */
  tellMail(tx: Tx, run_num: number, record: MailHead): void {
    const [ts, data] = [this.#options.clock.now(), JSON.stringify(record)];
    tx.run(tx.sql.insertInto('run_events').values({ run_num, ts, type: 'mail', data }));
    tx.afterCommit(() => {
      for (const listener of this.#listeners) listener(run_num);
    });
  }

  /** An event of the run, which also goes to the fleet's stream. */
  event(tx: Tx, run: RunRow, type: 'run' | 'step', record: Record<string, unknown>): void {
    const ts = this.#options.clock.now();
    const data = JSON.stringify(record);
    tx.run(tx.sql.insertInto('run_events').values({ run_num: run.num, ts, type, data }));
    const team = teamOfNum(tx, run.team_num)!;
    this.#options.feed.append(tx, type, team.created_by, record, run.team_num);
    tx.afterCommit(() => {
      for (const listener of this.#listeners) listener(run.num);
    });
  }
}
