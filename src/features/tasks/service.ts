/**
 * Tasks: work that teams are asked to do. People create and change them; the runs that are started for a task update
 * its status (`followRun`), by the fact that a run changed.
 */
import type { Clock } from '../../base/clock.ts';
import { newId } from '../../base/ids.ts';
import { limits } from '../../base/limits.ts';
import { differs } from '../../core/changes.ts';
import { isPaged, type Page, type PageRequest, page, readCursor } from '../../core/page.ts';
import { problems } from '../../core/problem.ts';
import type { Feed } from '../../events/feed.ts';
import type { IdempotencyKeys } from '../../server/idempotency.ts';
import type { Store, Tx } from '../../store/store.ts';
import type { FactHandlers } from '../../work/facts.ts';
import type { Caller } from '../accounts/rules.ts';
import type { AuditEvent } from '../audit/rules/audit.ts';
import type { Audit } from '../audit/service.ts';
import type { CreateRun } from '../runs/creation.ts';
import { findRun, type RunRow, toRun } from '../runs/queries/runs.ts';
import { findOpenRun, insertTask } from '../runs/queries/tasks.ts';
import type { Run, RunStatus } from '../runs/rules/run.ts';
import { requireTeam } from '../teams/access.ts';
import type { TeamRow } from '../teams/queries.ts';
import type { TeamSpec } from '../teams/rules/team.ts';
import { inputWithTask } from './context.ts';
import { publishTask, requireTask } from './find.ts';
import { listTasks, taskOfNum, toTask, updateTask } from './queries/tasks.ts';
import { followRun, type Task, type TaskStatus } from './rules/task.ts';

export interface TasksOptions {
  store: Store;
  clock: Clock;
  feed: Feed;
  audit: Audit;
  idempotency: Pick<IdempotencyKeys, 'storeWith'>;
  /** Creates a run of the current definition of the team, and starts it. */
  createRun(tx: Tx, input: CreateRun): Promise<RunRow>;
}

export interface CreateTask {
  title: string;
  description: string;
  assignee_member_id: string | null;
}

export interface UpdateTask {
  title?: string | undefined;
  description?: string | undefined;
  status?: TaskStatus | undefined;
  assignee_member_id?: string | null | undefined;
  /** The version on which the change is based; absent: any. */
  version?: number | undefined;
}

export class Tasks {
  readonly #options: TasksOptions;

  constructor(options: TasksOptions) {
    this.#options = options;
  }

