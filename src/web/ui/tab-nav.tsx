/** Tabs that are pages of their own: a row of links with `tabClass`, which scrolls to the current one. */
import { useRouterState } from '@tanstack/react-router';
import { type ReactNode, useEffect, useRef } from 'react';
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
  const nav = useRef<HTMLElement>(null);
  const path = useRouterState({ select: ({ location }) => location.pathname });
  // biome-ignore lint/correctness/useExhaustiveDependencies: another path has another current tab
  useEffect(() => {
    nav.current?.querySelector('.active')?.scrollIntoView({ inline: 'center', block: 'nearest' });
  }, [path]);
  return (
    <nav ref={nav} aria-label={label} className={cx(barClass, className)}>
      {children}
    </nav>
  );
}
