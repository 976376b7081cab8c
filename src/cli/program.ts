/** Creates the program without commands, and runs one command of it. */
import { Command, CommanderError, Help } from 'commander';
import type { Io } from './context.ts';
import { exitCodes, isClosedOutput, toFailure } from './failure.ts';
import { printable } from './terminal.ts';

/** In lists of commands. Nearly all of them have options, so saying so would only make the lists wider. */
const termOf = (command: Command) => new Help().subcommandTerm(command).replace(' [options]', '');

export function createProgram(io: Io): Command {
  return (
    new Command('svc')
      .description('Self-hosted control plane that runs and supervises agent processes')
      .enablePositionalOptions()
      // Its own would show the help of the first name only.
      .helpCommand(false)
      .showHelpAfterError('(svc help lists all commands)')
      .exitOverride()
      .configureHelp({ subcommandTerm: termOf })
      .configureOutput({
        writeOut: (text) => void io.stdout.write(text),
        writeErr: (text) => void io.stderr.write(text),
        outputError: (text, write) => write(text.replace(/^error: /, 'svc: ')),
        getOutHelpWidth: () => io.stdout.columns ?? 80,
        getErrHelpWidth: () => 80,
      })
  );
}

/** Returns the exit code. `argv`: without node and script. */
export async function runProgram(program: Command, argv: readonly string[], io: Io): Promise<number> {
  try {
    await program.parseAsync([...argv], { from: 'user' });
    return exitCodes.ok;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    if (io.signal.aborted) return exitCodes.interrupted;
    if (isClosedOutput(error)) return exitCodes.ok;
    const failure = toFailure(error);
    if (failure.message !== '') {
      // Does not use `output.ts`, because loading it would slow down the start of the demo agent.
      for (const line of failure.message.split('\n')) io.stderr.write(`svc: ${printable(line)}\n`);
    }
    return failure.exit;
  }
}
