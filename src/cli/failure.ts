/** How a command ends: the exit codes, and the error that carries one. */
import { Unreachable } from '../client/client.ts';
import { showArgv } from '../core/argv.ts';
import { Problem, problems, settingForRefusedPath } from '../core/problem.ts';

export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  /** What the command waited for failed or was cancelled. */
  bad_end: 3,
  unauthenticated: 4,
  /** The agent's node does not answer. */
  unreachable: 5,
  timeout: 124,
  interrupted: 130,
} as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Ends the command with an exit code; an empty message prints nothing. */
export class Failure extends Error {
  readonly exit: ExitCode;

  constructor(exit: ExitCode, message: string) {
    super(message);
    this.name = 'Failure';
    this.exit = exit;
  }
}

export function usage(message: string): Failure {
  return new Failure(exitCodes.usage, message);
}

export function failed(message: string): Failure {
  return new Failure(exitCodes.failed, message);
}

/** If `answer` fails with one of these codes, adds lines to the server's message that say how to fix it. */
export async function withExplanation<T>(
  answer: Promise<T>,
  codes: readonly string[],
  lines: () => Promise<string[]>,
): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof Problem && codes.includes(error.code))) throw error;
    throw failed([error.message, ...(await lines())].join('\n'));
  }
}

/** If `answer` fails because the agent `ref` does not run, says how to start it. */
export function withStartHint<T>(ref: string, answer: Promise<T>): Promise<T> {
  const lines = async () => [`start it: ${showArgv(['svc', 'agents', 'start', ref])}`];
  return withExplanation(answer, [problems.agentNotRunning().code], lines);
}

/** How to fix a rejected path. */
function formatRemedy(problem: Problem): string[] {
  const { allowed_paths = [], refused_path } = problem;
  const setting = settingForRefusedPath(problem);
  if (setting === null) return refused_path === undefined ? [] : [`path: ${refused_path}`];
  const allow = ['svc', 'config', 'allow', ...(setting === 'safe_paths' ? [] : ['--repositories'])];
  const command = showArgv([...allow, refused_path ?? '<folder>']);
  return [
    ...(refused_path === undefined ? [] : [`refused: ${refused_path}`]),
    ...(allowed_paths.length === 0
      ? ['no folder is allowed yet', `a root user can allow one: ${command}`]
      : [
          `allowed: ${allowed_paths.join(', ')}`,
          `choose a folder within one of them; a root user can allow others: ${command}`,
        ]),
    `on a remote node, add the folder to ${setting} in the configuration of that node`,
  ];
}

/** Whether the program that reads the output has ended, as in `svc logs | head`. */
export function isClosedOutput(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'EPIPE';
}

/** The exit code and message for any thrown value. */
export function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof Problem) {
    return new Failure(exitCodeFor(error), [error.message, ...formatRemedy(error)].join('\n'));
  }
  if (error instanceof Unreachable) {
    const cause = error.cause as { cause?: { code?: string }; code?: string } | undefined;
    const code = cause?.cause?.code ?? cause?.code;
    return failed(code ? `${error.message}: ${code}` : error.message);
  }
  return failed(error instanceof Error ? error.message : String(error));
}

function exitCodeFor({ kind, code }: Problem): ExitCode {
  if (kind === 'unauthenticated') return exitCodes.unauthenticated;
  return code === problems.nodeUnreachable().code ? exitCodes.unreachable : exitCodes.failed;
}
