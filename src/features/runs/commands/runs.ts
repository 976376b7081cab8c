/** `svc runs …`: lists, starts, watches and controls runs. */
import type { Command } from 'commander';
import { limits } from '../../../base/limits.ts';
import { type Api, type ApiOptions, connect } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { parseJsonOption, parseObjectOption, withJson } from '../../../cli/json-options.ts';
import { remote, timeLimit, withTimeout } from '../../../cli/options.ts';
import {
  type Column,
  print,
  printJson,
  printRecord,
  printRows,
  printStatus,
  report,
} from '../../../cli/output.ts';
import { printable } from '../../../cli/terminal.ts';
import { each } from '../../agents/commands/each.ts';
import { findRun, findTeam, type RunRecord } from '../../teams/commands/team-refs.ts';
import { type RunStatus, runTitle } from '../rules/run.ts';
import { addRunChanges, changeColumns, memberChanges } from './run-changes.ts';
import { formatElapsed, stepColumns, waitingRunColumns } from './run-lines.ts';
import { type WatchOptions, watchRun } from './run-watch.ts';

type Options = ApiOptions & WatchOptions & { watch?: boolean };

interface DeleteOptions extends Options {
  deleteWorktrees?: boolean;
  dryRun?: boolean;
}

/** Titles that would be shorter than this are left out on a terminal. */
const TITLE_CHARS_MIN = 16;
const ref_help = 'by id, or as <team>#<number>';
const watching = 'watch the run until it ends; exit code 3 if it failed or was cancelled';

/** `more`: adds the commands of other features. */
export function addRuns(
  program: Command,
  context: Context,
  more: readonly ((runs: Command, context: Context) => void)[],
): void {
  const runs = program.command('runs').description(`run teams and watch their runs; name a run ${ref_help}`);
  addLs(runs, context);
  addWaiting(runs, context);
  addCreate(runs, context);
  addShow(runs, context);
  addRunChanges(runs, context);
  addWatch(runs, context);
  addRunCommand(
    runs,
    context,
    'cancelRun',
    'cancel',
    'cancel a run and everything in it that is still running',
  );
  addRunCommand(
    runs,
    context,
    'resumeRun',
    'resume',
    'continue a failed, cancelled or waiting run with the steps that did not complete',
  );
  addRunCommand(runs, context, 'restartRun', 'restart', 'run all steps of a run again, from the beginning');
  addComplete(runs, context);
  addFail(runs, context);
  addDelete(runs, context);
  for (const add of more) add(runs, context);
}

function addLs(runs: Command, context: Context): void {
  const { io } = context;
  remote(runs, 'ls [team]', 'list the runs of a team, or of all teams, newest first')
    .alias('list')
    .option('--status <status>', 'only runs with this status')
    .action(async (ref: string | undefined, options: Options & { status?: RunStatus }) => {
      const api = await connect(context, options);
      const { status } = options;
      if (ref === undefined) {
        const list = await api.all('listAllRuns', { query: { status } });
        return printRows(
          io,
          list,
          listColumns<(typeof list)[number]>(teamColumn, (run) => run.title),
          options,
        );
      }
      const { id: team_id } = await findTeam(api, ref);
      // These records have the team's spec and the outputs, so pages are small.
      const query = { status, limit: limits.cli_run_page_items };
      await printRows(
        io,
        await api.all('listRuns', { params: { team_id }, query }),
        listColumns<RunRecord>(null, ({ input }) => runTitle(input)),
        options,
      );
    });
}

function addWaiting(runs: Command, context: Context): void {
  const { io } = context;
  remote(
    runs,
    'waiting',
    'list the runs that are waiting for a person, but not at any step, oldest first',
  ).action(async (options: Options) => {
    const api = await connect(context, options);
    await printRows(io, await api.all('listWaitingRuns', {}), waitingRunColumns(Date.now()), options);
  });
}

const teamColumn = { title: 'TEAM', value: (run: { team_name: string }) => run.team_name };

/** `second`: the column after the id. */
function listColumns<T extends ListedRecord>(
  second: Column<T> | null,
  titleOf: (run: T) => string | null,
): Column<T>[] {
  const [id, ...rest] = columns;
  const now = Date.now();
  return [
    ...[id!, ...(second ? [second] : []), ...rest],
    { title: 'TIME', value: (run) => formatElapsed(run, now) },
    { title: 'CREATED', value: (run) => run.created_at, spare: true },
    { title: 'ERROR', value: (run) => run.error ?? run.attention },
    { title: 'TITLE', value: titleOf, spare: TITLE_CHARS_MIN },
  ];
}

function addCreate(runs: Command, context: Context): void {
  const { io } = context;
  watchable(
    withJson(remote(runs, 'create <team>', 'run a team'), 'input', 'the input, a JSON object'),
  ).action(async (ref: string, options: Options) => {
    const input = await parseObjectOption(io, 'input', options);
    const api = await connect(context, options);
    const team = await findTeam(api, ref);
    const run = await api.call('createRun', {
      params: { team_id: team.id },
      body: input === undefined ? {} : { input },
      idempotency_key: crypto.randomUUID(),
    });
    await watchOrReport(context, api, run, options);
  });
}

