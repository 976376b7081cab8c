/**
 * Works out how a command ended from what the wrapper wrote. A shell reports 128 + n both for a process killed by
 * signal n and for `exit 128+n`, but prints the signal's name on stderr only in the first case. For SIGINT and SIGPIPE
 * it never prints a name, so these statuses are assumed to be signals.
 */
import { access, constants as files, open } from 'node:fs/promises';
import { constants as system } from 'node:os';
import { resolve } from 'node:path';
import type { Exit } from '../../core/session.ts';
import type { ExitFile, SpawnFile } from './session-files.ts';

/** How and when a session ended. */
export interface Outcome {
  exit: Exit;
  ended_at_ms: number;
  /** Seconds since boot when the wrapper saw the end; null if unknown. */
  uptime_s: number | null;
  /** False if no process can still be running: the host has restarted, or nothing was started. */
  processes: boolean;
}

/** Signals whose names a shell does not print. */
const UNNAMED = new Set([system.signals.SIGINT, system.signals.SIGPIPE]);

/**
 * `spawn` is null if the inner shell wrote no result. The message is then the result of `lastError`: the last line on
 * the agent's stderr.
 */
export async function interpretExit(
  file: ExitFile,
  spawn: SpawnFile | null,
  workdir: string,
  lastError: () => string,
): Promise<Exit> {
  if (!spawn) return failed('spawn_failed', lastError() || 'the command could not be started');
  if (!spawn.ok) return failed(spawn.reason, spawn.message);
  if (file.status === 126 || file.status === 127) {
    const missing = await missingInterpreter(resolve(workdir, spawn.program));
    if (missing) return failed('spawn_failed', `${spawn.program}: bad interpreter: ${missing}`);
  }
  const number = file.status - 128;
  if (number > 0 && (file.shell_output !== '' || UNNAMED.has(number))) {
    const name = Object.entries(system.signals).find(([, value]) => value === number)?.[0];
    return { exit_code: null, exit_signal: name ?? `SIGRT${number}`, reason: 'signal', message: null };
  }
  const reason = file.status === 0 ? null : 'exit_code';
  return { exit_code: file.status, exit_signal: null, reason, message: null };
}

/** The exit of a session without an exit code. */
export function failed(reason: NonNullable<Exit['reason']>, message: string | null): Exit {
  return { exit_code: null, exit_signal: null, reason, message };
}

/** The interpreter in the first line of a script if it cannot be executed; null otherwise. */
async function missingInterpreter(program: string): Promise<string | null> {
  try {
    const file = await open(program, files.O_RDONLY | files.O_NONBLOCK);
    let line: string | undefined;
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(256), 0, 256, 0);
      line = /^#![ \t]*([^ \t\n]+)/.exec(buffer.toString('latin1', 0, bytesRead))?.[1];
    } finally {
      await file.close();
    }
    if (!line) return null;
    return await access(line, files.X_OK).then(
      () => null,
      () => line,
    );
  } catch {
    return null;
  }
}
