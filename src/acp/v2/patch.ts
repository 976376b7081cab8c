/** Parses the git patches of agents. */
import { parsePatch } from 'diff/lib/patch/parse.js';

/** Longer patches are shown as text. */
export const PATCH_CHARS_MAX = 256 * 1024;

/** One file of a patch. */
export interface PatchedFile {
  /** A path relative to a folder; `/dev/null` for a file that does not exist. */
  old_name: string;
  new_name: string;
  /** The lines of each hunk, with their signs. */
  hunks: readonly (readonly string[])[];
}

/** Null if the text is not a git patch, is malformed, or is longer than `PATCH_CHARS_MAX`. */
export function readPatch(text: string): PatchedFile[] | null {
  if (text.length > PATCH_CHARS_MAX) return null;
  try {
    const files = parsePatch(text);
    if (!files.some((file) => file.isGit || file.hunks.length > 0)) return null;
    return files.map(({ oldFileName, newFileName, hunks }) => ({
      old_name: fileName(oldFileName),
      new_name: fileName(newFileName),
      hunks: hunks.map(({ lines }) => lines),
    }));
  } catch {
    return null;
  }
}

function fileName(name = ''): string {
  return name.replace(/^[ab]\//, '');
}
