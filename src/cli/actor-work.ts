/** `svc actor team-members|run-members|step-…|run-…|time-trigger-…`: the team, its steps, and what is to come later. */
import { type ActorOptions, type ActorSurface, readJson, readOutput } from './actor-surface.ts';
import { usage } from './failure.ts';
import { collect, wholeNumber } from './options.ts';

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

interface TriggerOptions extends ActorOptions {
  at?: string;
  everySeconds?: number;
  cron?: string;
  timezone?: string;
  payload: string;
}

const OUTPUT = 'what came of it: JSON, or text';
const ERROR_TEXT = 'why, in a line';

export function addActorWork(surface: ActorSurface): void {
  surface
    .commandInRun('team-members', 'who is in the team, and what they can do')
    .action(async (options: ActorOptions) => {
      await surface.print(await surface.ask(options, 'team-members', {}));
    });
  surface
    .commandInRun('run-members', 'how the members of the run do')
    .action(async (options: ActorOptions) => {
      await surface.print(await surface.ask(options, 'run-members', {}));
    });
  addSteps(surface);
  addRuns(surface);
  addTriggers(surface);
}

function addSteps(surface: ActorSurface): void {
  const keyOf = ({ stepKey }: StepOptions) => {
    const step_key = stepKey ?? surface.context.io.env.SVC_STEP_KEY;
    if (!step_key) throw usage('--step-key is required');
    return step_key;
  };
  surface
    .commandInRun('step-list', 'the steps of the run; one whole, by its key')
    .option('--step-key <key>', 'only this one, with its prompt, input and output')
    .action(async (options: StepOptions) => {
      const { stepKey: step_key } = options;
      const asked = step_key === undefined ? {} : { step_key };
      await surface.print(await surface.ask(options, 'step-list', asked));
    });
  surface
    .commandInRun('step-add', 'add a step to the run, for a member (leaders)')
    .requiredOption('--step-key <key>', 'its name within the run')
    .requiredOption('--member <id>', 'who takes it')
    .option('--prompt <text>', 'what is to be done')
    .option('--depends-on <key>', 'a step that comes first; repeat it for several', collect)
    .option('--input <json>', 'what it is given')
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
    .commandInRun('step-complete', 'say that a step is done')
    .option('--step-key <key>', 'which (SVC_STEP_KEY)')
    .option('--output <output>', OUTPUT)
    .action(async (options: StepOptions) => {
      const said = { step_key: keyOf(options), output: readOutput(options.output) };
      await surface.print(await surface.ask(options, 'step-complete', said));
    });
  surface
    .commandInRun('step-fail', 'say that a step cannot be done')
    .option('--step-key <key>', 'which (SVC_STEP_KEY)')
    .requiredOption('--error-text <text>', ERROR_TEXT)
    .action(async (options: StepOptions) => {
      const said = { step_key: keyOf(options), error_text: options.errorText };
      await surface.print(await surface.ask(options, 'step-fail', said));
    });
  surface
    .commandInRun('step-input-required', 'say that a step waits for an answer from somebody')
    .option('--step-key <key>', 'which (SVC_STEP_KEY)')
    .requiredOption('--reason <text>', 'what is asked')
    .action(async (options: StepOptions) => {
      const said = { step_key: keyOf(options), reason: options.reason };
      await surface.print(await surface.ask(options, 'step-input-required', said));
    });
}

function addRuns(surface: ActorSurface): void {
  surface
    .commandInRun('run-complete', 'end the run with its result (leaders)')
    .option('--output <output>', OUTPUT)
    .action(async ({ output, ...options }: StepOptions) => {
      await surface.print(await surface.ask(options, 'run-complete', { output: readOutput(output) }));
    });
  surface
    .commandInRun('run-fail', 'end the run without one (leaders)')
    .requiredOption('--error-text <text>', ERROR_TEXT)
    .action(async ({ errorText: error_text, ...options }: StepOptions) => {
      await surface.print(await surface.ask(options, 'run-fail', { error_text }));
    });
}

function addTriggers(surface: ActorSurface): void {
  surface
    .commandInRun('time-trigger-list', 'the times at which you get a message')
    .action(async (options: ActorOptions) => {
      await surface.print(await surface.ask(options, 'time-trigger-list', {}));
    });
  surface
    .commandInRun('time-trigger-set', 'get a message at a time, or again and again')
    .option('--at <time>', 'once, for example 2027-01-31T09:00:00Z')
    .option('--every-seconds <n>', 'again after so long', wholeNumber)
    .option('--cron <expression>', 'again by the calendar, for example "0 9 * * 1-5"')
    .option('--timezone <zone>', 'of --cron, for example Europe/Berlin')
    .requiredOption('--payload <json>', 'the message: a JSON object')
    .action(async ({ at, everySeconds, cron, timezone, payload, ...options }: TriggerOptions) => {
      if ([at, everySeconds, cron].filter((given) => given !== undefined).length !== 1)
        throw usage('give one of --at, --every-seconds and --cron');
      await surface.print(
        await surface.ask(options, 'time-trigger-set', {
          ...(at !== undefined && { at }),
          ...(everySeconds !== undefined && { every_seconds: everySeconds }),
          ...(cron !== undefined && { cron }),
          ...(timezone !== undefined && { timezone }),
          payload: readJson(payload, '--payload') as Record<string, unknown>,
        }),
      );
    });
  surface
    .command('time-trigger-cancel', 'get no more messages of a trigger')
    .requiredOption('--trigger-id <id>', 'which')
    .action(async ({ triggerId: trigger_id, ...options }: ActorOptions & { triggerId: string }) => {
      await surface.print(await surface.ask(options, 'time-trigger-cancel', { trigger_id }));
    });
}
