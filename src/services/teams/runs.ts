/** Runs of teams as people see them: begin, look at, and say how they go on. What a run does by itself is `Progress`'s. */
import type { Clock } from '../../base/clock.ts';
import { newId } from '../../base/ids.ts';
import { limits } from '../../base/limits.ts';
import { humanActorId } from '../../domain/actor.ts';
import type { Run, RunStatus, Step } from '../../domain/run.ts';
import type { StepSpec } from '../../domain/team.ts';
import type { Caller } from '../../domain/user.ts';
import type { Feed } from '../../events/feed.ts';
import {
  agentsOfSteps,
  findRun,
  findStep,
  listRuns,
  type RunRow,
  stepsOf,
  toRun,
  toStep,
} from '../../store/runs.ts';
import type { Reader, Store, Tx } from '../../store/store.ts';
import { findTask, toTask } from '../../store/tasks.ts';
import type { Audit } from '../audit.ts';
import type { IdempotencyKeys } from '../idempotency.ts';
import { type Page, type PageRequest, page, readCursor } from '../page.ts';
import { mustFindRun, mustFindTeam } from './access.ts';
import { beginRun, taskOfRun } from './beginning.ts';
import type { Progress } from './progress.ts';
import { type RosterOf, rosterOf } from './roster.ts';
import { addStep, type RunSaid, type Speaker, type StepSaid, sayToRun, sayToStep } from './words.ts';

export interface RunsOptions {
  store: Store;
  clock: Clock;
  audit: Audit;
  feed: Feed;
  progress: Progress;
  idempotency: Pick<IdempotencyKeys, 'keepWith'>;
}

interface RunPath {
  team_id: string;
  run_id: string;
}

export class Runs {
  readonly #options: RunsOptions;

  constructor(options: RunsOptions) {
    this.#options = options;
  }

  create(
    caller: Caller,
    team_id: string,
    input: Record<string, unknown>,
    idempotency_key: string | null,
  ): Promise<Run> {
    const { store, clock, audit, feed, progress } = this.#options;
    const id = newId('run');
    return store.write((tx) => {
      const team = mustFindTeam(tx, caller, 'team.work', team_id);
      const asked = { team, input, created_by: caller.user_id, now: clock.now() };
      const task = taskOfRun(tx, asked);
      const run = toRun(beginRun(tx, progress, { ...asked, id, task_num: task.num }));
      const { user_id, ip } = caller;
      audit.record(tx, { event: 'run_created', user_id, ip, details: { run_id: id, team_id } });
      feed.append(tx, 'task', team.created_by, { ...toTask(findTask(tx, task.id)!) }, team.num);
      this.#keep(tx, caller, idempotency_key, 201, run, `/api/teams/${team_id}/runs/${id}`);
      return run;
    });
  }

  list(
    caller: Caller,
    team_id: string,
    { status }: { status?: RunStatus | undefined },
    request: PageRequest,
  ): Promise<Page<Run>> {
    const limit = request.limit ?? limits.page_items_default;
    const paged = request.limit !== undefined || request.cursor !== undefined;
    const before_num = readCursor(request.cursor, 'number')?.[0];
    return this.#options.store.read((reader) => {
      const { num: team_num } = mustFindTeam(reader, caller, 'team.read', team_id);
      const rows = listRuns(reader, { team_num, status, before_num, limit: paged ? limit + 1 : undefined });
      return page(rows, paged ? limit : rows.length, toRun, (row) => [row.num]);
    });
  }

  /** `team_id`: absent where the path names the run alone; also below. */
  get(caller: Caller, run_id: string, team_id?: string): Promise<Run> {
    return this.#options.store.read((reader) =>
      toRun(mustFindRun(reader, caller, 'team.read', run_id, team_id).run),
    );
  }

  members(caller: Caller, run_id: string): Promise<RosterOf> {
    return this.#options.store.read((reader) => {
      const { team, run } = mustFindRun(reader, caller, 'team.read', run_id);
      return rosterOf(reader, team, run);
    });
  }

  /** In the order in which they were defined or added. */
  steps(caller: Caller, team_id: string, run_id: string): Promise<Step[]> {
    return this.#options.store.read((reader) => {
      const { run } = mustFindRun(reader, caller, 'team.read', run_id, team_id);
      const agents = agentsOfSteps(reader, run);
      return stepsOf(reader, run.num).map((row) => toStep(row, run_id, agents.get(row.step_key) ?? null));
    });
  }

  say(
    caller: Caller,
    { team_id, run_id }: RunPath,
    said: RunSaid,
    idempotency_key: string | null,
  ): Promise<Run> {
    return this.#options.store.write((tx) => {
      const { run } = mustFindRun(tx, caller, 'team.work', run_id, team_id);
      sayToRun(this.#options, tx, run, said, speaker(caller));
      const after = toRun(findRun(tx, run_id)!);
      this.#keep(tx, caller, idempotency_key, 200, after);
      return after;
    });
  }

  addStep(
    caller: Caller,
    { team_id, run_id }: RunPath,
    asked: StepSpec,
    idempotency_key: string | null,
  ): Promise<Step> {
    return this.#options.store.write((tx) => {
      const { run } = mustFindRun(tx, caller, 'team.work', run_id, team_id);
      addStep(this.#options, tx, run, asked, speaker(caller));
      const step = stepOf(tx, run, asked.step_key);
      const location = `/api/teams/${team_id}/runs/${run_id}/steps`;
      this.#keep(tx, caller, idempotency_key, 201, step, location);
      return step;
    });
  }

  sayToStep(
    caller: Caller,
    { team_id, run_id, step_key }: RunPath & { step_key: string },
    said: StepSaid,
    idempotency_key: string | null,
  ): Promise<Step> {
    return this.#options.store.write((tx) => {
      const { run } = mustFindRun(tx, caller, 'team.work', run_id, team_id);
      sayToStep(this.#options, tx, run, step_key, said, speaker(caller));
      const step = stepOf(tx, run, step_key);
      this.#keep(tx, caller, idempotency_key, 200, step);
      return step;
    });
  }

  /** The answer to a request with a key, committed with what it did. */
  #keep(
    tx: Tx,
    caller: Caller,
    key: string | null,
    status: number,
    body: Run | Step,
    location: string | null = null,
  ): void {
    if (key !== null) this.#options.idempotency.keepWith(tx, caller, key, { status, location, body });
  }
}

function stepOf(reader: Reader, { num, id }: RunRow, step_key: string): Step {
  const { attempt } = findRun(reader, id)!;
  const agent_id = agentsOfSteps(reader, { num, attempt }, [step_key]).get(step_key);
  return toStep(findStep(reader, num, step_key)!, id, agent_id ?? null);
}

function speaker({ user_id, ip, username }: Caller): Speaker {
  return { user_id, ip, actor_id: humanActorId(username) };
}
