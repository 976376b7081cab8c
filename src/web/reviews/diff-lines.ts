/** What a change does to a file, line by line, with a little of what stands around it (pure). */
import { structuredPatch } from 'diff/lib/patch/create.js';

export interface DiffLine {
  readonly kind: 'added' | 'removed' | 'same' | 'gap';
  readonly text: string;
  /** In the new file, for those that it has; else in the old one. */
  readonly number: number | null;
}

/** Beyond so many changes it is not worth comparing. */
const EDITS_MAX = 1_000;
const CONTEXT = 3;

/** Null: too little in common to be compared. */
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
