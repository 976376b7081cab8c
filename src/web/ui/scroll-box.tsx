/** What scrolls by itself inside a page: in reach of the keys, with a name for those who hear it. */
import type { ReactNode } from 'react';
import { cx } from './cx.ts';

export function ScrollBox({
  label,
  className,
  children,
}: {
  label: string;
  className?: string;
  children: ReactNode;
}) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for controls
    <div
      role="group"
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be in reach of the keys
      tabIndex={0}
      className={cx('min-w-0 overflow-auto', className)}
    >
      {children}
    </div>
  );
}
