/** `svc demo-agent`: a scripted ACP agent that needs no model, no network and no account. */
import { isAbsolute, join, resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type ModeId, modeIds } from '../tools/demo-agent/offers.ts';
import { limits } from '../tools/limits.ts';
import type { Context } from './context.ts';
import { exitCodes, Failure } from './failure.ts';
import { integer } from './options.ts';
import { createProgram, runProgram } from './program.ts';

interface Options {
  seed: number;
  speed: number;
  mode: ModeId;
  inputRequired?: string;
  auth?: boolean;
  state?: string;
}

type Io = Context['io'];

export function addDemoAgent(program: Command, io: Io): void {
  program
    .command('demo-agent')
    .description('run a scripted agent that speaks ACP on stdin and stdout')
    .option('--seed <n>', 'random seed; a different seed gives different text', integer, 1)
    .addOption(
      new Option('--speed <x>', 'speed factor: 2 is twice as fast, 0 does not wait at all')
        .env('DEMO_AGENT_SPEED')
        .argParser(parseSpeed)
        .default(1),
    )
    .addOption(new Option('--mode <mode>', 'initial mode of its sessions').choices(modeIds).default('ask'))
    .option('--input-required <question>', 'in a team, a question to ask a person in each step', findQuestion)
    .option('--auth', 'refuse to open a session until the user has signed in')
    .option('--state <dir>', 'where to keep its sessions (default: $XDG_STATE_HOME/svc-demo)')
    .action(async ({ seed, speed, mode, inputRequired, auth = false, state }: Options) => {
      const { serveDemo } = await import('../tools/demo-agent/serve.ts');
      const { membershipOf } = await import('../tools/demo-agent/team-turn.ts');
      const state_dir = state === undefined ? defaultStateDir(io) : resolve(io.cwd, state);
      const membership = membershipOf(io.env, inputRequired ?? null);
      await serveDemo({ seed, speed, auth, state_dir, mode, membership }, io);
      if (io.signal.aborted) throw new Failure(exitCodes.interrupted, '');
    });
}

/** Only this command, without the modules of the others, so that the agent starts quickly. */
export function runDemoAgent(argv: readonly string[], io: Io): Promise<number> {
  const program = createProgram(io);
  addDemoAgent(program, io);
  return runProgram(program, argv, io);
}

function defaultStateDir({ env, home }: Io): string {
  const base = env.XDG_STATE_HOME;
  return join(base && isAbsolute(base) ? base : join(home, '.local/state'), 'svc-demo');
}

function parseSpeed(text: string): number {
  const speed = Number(text);
  const { demo_speed_min: min, demo_speed_max: max } = limits;
  if (/^[\d.]+$/.test(text) && (speed === 0 || (speed >= min && speed <= max))) return speed;
  throw new InvalidArgumentError(`must be 0, or a number from ${min} to ${max}`);
}

function findQuestion(text: string): string {
  const max = limits.demo_question_chars_max;
  if (text.trim() !== '' && text.length <= max) return text;
  throw new InvalidArgumentError(`must be 1 to ${max} characters`);
}
