/** `svc tasks …`: what teams are asked to do. What is said about it is in `task-talk.ts`. */
import type { Command } from 'commander';
import type { TaskStatus } from '../domain/task.ts';
import { type ApiOptions, connect } from './api.ts';
import type { Context } from './context.ts';
import { usage } from './failure.ts';
import { givenObject, withJson } from './given-json.ts';
import { remote, wholeNumber } from './options.ts';
import { type Column, printRecord, printRows, report } from './output.ts';
import { textOrStdin } from './prompt.ts';
import { type WatchOptions, watchRun } from './run-watch.ts';
import { reportRun, watchable } from './runs.ts';
import { addTaskTalk } from './task-talk.ts';
import { findRun, findTask, findTeam, type TaskRecord } from './team-refs.ts';

type Options = ApiOptions & { json?: boolean };

interface Fields {
  title?: string;
  description?: string;
  status?: TaskStatus;
  assignee?: string;
  version?: number;
}

export function addTasks(program: Command, context: Context): void {
  const { io } = context;
  const tasks = program
    .command('tasks')
    .description(
      'ask teams to do something, and talk about it; a task is named by id, or as <team>#<number>',
    );

  remote(tasks, 'ls <team>', "list a team's tasks, newest first")
    .alias('list')
    .option('--status <status>', 'only tasks with this status')
    .option('--assignee <member>', 'only those of one member')
    .action(async (ref: string, options: Options & Fields) => {
      const api = await connect(context, options);
      const { id: team_id } = await findTeam(api, ref);
      const query = { status: options.status, assignee_member_id: options.assignee };
      await printRows(io, await api.all('listTasks', { params: { team_id }, query }), columns, options);
    });

  remote(tasks, 'create <team> <title...>', 'ask a team to do something; nothing begins before it is run')
    .option('--description <text>', 'more of it; - reads it from stdin')
    .option('--assignee <member>', 'the member whose it is')
    .action(async (ref: string, words: string[], options: Options & Fields) => {
      const api = await connect(context, options);
      const { id: team_id } = await findTeam(api, ref);
      const { description, assignee } = options;
      const body = {
        title: words.join(' '),
        ...(description !== undefined && { description: await textOrStdin(io, description) }),
        ...(assignee !== undefined && { assignee_member_id: assignee }),
      };
      const args = { params: { team_id }, body, idempotency_key: crypto.randomUUID() };
      await tell(await api.call('createTask', args), options);
    });

  remote(tasks, 'show <task>', 'show a task')
    .alias('get')
    .action(async (ref: string, options: Options) => {
      await printRecord(io, await findTask(await connect(context, options), ref), options);
    });

  remote(tasks, 'update <task>', 'change a task, or say how it stands')
    .option('--title <text>', 'one line')
    .option('--description <text>', 'more of it; - reads it from stdin')
    .option('--status <status>', 'open, in_progress, in_review, completed or cancelled')
    .option('--assignee <member>', 'the member whose it is; empty: nobody')
    .option('--version <n>', 'only if it is this one still', wholeNumber)
    .action(async (ref: string, options: Options & Fields) => {
      const { title, description, status, assignee, version } = options;
      const changes = {
        ...(title !== undefined && { title }),
        ...(description !== undefined && { description: await textOrStdin(io, description) }),
        ...(status !== undefined && { status }),
        ...(assignee !== undefined && { assignee_member_id: assignee || null }),
      };
      if (Object.keys(changes).length === 0) throw usage('say what to change');
      const api = await connect(context, options);
      const { id: task_id, team_id } = await findTask(api, ref);
      const body = { ...changes, ...(version !== undefined && { version }) };
      await tell(await api.call('updateTask', { params: { team_id, task_id }, body }), options);
    });

  const run = remote(tasks, 'run <task>', 'start a run for a task');
  watchable(withJson(run, 'input', "the run's input beside the task, a JSON object")).action(
    async (ref: string, options: Options & WatchOptions & { watch?: boolean }) => {
      const input = await givenObject(io, 'input', options);
      const api = await connect(context, options);
      const { id: task_id, team_id } = await findTask(api, ref);
      const body = input === undefined ? {} : { input };
      const args = { params: { team_id, task_id }, body, idempotency_key: crypto.randomUUID() };
      const begun = await api.call('startTaskRun', args);
      const made = await findRun(api, begun.id);
      if (options.watch) await watchRun(context, api, made, options);
      else await reportRun(context, made, options);
    },
  );

  addTaskTalk(tasks, context);

  function tell(task: TaskRecord, options: Options): Promise<void> {
    const line = `${task.id}  #${task.number}  ${task.status}  ${task.title}`;
    return report(io, task, { line, columns }, options);
  }
}

const columns: Column<TaskRecord>[] = [
  { title: 'ID', value: (task) => task.id },
  { title: '#', value: (task) => task.number },
  { title: 'STATUS', value: (task) => task.status },
  { title: 'ASSIGNEE', value: (task) => task.assignee_member_id },
  { title: 'RUN', value: (task) => task.run_id },
  { title: 'TITLE', value: (task) => task.title },
];
