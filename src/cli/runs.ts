/** `svc runs …`: what teams do, and people's words to it. */
import type { Command } from 'commander';
import { limits } from '../base/limits.ts';
import type { RunStatus } from '../domain/run.ts';
import { type Api, type ApiOptions, connect } from './api.ts';
import type { Context } from './context.ts';
import { usage } from './failure.ts';
import { givenJson, givenObject, withJson } from './given-json.ts';
import { remote, timeLimit } from './options.ts';
import { type Column, print, printJson, printRecord, printRows, report } from './output.ts';
import { stepColumns, timeOf } from './run-lines.ts';
import { type WatchOptions, watchRun } from './run-watch.ts';
import { findRun, findTeam, type RunRecord } from './team-refs.ts';

type Options = ApiOptions & WatchOptions & { watch?: boolean };

const run = 'by id, or as <team>#<number>';
const watching = 'watch it until it is over; exit code 3 when it failed or was cancelled';

export function addRuns(program: Command, context: Context): void {
  const { io } = context;
  const runs = program
    .command('runs')
    .description(`run teams, and watch what they do; a run is named ${run}`);

  remote(runs, 'ls <team>', "list a team's runs, newest first")
    .alias('list')
    .option('--status <status>', 'only runs with this status')
    .action(async (ref: string, options: Options & { status?: RunStatus }) => {
      const api = await connect(context, options);
      const { id: team_id } = await findTeam(api, ref);
      const query = { status: options.status, limit: limits.cli_run_page_items };
      const now = Date.now();
      await printRows(
        io,
        await api.all('listRuns', { params: { team_id }, query }),
        [
          ...columns,
          { title: 'TIME', value: (one) => timeOf(one, now) },
          { title: 'CREATED', value: (one) => one.created_at },
          { title: 'ERROR', value: (one) => one.error ?? one.attention },
        ],
        options,
      );
    });

  watchable(
    withJson(remote(runs, 'create <team>', 'run a team'), 'input', 'its input, a JSON object'),
  ).action(async (ref: string, options: Options) => {
    const input = await givenObject(io, 'input', options);
    const api = await connect(context, options);
    const team = await findTeam(api, ref);
    const made = await api.call('createRun', {
      params: { team_id: team.id },
      body: input === undefined ? {} : { input },
      idempotency_key: crypto.randomUUID(),
    });
    await finish(api, made, options);
  });

  remote(runs, 'show <run>', 'show a run, who takes part in it, and its steps; --json: its record')
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
      if (steps.length === 0) return;
      await print(io, '\n');
      const by_key = new Map(steps.map((step) => [step.step_key, step]));
      await printRows(io, steps, stepColumns(found, by_key, Date.now()), options);
    });

  remote(runs, 'watch <run>', 'show what a run does until it is over; 3 when it failed or was cancelled')
    .option('--timeout <duration>', 'give up after (exit code 124)', timeLimit)
    .action(async (ref: string, options: Options) => {
      const api = await connect(context, options);
      await watchRun(context, api, await findRun(api, ref), options);
    });

  addWord('cancelRun', 'cancel', 'end a run, and whatever of it goes on');
  addWord('resumeRun', 'resume', 'go on with a failed, cancelled or waiting run, from what did not complete');
  addWord('restartRun', 'restart', 'do a whole run again');

  withJson(remote(runs, 'complete <run>', 'say that a run is done'), 'output', 'its output, any JSON').action(
    async (ref: string, options: Options) => {
      const output = await givenJson(io, 'output', options);
      const api = await connect(context, options);
      const body = output === undefined ? {} : { output };
      const args = { params: await paramsOf(api, ref), body, idempotency_key: crypto.randomUUID() };
      await finish(api, await api.call('completeRun', args), options);
    },
  );

  remote(runs, 'fail <run>', 'say that a run has failed')
    .requiredOption('--error <text>', 'why')
    .action(async (ref: string, options: Options & { error: string }) => {
      const api = await connect(context, options);
      const body = { error_text: options.error };
      const args = { params: await paramsOf(api, ref), body, idempotency_key: crypto.randomUUID() };
      await finish(api, await api.call('failRun', args), options);
    });

  remote(runs, 'mail <run>', 'list all mail of a run, oldest first, without what it says').action(
    async (ref: string, options: Options) => {
      const api = await connect(context, options);
      const { id: run_id } = await findRun(api, ref);
      await printRows(
        io,
        await api.all('listRunMail', { params: { run_id } }),
        [
          { title: 'ID', value: (mail) => mail.id },
          { title: 'FROM', value: (mail) => mail.from_actor_id },
          { title: 'TO', value: (mail) => mail.to_actor_id },
          { title: 'STATUS', value: (mail) => mail.status },
          { title: 'CREATED', value: (mail) => mail.created_at },
          { title: 'REASON', value: (mail) => mail.reason },
        ],
        options,
      );
    },
  );

  function addWord(op: 'cancelRun' | 'resumeRun' | 'restartRun', name: string, description: string): void {
    watchable(remote(runs, `${name} <run>`, description)).action(async (ref: string, options: Options) => {
      const api = await connect(context, options);
      const args = { params: await paramsOf(api, ref), idempotency_key: crypto.randomUUID() };
      await finish(api, await api.call(op, args), options);
    });
  }

  async function finish(api: Api, made: RunRecord, options: Options): Promise<void> {
    if (options.watch) return void (await watchRun(context, api, made, options));
    await reportRun(context, made, options);
  }
}

/** What a command answers that began or changed a run. */
export function reportRun({ io }: Context, made: RunRecord, options: { json?: boolean }): Promise<void> {
  const line = `${made.id}  #${made.number}  ${made.status}`;
  return report(io, made, { line, columns }, options);
}

/** A command that begins something of a run, and may stay to see what comes of it. */
export function watchable(command: Command): Command {
  return command
    .option('-w, --watch', watching)
    .option('--timeout <duration>', 'with --watch: give up after (exit code 124)', timeLimit)
    .hook('preAction', () => {
      const { watch, timeout } = command.opts<{ watch?: boolean; timeout?: number }>();
      if (timeout !== undefined && !watch) throw usage('--timeout needs --watch');
    });
}

export async function paramsOf(api: Api, ref: string): Promise<{ team_id: string; run_id: string }> {
  const { id: run_id, team_id } = await findRun(api, ref);
  return { team_id, run_id };
}

const columns: Column<RunRecord>[] = [
  { title: 'ID', value: (one) => one.id },
  { title: '#', value: (one) => one.number },
  { title: 'STATUS', value: (one) => one.status },
];
