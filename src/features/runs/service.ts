/** The operations on runs of teams for people: create, read and control them. */
import type { Clock } from '../../base/clock.ts';
import { newId } from '../../base/ids.ts';
import { limits } from '../../base/limits.ts';
import { isPaged, type Page, type PageRequest, page, readCursor } from '../../core/page.ts';
import { authorize, viewOf } from '../../core/policy.ts';
import type { IdempotencyKeys } from '../../server/idempotency.ts';
import type { Reader, Store, Tx } from '../../store/store.ts';
import type { Caller } from '../accounts/rules.ts';
import type { Audit } from '../audit/service.ts';
import type { Extensions, NodeDirectory } from '../feature.ts';
import { requireTeam } from '../teams/access.ts';
import type { TeamRow } from '../teams/queries.ts';
import type { StepSpec } from '../teams/rules/team.ts';
import { requireRun } from './access.ts';
import { createRun, createTask, taskTitle } from './creation.ts';
import { runMembers } from './participants.ts';
import { listRuns, listRunsInView, type RunRow, toListedRun, toRun } from './queries/runs.ts';
import { listWaitingRuns, listWaitingSteps, toWaitingRun, toWaitingStep } from './queries/waiting.ts';
import type { ListedRun, Run, RunMembers, RunStatus, Step, WaitingRun, WaitingStep } from './rules/run.ts';
import {
  RunCommands,
  type RunCommandsOptions,
  type RunRequest,
  type StepRequest,
  stepsOfRun,
  toCommander,
} from './run-commands.ts';
import type { Scheduler } from './scheduler.ts';

export interface RunsOptions {
  store: Store;
  clock: Clock;
  audit: Audit;
  scheduler: Scheduler;
  deleting: RunCommandsOptions['deleting'];
  nodes: Pick<NodeDirectory, 'choose'>;
  idempotency: Pick<IdempotencyKeys, 'storeWith'>;
  extensions: Pick<Extensions, 'publishTask' | 'unacknowledgedMail'>;
}

interface RunPath {
  team_id: string;
  run_id: string;
}

export class Runs {
  readonly #options: RunsOptions;
  /** For callers that have their own transaction and permission check. */
  readonly commands: RunCommands;

  constructor(options: RunsOptions) {
    this.#options = options;
    this.commands = new RunCommands(options);
  }

  /** Creates a run of the team and its task. */
  create(
    caller: Caller,
    team_id: string,
    input: Record<string, unknown>,
    idempotency_key: string | null,
  ): Promise<Run> {
    const { store, clock, audit, extensions } = this.#options;
    const id = newId('run');
    return store.write(async (tx) => {
      const team = await requireTeam(tx, caller, 'team.work', team_id);
      const origin = { created_by: caller.user_id, now: clock.now() };
      const title = await taskTitle(tx, team, input);
      const task_num = await createTask(tx, { ...origin, team_num: team.num, title });
      const run = toRun(await createRun(tx, this.#options, { ...origin, id, team, task_num, input }));
      const { user_id, ip } = caller;
      await audit.record(tx, {
        event: 'run_created',
        user_id,
        ip,
        details: { run_id: id, team_id, number: run.number },
      });
      await extensions.publishTask(tx, task_num);
      await this.#keep(tx, caller, idempotency_key, 201, run, `/api/teams/${team_id}/runs/${id}`);
      return run;
    });
  }

  /** Runs, newest first. Without `limit` and `cursor`: all of them. */
  list(
    caller: Caller,
    team_id: string,
    { status }: { status?: RunStatus | undefined },
    request: PageRequest,
  ): Promise<Page<Run>> {
    const limit = request.limit ?? limits.page_items_default;
    const paged = isPaged(request);
    const before_num = readCursor(request.cursor, 'number')?.[0];
    return this.#options.store.read(async (reader) => {
      const { num: team_num } = await requireTeam(reader, caller, 'team.read', team_id);
      const rows = await listRuns(reader, {
        team_num,
        status,
        before_num,
        limit: paged ? limit + 1 : undefined,
      });
      return page(rows, paged ? limit : rows.length, toRun, (row) => [row.num]);
    });
  }

