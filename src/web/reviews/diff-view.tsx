/** The diff of one file. A long diff is folded behind a button, or replaced with `elsewhere`. */
import type { Hunk } from 'gitdiff-parser';
import { lazy, type ReactNode, Suspense, useMemo, useState } from 'react';
import type { Diff } from '../../acp/transcript/calls.ts';
import { escapeHidden } from '../../core/visible.ts';
import { countLines, diffTexts, firstLines } from '../diffs/texts.ts';
import { Button } from '../ui/button.tsx';
import { ScrollBox } from '../ui/scroll-box.tsx';
import { relativePath } from './paths.ts';

const DiffTable = lazy(() => import('../diffs/diff-table.tsx'));

export const INLINE_LINES = 40;
/** The height of a line that does not wrap, and of the heading of a hunk. */
const LINE_PX = 20;

/** `elsewhere`: shown instead of a long diff, such as a link to it. */
export function DiffView({
  diff,
  workdir,
  elsewhere,
}: {
  diff: Diff;
  workdir?: string | undefined;
  elsewhere?: ReactNode;
}) {
  const hunks = useMemo(() => visibleHunks(diff), [diff]);
  const [all, setAll] = useState(false);
  const shown = useMemo(() => (all ? hunks : hunks && firstLines(hunks, INLINE_LINES)), [hunks, all]);
  const count = hunks && countLines(hunks);
  const many = count === null || count > INLINE_LINES;
  return (
    <figure className="min-w-0 overflow-hidden rounded-md border border-line">
      <figcaption className="flex flex-wrap items-center gap-x-2 bg-surface px-2 py-0.5 text-sm">
        <span className="min-w-0 break-all font-mono">{relativePath(diff.path, workdir)}</span>
        <Counts added={diff.added} removed={diff.removed} />
        {diff.old === null && <span className="text-muted">new file</span>}
      </figcaption>
      {many && elsewhere ? (
        <p className="px-2 py-1">{elsewhere}</p>
      ) : (
        <>
          {shown && shown.length > 0 && (
            <ScrollBox label="Lines" className="max-h-96">
              <Suspense fallback={<Placeholder hunks={shown} />}>
                <DiffTable path={diff.path} hunks={shown} type={diff.old === null ? 'add' : 'modify'} />
              </Suspense>
            </ScrollBox>
          )}
          {count === null && (
            <p className="px-2 py-1 text-muted">
              The versions have too little in common for a line-by-line diff.
            </p>
          )}
          {count !== null && many && !all && (
            <Button variant="quiet" className="w-full" onClick={() => setAll(true)}>
              Show all {count} lines
            </Button>
          )}
          {diff.truncated && <p className="px-2 py-1 text-muted">Only the beginning of the file is shown.</p>}
        </>
      )}
    </figure>
  );
}

/** Characters that are hidden or imitate others are shown as their code points. */
function visibleHunks(diff: Diff): Hunk[] | null {
  const hunks = diffTexts(diff.old, diff.new);
  for (const { changes } of hunks ?? []) {
    for (const change of changes) change.content = escapeHidden(change.content);
  }
  return hunks;
}

/** Reserves the room of the lines until their code is loaded. */
function Placeholder({ hunks }: { hunks: readonly Hunk[] }) {
  return <div style={{ height: (countLines(hunks) + hunks.length) * LINE_PX }} />;
}

export function Counts({ added, removed }: { added: number; removed: number }) {
  if (added === 0 && removed === 0) return null;
  return (
    <span className="whitespace-nowrap text-sm">
      <span className="text-completed">
        +{added}
        <span className="sr-only"> lines added</span>
      </span>{' '}
      <span className="text-failed">
        −{removed}
        <span className="sr-only"> lines removed</span>
      </span>
    </span>
  );
}
