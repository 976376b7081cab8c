/** A change of a file as diff lines with a few lines of context (pure). */
import { structuredPatch } from 'diff/lib/patch/create.js';

export interface DiffLine {
  readonly kind: 'added' | 'removed' | 'same' | 'gap';
  readonly text: string;
  /** The line number in the new file, or in the old file for removed lines. */
  readonly number: number | null;
}

/** With more changes, a comparison is slow and its result unreadable. */
const EDITS_MAX = 1_000;
const CONTEXT = 3;

/** Null if the texts have too little in common. */
export function diffLines(before: string | null, after: string): DiffLine[] | null {
  const options = { context: CONTEXT, maxEditLength: EDITS_MAX };
  const patch = structuredPatch('', '', before ?? '', after, undefined, undefined, options);
  if (!patch) return null;
  return patch.hunks.flatMap(({ oldStart, newStart, lines }, at) => {
    let [old_number, new_number] = [oldStart, newStart];
    const hunk = lines.flatMap((line): DiffLine[] => {
      const text = line.slice(1);
      if (line.startsWith('+')) return [{ kind: 'added', text, number: new_number++ }];
      if (line.startsWith('-')) return [{ kind: 'removed', text, number: old_number++ }];
      if (line.startsWith('\\')) return [];
      old_number++;
      return [{ kind: 'same', text, number: new_number++ }];
    });
    return at === 0 ? hunk : [{ kind: 'gap', text: '', number: null }, ...hunk];
  });
}
