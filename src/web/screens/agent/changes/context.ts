/** How many unchanged lines around the changes of a file are shown, and where more of them are hidden (pure). */
import type { Hunk } from 'gitdiff-parser';
import { limits } from '../../../../base/limits.ts';

/** The numbers of lines that are shown one after the other. */
export const CONTEXTS = [3, 20, 100, limits.diff_context_lines_max] as const;

/** Whether lines are hidden above each hunk and, as the last item, below all of them. `context`: as it was asked for. */
export function findGaps(hunks: readonly Hunk[], context: number): boolean[] {
  let shown_to = 0;
  const above = hunks.map(({ newStart, changes }) => {
    // Counted here, because the parser reads 0 lines as 1.
    const lines = changes.filter(({ type }) => type !== 'delete').length;
    // Without lines in the new file, the hunk follows the line that it names.
    const first = lines === 0 ? newStart + 1 : newStart;
    const is_hidden = first > shown_to + 1;
    shown_to = first + lines - 1;
    return is_hidden;
  });
  const last = hunks.at(-1);
  // With fewer lines than asked for, the file ends there.
  return [...above, last !== undefined && countUnchanged(last.changes.toReversed()) >= context];
}

/** Whether lines are hidden that were asked for: nodes that run an earlier release do not know the number. */
export function isContextIgnored(hunks: readonly Hunk[], context: number): boolean {
  const gaps = findGaps(hunks, context);
  return hunks.some(({ changes }, at) => gaps[at] && countUnchanged(changes) < context);
}

function countUnchanged(changes: Hunk['changes']): number {
  const end = changes.findIndex(({ type }) => type !== 'normal');
  return end === -1 ? changes.length : end;
}
