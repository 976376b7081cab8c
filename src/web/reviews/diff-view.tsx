/** The diff of one file. A long diff is folded behind a button, or replaced with `elsewhere`. */
import { type ReactNode, useMemo, useState } from 'react';
import type { Diff } from '../../acp/transcript/calls.ts';
import { escapeHidden } from '../../core/visible.ts';
import { Button } from '../ui/button.tsx';
import { cx } from '../ui/cx.ts';
import { ScrollBox } from '../ui/scroll-box.tsx';
import { type DiffLine, diffLines } from './diff-lines.ts';
import { relativePath } from './paths.ts';

export const INLINE_LINES = 40;

const looks: Record<DiffLine['kind'], { mark: string; word: string; className: string }> = {
  added: { mark: '+', word: 'added', className: 'bg-added' },
  removed: { mark: '−', word: 'removed', className: 'bg-removed' },
  same: { mark: ' ', word: '', className: '' },
  gap: { mark: '⋯', word: '', className: 'text-muted' },
};

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
  const lines = useMemo(() => diffLines(diff.old, diff.new), [diff]);
  const [all, setAll] = useState(false);
  const many = lines === null || lines.length > INLINE_LINES;
  const shown = lines === null ? [] : all ? lines : lines.slice(0, INLINE_LINES);
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
          <ScrollBox label="Lines" className="max-h-96 font-mono text-sm">
            <div className="min-w-full sm:w-max">
              {shown.map((line, at) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: lines of a text that does not change
                <div key={at} className={cx('flex min-h-5 leading-5', looks[line.kind].className)}>
                  <span aria-hidden className="w-10 shrink-0 select-none pr-2 text-right text-muted">
                    {line.number}
                  </span>
                  <span aria-hidden className="w-4 shrink-0 select-none">
                    {looks[line.kind].mark}
                  </span>
                  {looks[line.kind].word && <span className="sr-only">{looks[line.kind].word} </span>}
                  <span dir="ltr" className="min-w-0 whitespace-pre-wrap wrap-anywhere sm:whitespace-pre">
                    {escapeHidden(line.text)}
                  </span>
                </div>
              ))}
            </div>
          </ScrollBox>
          {lines === null && (
            <p className="px-2 py-1 text-muted">
              The versions have too little in common for a line-by-line diff.
            </p>
          )}
          {lines !== null && many && !all && (
            <Button variant="quiet" className="w-full" onClick={() => setAll(true)}>
              Show all {lines.length} lines
            </Button>
          )}
          {diff.truncated && <p className="px-2 py-1 text-muted">Only the beginning of the file is shown.</p>}
        </>
      )}
    </figure>
  );
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
