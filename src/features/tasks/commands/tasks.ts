/** `svc tasks …`: work that teams are asked to do. `task-thread.ts` has the commands for task threads. */
import type { Command } from 'commander';
import { type ApiOptions, connect } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { usage } from '../../../cli/failure.ts';
import { parseObjectOption, withJson } from '../../../cli/json-options.ts';
import { integer, remote } from '../../../cli/options.ts';
import { type Column, printRecord, printRows, report } from '../../../cli/output.ts';
import { textOrStdin } from '../../../cli/prompt.ts';
import { type WatchOptions, watchRun } from '../../runs/commands/run-watch.ts';
import { reportRun, watchable } from '../../runs/commands/runs.ts';
import { findRun, findTeam } from '../../teams/commands/team-refs.ts';
import type { TaskStatus } from '../rules/task.ts';
import { findTask, type TaskRecord } from './task-refs.ts';
import { addTaskThread } from './task-thread.ts';

type Options = ApiOptions & { json?: boolean };

interface Fields {
  title?: string;
  description?: string;
  status?: TaskStatus;
  assignee?: string;
  version?: number;
}

export function addTasks(program: Command, context: Context): void {
  const tasks = program
    .command('tasks')
    .description(
      'give tasks to teams and discuss them; name a task by its key (DEM-1), its id, or as <team>#<number>',
    );
  addLs(tasks, context);
  addCreate(tasks, context);
  addShow(tasks, context);
  addUpdate(tasks, context);
  addRun(tasks, context);
  addTaskThread(tasks, context);
}

function addLs(tasks: Command, context: Context): void {
  const { io } = context;
  remote(tasks, 'ls <team>', "list a team's tasks, newest first")
    .alias('list')
    .option('--status <status>', 'only tasks with this status')
    .option('--assignee <member>', 'only tasks of one member')
    .action(async (ref: string, options: Options & Fields) => {
      const api = await connect(context, options);
      const { id: team_id } = await findTeam(api, ref);
      const query = { status: options.status, assignee_member_id: options.assignee };
      await printRows(io, await api.all('listTasks', { params: { team_id }, query }), columns, options);
    });
}

function addCreate(tasks: Command, context: Context): void {
  const { io } = context;
  remote(tasks, 'create <team> <title...>', 'create a task for a team; use run to start work on it')
    .option('--description <text>', 'details (-: read from stdin)')
    .option('--assignee <member>', 'the responsible member')
    .action(async (ref: string, text_parts: string[], options: Options & Fields) => {
      const api = await connect(context, options);
      const { id: team_id } = await findTeam(api, ref);
      const { description, assignee } = options;
      const body = {
        title: text_parts.join(' '),
        ...(description !== undefined && { description: await textOrStdin(io, description) }),
        ...(assignee !== undefined && { assignee_member_id: assignee }),
      };
      const args = { params: { team_id }, body, idempotency_key: crypto.randomUUID() };
      await reportTask(context, await api.call('createTask', args), options);
    });
}

function addShow(tasks: Command, context: Context): void {
  const { io } = context;
  remote(tasks, 'show <task>', 'show a task')
    .alias('get')
    .action(async (ref: string, options: Options) => {
      await printRecord(io, await findTask(await connect(context, options), ref), options);
    });
}

function addUpdate(tasks: Command, context: Context): void {
  const { io } = context;
  remote(tasks, 'update <task>', 'change a task or its status')
    .option('--title <text>', 'title, in one line')
    .option('--description <text>', 'details (-: read from stdin)')
    .option('--status <status>', 'open, in_progress, in_review, completed or cancelled')
    .option('--assignee <member>', 'the responsible member; empty: unassigned')
    .option('--version <n>', 'only if the task still has this version', integer)
    .action(async (ref: string, options: Options & Fields) => {
      const { title, description, status, assignee, version } = options;
      const changes = {
        ...(title !== undefined && { title }),
        ...(description !== undefined && { description: await textOrStdin(io, description) }),
        ...(status !== undefined && { status }),
        ...(assignee !== undefined && { assignee_member_id: assignee || null }),
      };
      if (Object.keys(changes).length === 0) throw usage('nothing to change: give at least one option');
      const api = await connect(context, options);
      const { id: task_id, team_id } = await findTask(api, ref);
      const body = { ...changes, ...(version !== undefined && { version }) };
      await reportTask(
        context,
        await api.call('updateTask', { params: { team_id, task_id }, body }),
        options,
      );
    });
}

function addRun(tasks: Command, context: Context): void {
  const { io } = context;
  const run = remote(tasks, 'run <task>', 'start a run for a task');
  watchable(withJson(run, 'input', "the run's input in addition to the task, a JSON object")).action(
    async (ref: string, options: Options & WatchOptions & { watch?: boolean }) => {
      const input = await parseObjectOption(io, 'input', options);
      const api = await connect(context, options);
      const { id: task_id, team_id } = await findTask(api, ref);
      const body = input === undefined ? {} : { input };
      const args = { params: { team_id, task_id }, body, idempotency_key: crypto.randomUUID() };
      const begun = await api.call('startTaskRun', args);
      const created = await findRun(api, begun.id);
      if (options.watch) await watchRun(context, api, created, options);
      else await reportRun(context, created, options);
    },
  );
}

function reportTask(context: Context, task: TaskRecord, options: Options): Promise<void> {
  const { io } = context;
  const line = `${task.id}  ${task.key}  ${task.status}  ${task.title}`;
  return report(io, task, { line, columns }, options);
}

const columns: Column<TaskRecord>[] = [
  { title: 'ID', value: (task) => task.id },
  { title: 'KEY', value: (task) => task.key },
  { title: 'STATUS', value: (task) => task.status },
  { title: 'ASSIGNEE', value: (task) => task.assignee_member_id },
  { title: 'RUN', value: (task) => task.run_id },
  { title: 'TITLE', value: (task) => task.title },
];
