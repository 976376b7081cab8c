/** Runs one command for several items named on the command line. */
import type { Io } from '../../../cli/context.ts';
import { type ExitCode, exitCodes, Failure, isClosedOutput, toFailure } from '../../../cli/failure.ts';
import { printStatus } from '../../../cli/output.ts';
import { printable } from '../../../cli/terminal.ts';

/** Exit codes in order of precedence: the first that applies to any item is the command's. */
const order: readonly ExitCode[] = [exitCodes.failed, exitCodes.unreachable];

/**
 * Runs the command for each item, even if it fails for others. Failures are reported immediately, with the item's name if
 * there are several. Throws the error that decides the exit code. A rejected token ends the loop, because it would be
 * rejected every time. A closed output is not a failure of an item.
 */
export async function each(
  io: Io,
  refs: readonly string[],
  act: (ref: string) => Promise<void>,
): Promise<void> {
  if (refs.length === 1) return act(refs[0]!);
  const ends = new Set<ExitCode>();
  let closed_output: unknown;
  for (const ref of refs) {
    try {
      await act(ref);
    } catch (error) {
      if (isClosedOutput(error)) {
        closed_output = error;
        continue;
      }
      const failure = toFailure(error);
      if (io.signal.aborted || failure.exit === exitCodes.unauthenticated) throw error;
      ends.add(failure.exit);
      for (const line of failure.message.split('\n')) printStatus(io, printable(`svc: ${ref}: ${line}`));
    }
  }
  if (ends.size > 0) throw new Failure(order.find((code) => ends.has(code)) ?? exitCodes.failed, '');
  if (closed_output !== undefined) throw closed_output;
}