  /** The runs of all teams, newest first. Without a page request: at most `plain_list_items_max`, with a cursor for the rest. */
  listAll(
    caller: Caller,
    { status }: { status?: RunStatus | undefined },
    request: PageRequest,
  ): Promise<Page<ListedRun>> {
    authorize(caller, 'teams.list');
    const paged = isPaged(request);
    const limit = request.limit ?? (paged ? limits.page_items_default : limits.plain_list_items_max);
    const before_num = readCursor(request.cursor, 'number')?.[0];
    return this.#options.store.read(async (reader) => {
      const rows = await listRunsInView(reader, viewOf(caller), { status, before_num, limit: limit + 1 });
      return page(rows, limit, toListedRun, (row) => [row.num]);
    });
  }

  /** The steps that wait for an answer, the longest wait first. Without `limit` and `cursor`: all of them. */
  waitingSteps(caller: Caller, request: PageRequest): Promise<Page<WaitingStep>> {
    authorize(caller, 'teams.list');
    const paged = isPaged(request);
    const limit = request.limit ?? limits.page_items_default;
    const after = readCursor(request.cursor, 'number', 'number');
    return this.#options.store.read(async (reader) => {
      const rows = await listWaitingSteps(reader, viewOf(caller), {
        after,
        limit: paged ? limit + 1 : undefined,
      });
      return page(rows, paged ? limit : rows.length, toWaitingStep, (row) => [row.waiting_since!, row.num]);
    });
  }

  /** The runs that wait for a person without such a step, the longest wait first. Pages as in `waitingSteps`. */
  waitingRuns(caller: Caller, request: PageRequest): Promise<Page<WaitingRun>> {
    authorize(caller, 'teams.list');
    const paged = isPaged(request);
    const limit = request.limit ?? limits.page_items_default;
    const after = readCursor(request.cursor, 'number', 'number');
    return this.#options.store.read(async (reader) => {
      const rows = await listWaitingRuns(reader, viewOf(caller), {
        after,
        limit: paged ? limit + 1 : undefined,
      });
      return page(rows, paged ? limit : rows.length, toWaitingRun, (row) => [row.waiting_since!, row.num]);
    });
  }

  /** `team_id`: absent if the request path names only the run. */
  get(caller: Caller, run_id: string, team_id?: string): Promise<Run> {
    return this.#options.store.read(async (reader) =>
      toRun((await requireRun(reader, caller, 'team.read', run_id, team_id)).run),
    );
  }

  /** The members of the run, with the mail that each has not acknowledged. */
  members(caller: Caller, run_id: string): Promise<RunMembers> {
    return this.#options.store.read(async (reader) => {
      const { team, run } = await requireRun(reader, caller, 'team.read', run_id);
      return this.membersOf(reader, team, run);
    });
  }

  /** Like `members`, without a permission check. */
  async membersOf(reader: Reader, team: TeamRow, run: RunRow): Promise<RunMembers> {
    return runMembers(reader, team, run, await this.#options.extensions.unacknowledgedMail(reader, run));
  }

  /** The steps, in the order in which they were defined or added. */
  steps(caller: Caller, team_id: string, run_id: string): Promise<Step[]> {
    return this.#options.store.read(async (reader) =>
      stepsOfRun(reader, (await requireRun(reader, caller, 'team.read', run_id, team_id)).run),
    );
  }

  /** Returns the run after the command. Throws like `RunCommands.commandRun`. */
  commandRun(
    caller: Caller,
    { team_id, run_id }: RunPath,
    request: RunRequest,
    idempotency_key: string | null,
  ): Promise<Run> {
    return this.#options.store.write(async (tx) => {
      const { run } = await requireRun(tx, caller, 'team.work', run_id, team_id);
      const after = await this.commands.commandRun(tx, run, request, toCommander(caller));
      await this.#keep(tx, caller, idempotency_key, 200, after);
      return after;
    });
  }

  /** Throws like `RunCommands.addStep`. */
  addStep(
    caller: Caller,
    { team_id, run_id }: RunPath,
    spec: StepSpec,
    idempotency_key: string | null,
  ): Promise<Step> {
    return this.#options.store.write(async (tx) => {
      const { run } = await requireRun(tx, caller, 'team.work', run_id, team_id);
      const step = await this.commands.addStep(tx, run, spec, toCommander(caller));
      const location = `/api/teams/${team_id}/runs/${run_id}/steps`;
      await this.#keep(tx, caller, idempotency_key, 201, step, location);
      return step;
    });
  }

  /** Returns the step after the command. Throws like `RunCommands.commandStep`. */
  commandStep(
    caller: Caller,
    { team_id, run_id, step_key }: RunPath & { step_key: string },
    request: StepRequest,
    idempotency_key: string | null,
  ): Promise<Step> {
    return this.#options.store.write(async (tx) => {
      const { run } = await requireRun(tx, caller, 'team.work', run_id, team_id);
      const step = await this.commands.commandStep(tx, run, step_key, request, toCommander(caller));
      await this.#keep(tx, caller, idempotency_key, 200, step);
      return step;
    });
  }

  /** Stores the response to a request with an idempotency key, in the transaction of the request. */
  async #keep(
    tx: Tx,
    caller: Caller,
    key: string | null,
    status: number,
    body: Run | Step,
    location: string | null = null,
  ): Promise<void> {
    if (key !== null) await this.#options.idempotency.storeWith(tx, caller, key, { status, location, body });
  }
}
