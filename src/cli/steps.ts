/** `svc steps …`: the steps of a run, and the words of those who take them from outside. */
import type { Command } from 'commander';
import type { CallArgs } from '../contract/client.ts';
import { type Api, type ApiOptions, connect } from './api.ts';
import type { Context } from './context.ts';
import { failed } from './failure.ts';
import { givenJson, withJson } from './given-json.ts';
import { collect, remote, wholeNumber } from './options.ts';
import { type Column, printRecord, printRows, report } from './output.ts';
import { stepColumns } from './run-lines.ts';
import { paramsOf } from './runs.ts';
import { findRun } from './team-refs.ts';

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
  const { io } = context;
  const steps = program.command('steps').description('the steps of a run, and what is said of them');

  remote(steps, 'ls <run>', "list a run's steps, in their order")
    .alias('list')
    .action(async (ref: string, options: Options) => {
      const api = await connect(context, options);
      const run = await findRun(api, ref);
      const params = { team_id: run.team_id, run_id: run.id };
      const rows = await api.call('listSteps', { params });
      const by_key = new Map(rows.map((step) => [step.step_key, step]));
      await printRows(io, rows, stepColumns(run, by_key, Date.now()), options);
    });

  remote(steps, 'show <run> <step>', 'show a step whole')
    .alias('get')
    .action(async (ref: string, step_key: string, options: Options) => {
      const api = await connect(context, options);
      const all = await api.call('listSteps', { params: await paramsOf(api, ref) });
      const step = all.find((one) => one.step_key === step_key);
      if (!step) throw failed(`step not found: ${step_key}`);
      await printRecord(io, step, options);
    });

  const add = remote(steps, 'add <run> <step>', 'add a step to a run that is not over')
    .requiredOption('-m, --member <member>', 'whose it is')
    .option('--needs <step>', 'a step that has to be over first', collect)
    .option('--when <condition>', 'on_success, or always: whatever came of what it needs')
    .option('--prompt <text>', 'what its member is asked to do')
    .option('--timeout-seconds <n>', 'of one attempt', wholeNumber)
    .option('--attempts <n>', 'how often it is tried', wholeNumber);
  withJson(add, 'input', 'its input, any JSON').action(
    async (ref: string, step_key: string, options: AddOptions) => {
      const input = await givenJson(io, 'input', options);
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
      const args = { params: await paramsOf(api, ref), body, idempotency_key: crypto.randomUUID() };
      await tell(await api.call('addStep', args), options);
    },
  );

  remote(steps, 'start <run> <step>', 'begin a step of a member that is driven from outside').action(
    async (ref: string, step_key: string, options: Options) => {
      const api = await connect(context, options);
      await tell(await api.call('startStep', await argsOf(api, ref, step_key)), options);
    },
  );

  const complete = remote(steps, 'complete <run> <step>', 'say that a step is done');
  withJson(complete, 'output', 'its output, any JSON').action(
    async (ref: string, step_key: string, options: Options) => {
      const output = await givenJson(io, 'output', options);
      const api = await connect(context, options);
      const body = output === undefined ? {} : { output };
      await tell(await api.call('completeStep', { ...(await argsOf(api, ref, step_key)), body }), options);
    },
  );

  remote(steps, 'fail <run> <step>', 'say that a step has failed; it is not tried again')
    .requiredOption('--error <text>', 'why')
    .action(async (ref: string, step_key: string, options: Options & { error: string }) => {
      const api = await connect(context, options);
      const body = { error_text: options.error };
      await tell(await api.call('failStep', { ...(await argsOf(api, ref, step_key)), body }), options);
    });

  remote(steps, 'input-required <run> <step>', 'say that a step waits for somebody')
    .requiredOption('--reason <text>', 'what for')
    .action(async (ref: string, step_key: string, options: Options & { reason: string }) => {
      const api = await connect(context, options);
      const body = { reason: options.reason };
      const args = { ...(await argsOf(api, ref, step_key)), body };
      await tell(await api.call('requireStepInput', args), options);
    });

  const resume = remote(steps, 'resume <run> <step>', 'give a step what it waits for');
  withJson(resume, 'input', 'the answer, any JSON').action(
    async (ref: string, step_key: string, options: Options) => {
      const input = await givenJson(io, 'input', options);
      const api = await connect(context, options);
      const body = input === undefined ? {} : { input };
      await tell(await api.call('resumeStep', { ...(await argsOf(api, ref, step_key)), body }), options);
    },
  );

  async function argsOf(api: Api, ref: string, step_key: string) {
    const params = { ...(await paramsOf(api, ref)), step_key };
    return { params, idempotency_key: crypto.randomUUID() };
  }

  function tell(step: StepRecord, options: Options): Promise<void> {
    return report(io, step, { line: `${step.step_key}  ${step.status}`, columns }, options);
  }
}

const columns: Column<StepRecord>[] = [
  { title: 'STEP', value: ({ step_key }) => step_key },
  { title: 'STATUS', value: ({ status }) => status },
];