  /** Newest first. */
  list(
    caller: Caller,
    team_id: string,
    filter: { status?: TaskStatus | undefined; assignee_member_id?: string | undefined },
    request: PageRequest,
  ): Promise<Page<Task>> {
    const limit = request.limit ?? limits.page_items_default;
    const paged = isPaged(request);
    const before_num = readCursor(request.cursor, 'number')?.[0];
    return this.#options.store.read(async (reader) => {
      const { num: team_num } = await requireTeam(reader, caller, 'team.read', team_id);
      const rows = await listTasks(reader, {
        team_num,
        ...filter,
        before_num,
        limit: paged ? limit + 1 : undefined,
      });
      return page(rows, paged ? limit : rows.length, toTask, (row) => [row.num]);
    });
  }

  /** Throws `task not found` and `team not found`. */
  get(caller: Caller, team_id: string, task_id: string): Promise<Task> {
    return this.#options.store.read(async (reader) =>
      toTask((await requireTask(reader, caller, 'team.read', { team_id, task_id })).task),
    );
  }

  /** Creates the task and its thread. Throws a 400 for an assignee that is not a member of the team. */
  create(caller: Caller, team_id: string, input: CreateTask, idempotency_key: string | null): Promise<Task> {
    const { store, clock, feed, idempotency } = this.#options;
    const [id, conversation_id] = [newId('task'), newId('conv')];
    return store.write(async (tx) => {
      const team = await requireTeam(tx, caller, 'task.change', team_id);
      assertMember(team, input.assignee_member_id);
      const now = clock.now();
      const num = await insertTask(tx, {
        id,
        team_num: team.num,
        title: input.title,
        description: input.description,
        status: 'open',
        assignee_member_id: input.assignee_member_id,
        conversation_id,
        version: 1,
        created_by: caller.user_id,
        created_at: now,
        updated_at: now,
      });
      await this.#audit(tx, caller, 'task_created', { team_id, task_id: id, title: input.title });
      const task = toTask(await publishTask(feed, tx, num));
      if (idempotency_key !== null) {
        const answer = { status: 201, location: taskPath(task), body: task };
        await idempotency.storeWith(tx, caller, idempotency_key, answer);
      }
      return task;
    });
  }

  /**
   * Throws `task changed concurrently; reload and retry` if the version is not current. An update without changes
   * does not increment the version and is not audited.
   */
  update(caller: Caller, team_id: string, task_id: string, changes: UpdateTask): Promise<Task> {
    const { store, clock, feed } = this.#options;
    return store.write(async (tx) => {
      const { team, task } = await requireTask(tx, caller, 'task.change', { team_id, task_id });
      const { version = task.version, ...input } = changes;
      if (version !== task.version) throw problems.taskChanged();
      if (input.assignee_member_id !== undefined) assertMember(team, input.assignee_member_id);
      const nonEmptyName = Object.fromEntries(
        Object.entries(input).filter(([, value]) => value !== undefined),
      );
      if (!differs(task, nonEmptyName)) return toTask(task);
      await updateTask(tx, task.num, { ...nonEmptyName, version: version + 1, updated_at: clock.now() });
      const { status } = input;
      const changed = Object.keys(nonEmptyName);
      const updated = toTask(await publishTask(feed, tx, task.num));
      const details = { team_id, task_id, title: updated.title, changed, ...(status && { status }) };
      await this.#audit(tx, caller, 'task_updated', details);
      return updated;
    });
  }

  /** Starts a run of the team with the task and its thread added to the given input. A task has at most one open run. */
  startRun(
    caller: Caller,
    team_id: string,
    task_id: string,
    input: Record<string, unknown>,
    idempotency_key: string | null,
  ): Promise<Run> {
    const { store, clock, createRun, idempotency } = this.#options;
    const id = newId('run');
    return store.write(async (tx) => {
      const { team, task } = await requireTask(tx, caller, 'team.work', { team_id, task_id });
      if (await findOpenRun(tx, task.num)) throw problems.taskHasRun();
      const run = toRun(
        await createRun(tx, {
          ...{ id, team, task_num: task.num, input: await inputWithTask(tx, task, input) },
          created_by: caller.user_id,
          now: clock.now(),
        }),
      );
      await this.#audit(tx, caller, 'run_created', { run_id: id, team_id, number: run.number, task_id });
      if (idempotency_key !== null) {
        const answer = { status: 201, location: `/api/teams/${team_id}/runs/${id}`, body: run };
        await idempotency.storeWith(tx, caller, idempotency_key, answer);
      }
      return run;
    });
  }

  /** Updates a task's status when its run changes, and publishes the progress of the run. */
  facts(): FactHandlers {
    return {
      run_changed: async (tx, { payload }) => {
        const run = await findRun(tx, payload.run_id);
        // Not the run's status now: a run that has already completed was in progress before.
        if (run) await this.#follow(tx, run.task_num, payload.status as RunStatus);
      },
      run_progressed: async (tx, { payload }) => {
        const run = await findRun(tx, payload.run_id);
        if (run) await publishTask(this.#options.feed, tx, run.task_num);
      },
    };
  }

  async #follow(tx: Tx, task_num: number, status: RunStatus): Promise<void> {
    const { clock, feed } = this.#options;
    const row = (await taskOfNum(tx, task_num))!;
    const next = followRun(row.status, (await findOpenRun(tx, task_num))?.status ?? status);
    if (next !== row.status) {
      await updateTask(tx, task_num, { status: next, version: row.version + 1, updated_at: clock.now() });
    }
    await publishTask(feed, tx, task_num);
  }

  async #audit(tx: Tx, caller: Caller, event: AuditEvent, details: Record<string, unknown>): Promise<void> {
    await this.#options.audit.record(tx, { event, user_id: caller.user_id, ip: caller.ip, details });
  }
}

/** The URL of a task. */
export function taskPath({ team_id, id }: Pick<Task, 'team_id' | 'id'>): string {
  return `/api/teams/${team_id}/tasks/${id}`;
}

function assertMember(team: TeamRow, member_id: string | null): void {
  const { members } = JSON.parse(team.spec) as TeamSpec;
  if (member_id !== null && !members.some((member) => member.member_id === member_id)) {
    throw problems.assigneeUnknown();
  }
}
