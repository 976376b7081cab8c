/** Tabs that are pages of their own: a row of links with `tabClass`. */
import type { ReactNode } from 'react';
import { cx } from './cx.ts';
import { barClass } from './tab-class.ts';

export function TabNav({
  label,
  className,
  children,
}: {
  label: string;
  className?: string;
  children: ReactNode;
}) {
  return (
    <nav aria-label={label} className={cx(barClass, className)}>
      {children}
    </nav>
  );
}
