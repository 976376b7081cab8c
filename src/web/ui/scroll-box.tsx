/** A scrollable box that keyboard and screen reader users can reach. */
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
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll it
      tabIndex={0}
      className={cx('relative min-w-0 overflow-auto', className)}
    >
      {children}
    </div>
  );
}
