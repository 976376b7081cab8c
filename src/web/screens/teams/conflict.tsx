/** A version conflict in the team editor: the differences between the saved version and the user's. */
import { diffLines } from 'diff/lib/diff/line.js';
import { useMemo } from 'react';
import type { TeamRecord } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { formatDocument, parse, write } from './document.ts';

const CONTEXT = 3;

export function Conflict({
  theirs,
  mine,
  busy,
  onKeep,
  onTake,
}: {
  theirs: TeamRecord;
  mine: string;
  busy: boolean;
  onKeep: () => void;
  onTake: () => void;
}) {
  const lines = useMemo(() => diffTexts(formatDocument(theirs), mine), [theirs, mine]);
  return (
    <section
      aria-label="Both versions"
      className="m-3 flex min-w-0 flex-col gap-2 rounded-md border border-line-strong p-3 md:mx-4"
    >
      <p role="alert" className="font-medium">
        team definition changed concurrently; reload and retry
      </p>
      <p className="text-muted">
        Version {theirs.version} was saved in the meantime. Lines marked − are only in that version; lines
        marked + are only in yours.
      </p>
      <section
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll it
        tabIndex={0}
        aria-label="Theirs and yours"
        className="max-h-72 overflow-auto rounded border border-line font-mono text-sm"
      >
        {lines.map(({ kind, text }, index) => (
          <pre
            // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity than their position
            key={index}
            className={`px-2 ${kind === '+' ? 'bg-added' : kind === '−' ? 'bg-removed' : 'text-muted'}`}
          >
            {kind} {text}
          </pre>
        ))}
      </section>
      <div className="flex flex-wrap gap-2">
        <Button variant="primary" busy={busy} onClick={onKeep}>
          Overwrite with mine
        </Button>
        <Button disabled={busy} onClick={onTake}>
          Use theirs
        </Button>
      </div>
    </section>
  );
}

interface Line {
  kind: '+' | '−' | ' ';
  text: string;
}

/** Changed lines with a few around them. */
function diffTexts(theirs: string, mine: string): Line[] {
  // Ignore differences in formatting.
  const { doc } = parse(mine);
  const lines = diffLines(theirs, doc ? write(doc) : mine).flatMap(({ value, added, removed }) =>
    value
      .replace(/\n$/, '')
      .split('\n')
      .map((text): Line => ({ kind: added ? '+' : removed ? '−' : ' ', text })),
  );
  const near = new Set<number>();
  for (const [index, { kind }] of lines.entries()) {
    if (kind !== ' ') for (let by = -CONTEXT; by <= CONTEXT; by++) near.add(index + by);
  }
  return lines.flatMap((line, index): Line[] => {
    if (near.has(index)) return [line];
    return near.has(index - 1) ? [{ kind: ' ', text: '…' }] : [];
  });
}