function addShow(runs: Command, context: Context): void {
  const { io } = context;
  remote(
    runs,
    'show <run>',
    "show a run, its participants, its steps and its changes; --json prints only the run's record",
  )
    .alias('get')
    .action(async (ref: string, options: Options) => {
      const api = await connect(context, options);
      const found = await findRun(api, ref);
      if (options.json) return printJson(io, found);
      const { spec: _, ...shown } = found;
      await printRecord(io, shown, options);
      const params = { team_id: found.team_id, run_id: found.id };
      const { members } = await api.call('listRunMembers', { params: { run_id: found.id } });
      await print(io, '\n');
      await printRows(
        io,
        members,
        [
          { title: 'ACTOR', value: (member) => member.actor_id },
          { title: 'ROLE', value: (member) => member.role },
          { title: 'AGENT', value: (member) => member.agent_id },
          { title: 'NODE', value: (member) => member.node_id },
          { title: 'STATUS', value: (member) => member.status },
          { title: 'MAIL', value: (member) => member.pending_messages },
        ],
        options,
      );
      const steps = await api.call('listSteps', { params });
      if (steps.length > 0) {
        await print(io, '\n');
        const by_key = new Map(steps.map((step) => [step.step_key, step]));
        await printRows(io, steps, stepColumns(found, by_key, Date.now()), options);
      }
      const changes = await memberChanges(api, found);
      if (changes.length === 0) return;
      await print(io, '\n');
      await printRows(io, changes, changeColumns, options);
    });
}

function addWatch(runs: Command, context: Context): void {
  remote(runs, 'watch <run>', 'watch a run until it ends; exit code 3 if it failed or was cancelled')
    .option('--timeout <duration>', 'time limit (exit code 124)', timeLimit)
    .action(async (ref: string, options: Options) => {
      const api = await connect(context, options);
      await watchRun(context, api, await findRun(api, ref), options);
    });
}

function addDelete(runs: Command, context: Context): void {
  const { io } = context;
  remote(
    runs,
    'delete <run...>',
    'delete runs that have ended, with their agents; worktrees with unsaved work are kept',
  )
    .alias('rm')
    .option('--delete-worktrees', 'delete worktrees even if they have unsaved work')
    .option('--dry-run', 'only show what would happen')
    .action(async (refs: string[], options: DeleteOptions) => {
      const api = await connect(context, options);
      const query = { delete_worktrees: options.deleteWorktrees, dry_run: options.dryRun };
      await each(io, refs, async (ref) => {
        const params = await resolveRunParams(api, ref);
        const deletion = await api.call('deleteRun', { params, query });
        if (options.json) return printJson(io, deletion);
        const { id, agents, worktrees_kept, branches_kept } = deletion;
        const [deletes, keeps] = options.dryRun ? ['would delete', 'would keep'] : ['deleted', 'kept'];
        printStatus(io, `${deletes} ${id} and ${agents.length} ${agents.length === 1 ? 'agent' : 'agents'}`);
        for (const { workdir, reason } of worktrees_kept)
          printStatus(io, printable(`${keeps} ${workdir}: ${reason}`));
        for (const { branch, reason } of branches_kept)
          printStatus(io, printable(`${keeps} branch ${branch}: ${reason}`));
        if (worktrees_kept.length > 0 && !options.dryRun)
          printStatus(io, 'to remove them later: svc worktrees ls --kept');
      });
    });
}

function addComplete(runs: Command, context: Context): void {
  const { io } = context;
  withJson(remote(runs, 'complete <run>', 'complete a run'), 'output', 'the output, any JSON').action(
    async (ref: string, options: Options) => {
      const output = await parseJsonOption(io, 'output', options);
      const api = await connect(context, options);
      const body = output === undefined ? {} : { output };
      const args = { params: await resolveRunParams(api, ref), body, idempotency_key: crypto.randomUUID() };
      await watchOrReport(context, api, await api.call('completeRun', args), options);
    },
  );
}

function addFail(runs: Command, context: Context): void {
  remote(runs, 'fail <run>', 'fail a run')
    .requiredOption('--error <text>', 'the reason')
    .action(async (ref: string, options: Options & { error: string }) => {
      const api = await connect(context, options);
      const body = { error_text: options.error };
      const args = { params: await resolveRunParams(api, ref), body, idempotency_key: crypto.randomUUID() };
      await watchOrReport(context, api, await api.call('failRun', args), options);
    });
}

function addRunCommand(
  runs: Command,
  context: Context,
  op: 'cancelRun' | 'resumeRun' | 'restartRun',
  name: string,
  description: string,
): void {
  watchable(remote(runs, `${name} <run>`, description)).action(async (ref: string, options: Options) => {
    const api = await connect(context, options);
    const args = { params: await resolveRunParams(api, ref), idempotency_key: crypto.randomUUID() };
    await watchOrReport(context, api, await api.call(op, args), options);
  });
}

async function watchOrReport(context: Context, api: Api, run: RunRecord, options: Options): Promise<void> {
  if (options.watch) return void (await watchRun(context, api, run, options));
  await reportRun(context, run, options);
}

/** Prints the result of a command that started or changed a run. */
export function reportRun({ io }: Context, run: RunRecord, options: { json?: boolean }): Promise<void> {
  const line = `${run.id}  #${run.number}  ${run.status}`;
  return report(io, run, { line, columns }, options);
}

/** Adds `--watch` and `--timeout` to a command that starts or continues a run. */
export function watchable(command: Command): Command {
  return withTimeout(command.option('-w, --watch', watching), 'watch');
}

export async function resolveRunParams(api: Api, ref: string): Promise<{ team_id: string; run_id: string }> {
  const { id: run_id, team_id } = await findRun(api, ref);
  return { team_id, run_id };
}

/** What the records of both lists have. */
type ListedRecord = Pick<
  RunRecord,
  'id' | 'number' | 'status' | 'started_at' | 'ended_at' | 'created_at' | 'error' | 'attention'
>;

const columns: Column<Pick<RunRecord, 'id' | 'number' | 'status'>>[] = [
  { title: 'ID', value: (item) => item.id },
  { title: '#', value: (item) => item.number },
  { title: 'STATUS', value: (item) => item.status },
];
