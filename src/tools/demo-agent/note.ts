/**
 * The one file that the demo agent reads and writes: `svc-demo.md` in the session's folder. It follows no link, does
 * not block on a pipe, and overwrites only content that it has shown.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { limits } from '../limits.ts';

export const NOTE = 'svc-demo.md';

const HEADING = '# Notes of the demo agent';
const NEXT = /\n\nNext: [^\n]*\n$/;
const { O_RDONLY, O_RDWR, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants;

/** Why the file cannot be read or written, as a message for the user. */
export class NoteError extends Error {}

/** The file's text, or null if there is no file. Throws `NoteError`. */
export async function readNote(cwd: string): Promise<string | null> {
  try {
    return await withNote(cwd, O_RDONLY, textOf);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw asNoteError(error);
  }
}

/** Writes `text` if the file still contains `shown`. Throws `NoteError`. */
export async function writeNote(cwd: string, shown: string | null, text: string): Promise<void> {
  try {
    await withNote(cwd, O_RDWR | O_CREAT, async (file) => {
      if ((await textOf(file)) !== (shown ?? '')) throw new NoteError(`${NOTE} has changed in the meantime`);
      await file.truncate(0);
      await file.write(text, 0);
    });
  } catch (error) {
    throw asNoteError(error);
  }
}

/** The file's next text: the old content, with a note about this turn in place of the last suggestion. */
export function noted(before: string | null, note: string, next: string): string {
  const notes = before?.includes(HEADING) ? before : `${before ? `${before}\n` : ''}${HEADING}\n\n`;
  return `${notes.replace(NEXT, '\n')}- ${note}\n\nNext: ${next}\n`;
}

async function withNote<T>(cwd: string, flags: number, act: (file: FileHandle) => Promise<T>): Promise<T> {
  const file = await open(join(cwd, NOTE), flags | O_NOFOLLOW | O_NONBLOCK, 0o666);
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw new NoteError(`${NOTE} is not a file`);
    if (stat.size > limits.demo_file_bytes_max) throw new NoteError(`${NOTE} is too large`);
    return await act(file);
  } finally {
    await file.close();
  }
}

function textOf(file: FileHandle): Promise<string> {
  return file.readFile('utf8');
}

function asNoteError(error: unknown): NoteError {
  if (error instanceof NoteError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  return new NoteError(`${NOTE}: ${code === 'ELOOP' ? 'is a link' : (code ?? message)}`);
}
