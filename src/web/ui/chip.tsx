/** Small labels, and the pills that filter a list. */
import type { ReactNode } from 'react';
import { cx } from './cx.ts';

/** A word about what is next to it. `mono` for what a machine calls it. */
export function Chip({
  mono = false,
  title,
  children,
}: {
  mono?: boolean;
  title?: string;
  children: ReactNode;
}) {
  return (
    <span
      title={title}
      className={cx(
        'inline-flex h-5 min-w-0 max-w-full shrink-0 items-center gap-1 truncate rounded-sm bg-surface px-1.5 text-muted [&_svg]:size-3',
        mono ? 'font-mono text-sm' : 'font-medium text-xs',
      )}
    >
      {children}
    </span>
  );
}

/** A filter's looks, for a link or a button; `on`: the list is filtered by it. */
export function pillClass(on: boolean): string {
  return cx(
    'tap inline-flex shrink-0 items-center gap-1 whitespace-nowrap rounded-md px-2.5 transition-colors',
    on ? 'bg-selected font-medium text-text' : 'text-muted hover:bg-surface hover:text-text',
  );
}
