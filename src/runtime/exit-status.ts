/**
 * From what the wrapper wrote to what happened. A shell gives 128 + n for a death by signal n and for `exit 128+n`
 * alike, but names the signal on its stderr only in the first case (never for SIGINT and SIGPIPE: there a death by
 * signal is assumed).
 */
import { access, constants as files, open } from 'node:fs/promises';
import { constants as system } from 'node:os';
import { resolve } from 'node:path';
import type { Exit } from '../domain/session.ts';
import type { ExitFile, SpawnFile } from './session-files.ts';

const QUIET = new Set([system.signals.SIGINT, system.signals.SIGPIPE]);

/** `complaint`: the last words on the agent's stderr, for a start that got no verdict. */
export async function explainExit(
  file: ExitFile,
  spawn: SpawnFile | null,
  workdir: string,
  complaint: () => Promise<string>,
): Promise<Exit> {
  if (!spawn) return failed('spawn_failed', (await complaint()) || 'the command could not be started');
  if (!spawn.ok) return failed(spawn.reason, spawn.message);
  if (file.status === 126 || file.status === 127) {
    const missing = await missingInterpreter(resolve(workdir, spawn.program));
    if (missing) return failed('spawn_failed', `${spawn.program}: bad interpreter: ${missing}`);
  }
  const number = file.status - 128;
  if (number > 0 && (file.said !== '' || QUIET.has(number))) {
    const name = Object.entries(system.signals).find(([, value]) => value === number)?.[0];
    return { exit_code: null, exit_signal: name ?? `SIGRT${number}`, reason: 'signal', message: null };
  }
  const reason = file.status === 0 ? null : 'exit_code';
  return { exit_code: file.status, exit_signal: null, reason, message: null };
}

export function failed(reason: NonNullable<Exit['reason']>, message: string | null): Exit {
  return { exit_code: null, exit_signal: null, reason, message };
}

/** The interpreter that a script names in its first line, when it cannot be run. */
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
