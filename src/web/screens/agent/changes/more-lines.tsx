/** The button that shows more unchanged lines around the changes of a file. */
import { UnfoldVertical } from 'lucide-react';

/** `where`: which of the buttons it is, for screen readers. */
export function MoreLines({ where, at, onMore }: { where: string; at: number; onMore: () => void }) {
  return (
    <button
      type="button"
      data-more={at}
      onClick={onMore}
      className="inline-flex min-h-6 shrink-0 items-center gap-1 rounded px-1 font-sans text-muted text-sm hover:text-text"
    >
      <UnfoldVertical aria-hidden className="size-3.5" />
      Show more lines<span className="sr-only"> {where}</span>
    </button>
  );
}
