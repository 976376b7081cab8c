/** A key of the keyboard. */
import type { ReactNode } from 'react';
import { cx } from './cx.ts';

export function Kbd({ className, children }: { className?: string; children: ReactNode }) {
  return (
    <kbd
      className={cx(
        'inline-flex h-4.5 min-w-4.5 shrink-0 items-center justify-center whitespace-nowrap rounded-sm border border-control-line bg-surface px-1 font-normal font-sans text-muted text-xs',
        className,
      )}
    >
      {children}
    </kbd>
  );
}
