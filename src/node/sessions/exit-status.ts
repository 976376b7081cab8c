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
  /** Null if the command was never started. What failed before it left the reason on stderr. */
  exit: Exit | null;
  ended_at_ms: number;
  /** Seconds since boot when the wrapper saw the end; null if unknown. */
  uptime_s: number | null;
  /** False if no process can still be running: the host has restarted, or nothing was started. */
  processes: boolean;
}

/** Signals whose names a shell does not print. */
const UNNAMED = new Set([system.signals.SIGINT, system.signals.SIGPIPE]);

/** Null if `spawn` is null, because the inner shell wrote no result. */
export async function interpretExit(
  file: ExitFile,
  spawn: SpawnFile | null,
  workdir: string,
): Promise<Exit | null> {
  if (!spawn) return null;
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

/** The exit of a command that was never started. `stderr`: its last bytes. The message is the last line. */
export function neverStarted(stderr: string): Exit {
  const last = (stderr.trim().split('\n').at(-1) ?? '').replace(/[\x00-\x1f\x7f]+/g, ' ');
  return failed('spawn_failed', last || 'the command could not be started');
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
