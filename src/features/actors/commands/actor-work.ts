/** `svc actor team-members|run-members|step-…|run-…`: the team, its steps and the run. */
import { usage } from '../../../cli/failure.ts';
import { collect } from '../../../cli/options.ts';
import { type ActorOptions, type ActorSurface, readJson, readOutput } from './actor-surface.ts';

interface StepOptions extends ActorOptions {
  stepKey?: string;
  output?: string;
  errorText: string;
  reason: string;
}

interface StepAddOptions extends ActorOptions {
  stepKey: string;
  member: string;
  dependsOn?: string[];
  prompt?: string;
  input?: string;
}

const OUTPUT = 'the result: JSON or text';
const ERROR_TEXT = 'the reason, in one line';

export function addActorWork(surface: ActorSurface): void {
  surface
    .commandInRun('team-members', 'list the members of the team and their skills')
    .action(async (options: ActorOptions) => {
      await surface.print(await surface.ask(options, 'team-members', {}));
    });
  surface
    .commandInRun('run-members', 'list the members of the run and their state')
    .action(async (options: ActorOptions) => {
      await surface.print(await surface.ask(options, 'run-members', {}));
    });
  addSteps(surface);
  addRuns(surface);
}

function addSteps(surface: ActorSurface): void {
  const requireStepKey = ({ stepKey }: StepOptions) => {
    const step_key = stepKey ?? surface.context.io.env.SVC_STEP_KEY;
    if (!step_key) throw usage('--step-key is required');
    return step_key;
  };
  surface
    .commandInRun('step-list', 'list the steps of the run, or show one by its key')
    .option('--step-key <key>', 'show only this step, with its prompt, input and output')
    .action(async (options: StepOptions) => {
      const { stepKey: step_key } = options;
      const params = step_key === undefined ? {} : { step_key };
      await surface.print(await surface.ask(options, 'step-list', params));
    });
  surface
    .commandInRun('step-add', 'add a step to the run, for a member (leaders)')
    .requiredOption('--step-key <key>', 'key of the step, unique within the run')
    .requiredOption('--member <id>', 'the member that works on it')
    .option('--prompt <text>', 'the work to do')
    .option('--depends-on <key>', 'a step that must finish first (repeatable)', collect)
    .option('--input <json>', 'input of the step')
    .action(async ({ stepKey, member, dependsOn, prompt, input, ...options }: StepAddOptions) => {
      await surface.print(
        await surface.ask(options, 'step-add', {
          ...{ step_key: stepKey, member_id: member },
          ...(dependsOn !== undefined && { depends_on: dependsOn }),
          ...(prompt !== undefined && { prompt }),
          ...(input !== undefined && { input: readJson(input, '--input') }),
        }),
      );
    });
  surface
    .commandInRun('step-complete', 'complete a step')
    .option('--step-key <key>', 'the step (SVC_STEP_KEY)')
    .option('--output <output>', OUTPUT)
    .action(async (options: StepOptions) => {
      const params = { step_key: requireStepKey(options), output: readOutput(options.output) };
      await surface.print(await surface.ask(options, 'step-complete', params));
    });
  surface
    .commandInRun('step-fail', 'fail a step')
    .option('--step-key <key>', 'the step (SVC_STEP_KEY)')
    .requiredOption('--error-text <text>', ERROR_TEXT)
    .action(async (options: StepOptions) => {
      const params = { step_key: requireStepKey(options), error_text: options.errorText };
      await surface.print(await surface.ask(options, 'step-fail', params));
    });
  surface
    .commandInRun('step-input-required', 'report that a step needs an answer from a person')
    .option('--step-key <key>', 'the step (SVC_STEP_KEY)')
    .requiredOption('--reason <text>', 'the question')
    .action(async (options: StepOptions) => {
      const params = { step_key: requireStepKey(options), reason: options.reason };
      await surface.print(await surface.ask(options, 'step-input-required', params));
    });
}

function addRuns(surface: ActorSurface): void {
  surface
    .commandInRun('run-complete', 'complete the run with its result (leaders)')
    .option('--output <output>', OUTPUT)
    .action(async ({ output, ...options }: StepOptions) => {
      await surface.print(await surface.ask(options, 'run-complete', { output: readOutput(output) }));
    });
  surface
    .commandInRun('run-fail', 'fail the run (leaders)')
    .requiredOption('--error-text <text>', ERROR_TEXT)
    .action(async ({ errorText: error_text, ...options }: StepOptions) => {
      await surface.print(await surface.ask(options, 'run-fail', { error_text }));
    });
}
