/** The difference of two texts as hunks with a few lines of context (pure). */
import { structuredPatch } from 'diff/lib/patch/create.js';
import type { Change, Hunk } from 'gitdiff-parser';

/** With more changes, a comparison is slow and its result unreadable. */
const EDITS_MAX = 1_000;
const CONTEXT = 3;

/** Null if the texts have too little in common. */
export function diffTexts(before: string | null, after: string): Hunk[] | null {
  const options = { context: CONTEXT, maxEditLength: EDITS_MAX };
  const patch = structuredPatch('', '', before ?? '', after, undefined, undefined, options);
  return (
    patch?.hunks.map(({ lines, ...place }) => ({
      ...place,
      content: `@@ -${place.oldStart},${place.oldLines} +${place.newStart},${place.newLines} @@`,
      changes: toChanges(lines, place.oldStart, place.newStart),
    })) ?? null
  );
}

function toChanges(lines: readonly string[], old_start: number, new_start: number): Change[] {
  let [old_line, new_line] = [old_start, new_start];
  return lines.flatMap((line): Change[] => {
    const content = line.slice(1);
    if (line.startsWith('+')) return [{ type: 'insert', isInsert: true, content, lineNumber: new_line++ }];
    if (line.startsWith('-')) return [{ type: 'delete', isDelete: true, content, lineNumber: old_line++ }];
    // `\ No newline at end of file`.
    if (line.startsWith('\\')) return [];
    return [
      { type: 'normal', isNormal: true, content, oldLineNumber: old_line++, newLineNumber: new_line++ },
    ];
  });
}

export function countLines(hunks: readonly Hunk[]): number {
  return hunks.reduce((sum, { changes }) => sum + changes.length, 0);
}

/** The hunks without the lines after the first `count`. */
export function firstLines(hunks: readonly Hunk[], count: number): Hunk[] {
  let left = count;
  return hunks.flatMap((hunk) => {
    const changes = hunk.changes.slice(0, left);
    left -= changes.length;
    return changes.length === 0 ? [] : [{ ...hunk, changes }];
  });
}
