/** The stdin journal of a session: what the plane has sent, from which the feeder copies to the command. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { Problem, problems } from '../../core/problem.ts';
import type { SessionFiles } from './session-files.ts';

/** Codes of errors with which a file that was deleted or replaced is opened. */
const GONE: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ELOOP', 'EISDIR', 'ENOTDIR', 'ENXIO']);

/**
 * Appends the bytes of `data`, which begins at `offset` of stdin, that the journal does not have yet, and flushes them to disk.
 * `eof`: they are the last ones. Returns the length of the journal. Idempotent; one call at a time per session. Throws
 * `stdin_gap` if bytes before `offset` are missing, `agent_no_stdin` if stdin has ended or its journal was deleted, and errno
 * errors.
 */
export async function appendInput(
  files: SessionFiles,
  { offset, data, eof }: { offset: number; data: Uint8Array; eof: boolean },
): Promise<number> {
  const flags = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
  const path = files.path('stdin');
  const file = await open(path, flags)
    .catch((error: unknown) => {
      files.restore('stdin', error);
      return open(path, flags);
    })
    .catch((error: NodeJS.ErrnoException) => {
      // An agent that runs as the service's user has deleted or replaced it.
      throw GONE.has(error.code) ? problems.agentNoStdin() : error;
    });
  let length: number;
  try {
    const { size } = await file.stat();
    if (offset > size) throw new Problem('conflict', 'stdin_gap', `stdin ends at ${size}`);
    const fresh = data.subarray(size - offset);
    // Nothing more is read after the end of stdin.
    if (fresh.length > 0 && files.has('stdin.eof')) throw problems.agentNoStdin();
    for (let done = 0; done < fresh.length; ) {
      done += (await file.write(fresh, done, fresh.length - done, size + done)).bytesWritten;
    }
    length = size + fresh.length;
    if (fresh.length > 0) await file.datasync();
  } finally {
    await file.close();
  }
  if (eof) files.mark('stdin.eof');
  return length;
}

/** Whether this is an error of the file system that will not go away when the load does, such as a full disk. */
export function isLastingFileError(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return !(error instanceof Problem) && code !== undefined && code !== 'EMFILE' && code !== 'ENFILE';
}
