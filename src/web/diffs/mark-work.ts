/** Bounds the work of marking the changed parts within the lines of diffs: all the diffs of a page share it. */
import type { Change, Hunk } from 'gitdiff-parser';

/**
 * How much the page may compare before it handles input again, as products of the lengths of the old and the new text: in the
 * worst case, their comparison reads each character once for each of the other text.
 */
export const MARK_WORK_MAX = 2_500_000;
let work_left = MARK_WORK_MAX;

/** The hunks without the lines of changed blocks that are too long to compare now. */
export function quickToMark(hunks: readonly Hunk[]): Hunk[] {
  return hunks.map((hunk) => ({ ...hunk, changes: listBlocks(hunk.changes).flatMap(withoutSlow) }));
}

function withoutSlow(block: readonly Change[]): readonly Change[] {
  const count = (type: Change['type']) => countChars(block.filter((change) => change.type === type));
  const work = count('delete') * count('insert');
  if (work > work_left) return [];
  if (work_left === MARK_WORK_MAX) setTimeout(() => (work_left = MARK_WORK_MAX));
  work_left -= work;
  return block;
}

/** Changed lines that follow each other, and each unchanged line, which keeps blocks apart. */
function listBlocks(changes: readonly Change[]): Change[][] {
  const blocks: Change[][] = [];
  for (const [at, change] of changes.entries()) {
    const continues = change.type !== 'normal' && at > 0 && changes[at - 1]!.type !== 'normal';
    if (continues) blocks.at(-1)!.push(change);
    else blocks.push([change]);
  }
  return blocks;
}

/** With the line ends. */
export function countChars(changes: readonly Change[]): number {
  return changes.reduce((sum, { content }) => sum + content.length + 1, 0);
}
