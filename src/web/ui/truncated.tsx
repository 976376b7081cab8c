/**
 * One line of text by a user or an agent, which loses its end if it does not fit. The line itself has the direction of the text:
 * a line from left to right would lose the beginning of right-to-left text.
 */
import type { ReactNode } from 'react';
import { cx } from './cx.ts';

export function Truncated({
  title,
  className,
  children,
}: {
  title?: string | undefined;
  className?: string | undefined;
  children: ReactNode;
}) {
  return (
    <span dir="auto" title={title} className={cx('truncate text-left', className)}>
      {children}
    </span>
  );
}
