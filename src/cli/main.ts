/**
 * The command line: one file per noun, thin commands that parse, call and print. It touches the world only through the
 * context that it is given, and answers an exit code instead of ending the process.
 */
import { Command, CommanderError } from 'commander';
import { addActor } from './actor.ts';
import { addAgents } from './agents.ts';
import { addCompletion } from './completion.ts';
import { addConfig } from './config.ts';
import type { Context } from './context.ts';
import { asFailure, exitCodes } from './failure.ts';
import { addLogin } from './login.ts';
import { addLogs } from './logs.ts';
import { addMachine } from './machine.ts';
import { addNodes } from './nodes.ts';
import { say } from './output.ts';
import { addPresets } from './presets.ts';
import { visible } from './terminal.ts';
import { addTokens } from './tokens.ts';
import { addUsers } from './users.ts';

export function program(context: Context): Command {
  const { io, local } = context;
  const svc = new Command('svc')
    .description('Self-hosted control plane that runs and supervises agent processes')
    .version(local.version, '-V, --version')
    .enablePositionalOptions()
    .showHelpAfterError('(svc help shows what there is)')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
      getOutHelpWidth: () => io.stdout.columns ?? 80,
      getErrHelpWidth: () => 80,
    });
  addMachine(svc, context);
  addLogin(svc, context);
  addAgents(svc, context);
  addLogs(svc, context);
  addPresets(svc, context);
  addNodes(svc, context);
  addUsers(svc, context);
  addTokens(svc, context);
  addActor(svc, context);
  addConfig(svc, context);
  addCompletion(svc, context);
  return svc;
}

/** Runs one command; `argv` without node and script. */
export async function runCli(argv: readonly string[], context: Context): Promise<number> {
  const { io } = context;
  try {
    await program(context).parseAsync([...argv], { from: 'user' });
    return exitCodes.ok;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    if (io.signal.aborted) return exitCodes.interrupted;
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') return exitCodes.ok;
    const failure = asFailure(error);
    if (failure.message !== '') {
      for (const line of failure.message.split('\n')) say(io, `svc: ${visible(line)}`);
    }
    return failure.exit;
  }
}
