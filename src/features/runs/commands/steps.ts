/** `svc steps …`: lists, adds and controls steps, including those of members without an agent. */
import type { Command } from 'commander';
import { type Api, type ApiOptions, connect } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { failed } from '../../../cli/failure.ts';
import { parseJsonOption, withJson } from '../../../cli/json-options.ts';
import { collect, integer, remote } from '../../../cli/options.ts';
import { type Column, printRecord, printRows, printStatus, report } from '../../../cli/output.ts';
import type { CallArgs } from '../../../client/client.ts';
import { findRun } from '../../teams/commands/team-refs.ts';
import { stepColumns, waitingColumns } from './run-lines.ts';
import { outputCommand } from './run-watch.ts';
import { resolveRunParams } from './runs.ts';

type Options = ApiOptions & { json?: boolean };
type StepRecord = Awaited<ReturnType<typeof Api.prototype.call<'startStep'>>>;

interface AddOptions extends Options {
  member: string;
  needs?: string[];
  when?: string;
  prompt?: string;
  timeoutSeconds?: number;
  attempts?: number;
}

export function addSteps(program: Command, context: Context): void {
  const steps = program.command('steps').description('list, add and control the steps of a run');
  addLs(steps, context);
  addWaiting(steps, context);
  addShow(steps, context);
  addAdd(steps, context);
  addStart(steps, context);
  addComplete(steps, context);
  addFail(steps, context);
  addInputRequired(steps, context);
  addResume(steps, context);
}

function addLs(steps: Command, context: Context): void {
  const { io } = context;
  remote(steps, 'ls <run>', 'list the steps of a run in order')
    .alias('list')
    .action(async (ref: string, options: Options) => {
      const api = await connect(context, options);
      const run = await findRun(api, ref);
      const params = { team_id: run.team_id, run_id: run.id };
      const rows = await api.call('listSteps', { params });
      const by_key = new Map(rows.map((step) => [step.step_key, step]));
      await printRows(io, rows, stepColumns(run, by_key, Date.now()), options);
    });
}

function addWaiting(steps: Command, context: Context): void {
  const { io } = context;
  remote(steps, 'waiting', 'list the steps that wait for an answer, in all runs, oldest first').action(
    async (options: Options) => {
      const api = await connect(context, options);
      await printRows(io, await api.all('listWaitingSteps', {}), waitingColumns(Date.now()), options);
    },
  );
}

function addShow(steps: Command, context: Context): void {
  const { io } = context;
  remote(steps, 'show <run> <step>', 'show a step with its input and output')
    .alias('get')
    .action(async (ref: string, step_key: string, options: Options) => {
      const api = await connect(context, options);
      const all = await api.call('listSteps', { params: await resolveRunParams(api, ref) });
      const step = all.find((item) => item.step_key === step_key);
      if (!step) throw failed(`step not found: ${step_key}`);
      await printRecord(io, step, options);
      const command = options.json ? null : await outputCommand(api, step);
      if (command !== null) printStatus(io, `for all of its output: ${command}`);
    });
}

function addAdd(steps: Command, context: Context): void {
  const { io } = context;
  const add = remote(steps, 'add <run> <step>', 'add a step to a run that has not ended')
    .requiredOption('-m, --member <member>', 'the member that works on it')
    .option('--needs <step>', 'a step that must finish first (repeatable)', collect)
    .option('--when <condition>', 'on_success, or always: even if a step it depends on fails')
    .option('--prompt <text>', 'what the member should do')
    .option('--timeout-seconds <n>', 'time limit of one attempt', integer)
    .option('--attempts <n>', 'maximum number of attempts', integer);
  withJson(add, 'input', 'the input, any JSON').action(
    async (ref: string, step_key: string, options: AddOptions) => {
      const input = await parseJsonOption(io, 'input', options);
      const api = await connect(context, options);
      const { member, needs, when, prompt, timeoutSeconds, attempts } = options;
      const body: CallArgs<'addStep'>['body'] = {
        step_key,
        member_id: member,
        ...(needs && { depends_on: needs }),
        ...(when !== undefined && { when: when as 'always' }),
        ...(prompt !== undefined && { prompt }),
        ...(input !== undefined && { input }),
        ...(timeoutSeconds !== undefined && { timeout_seconds: timeoutSeconds }),
        ...(attempts !== undefined && { max_attempts: attempts }),
      };
      const args = { params: await resolveRunParams(api, ref), body, idempotency_key: crypto.randomUUID() };
      await reportStep(context, await api.call('addStep', args), options);
    },
  );
}

function addStart(steps: Command, context: Context): void {
  remote(steps, 'start <run> <step>', 'start a step of a member that has no agent').action(
    async (ref: string, step_key: string, options: Options) => {
      const api = await connect(context, options);
      await reportStep(
        context,
        await api.call('startStep', await resolveStepArgs(api, ref, step_key)),
        options,
      );
    },
  );
}

function addComplete(steps: Command, context: Context): void {
  const { io } = context;
  const complete = remote(steps, 'complete <run> <step>', 'complete a step');
  withJson(complete, 'output', 'the output, any JSON').action(
    async (ref: string, step_key: string, options: Options) => {
      const output = await parseJsonOption(io, 'output', options);
      const api = await connect(context, options);
      const body = output === undefined ? {} : { output };
      await reportStep(
        context,
        await api.call('completeStep', { ...(await resolveStepArgs(api, ref, step_key)), body }),
        options,
      );
    },
  );
}

function addFail(steps: Command, context: Context): void {
  remote(steps, 'fail <run> <step>', 'fail a step; it is not retried')
    .requiredOption('--error <text>', 'the reason')
    .action(async (ref: string, step_key: string, options: Options & { error: string }) => {
      const api = await connect(context, options);
      const body = { error_text: options.error };
      await reportStep(
        context,
        await api.call('failStep', { ...(await resolveStepArgs(api, ref, step_key)), body }),
        options,
      );
    });
}

function addInputRequired(steps: Command, context: Context): void {
  remote(steps, 'input-required <run> <step>', 'report that a step needs an answer from a person')
    .requiredOption('--reason <text>', 'the question')
    .action(async (ref: string, step_key: string, options: Options & { reason: string }) => {
      const api = await connect(context, options);
      const body = { reason: options.reason };
      const args = { ...(await resolveStepArgs(api, ref, step_key)), body };
      await reportStep(context, await api.call('requireStepInput', args), options);
    });
}

function addResume(steps: Command, context: Context): void {
  const { io } = context;
  const resume = remote(steps, 'resume <run> <step>', 'answer a step that needs input');
  withJson(resume, 'input', 'the answer, any JSON').action(
    async (ref: string, step_key: string, options: Options) => {
      const input = await parseJsonOption(io, 'input', options);
      const api = await connect(context, options);
      const body = input === undefined ? {} : { input };
      await reportStep(
        context,
        await api.call('resumeStep', { ...(await resolveStepArgs(api, ref, step_key)), body }),
        options,
      );
    },
  );
}

async function resolveStepArgs(api: Api, ref: string, step_key: string) {
  const params = { ...(await resolveRunParams(api, ref)), step_key };
  return { params, idempotency_key: crypto.randomUUID() };
}

function reportStep(context: Context, step: StepRecord, options: Options): Promise<void> {
  const { io } = context;
  return report(io, step, { line: `${step.step_key}  ${step.status}`, columns }, options);
}

const columns: Column<StepRecord>[] = [
  { title: 'STEP', value: ({ step_key }) => step_key },
  { title: 'STATUS', value: ({ status }) => status },
];
