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
  const shown = useRef('');
  useEffect(() => {
    // Not after every render, because the user may have scrolled it. Numbers in the labels may arrive late.
    const now = `${path} ${nav.current!.textContent}`;
    if (now === shown.current) return;
    shown.current = now;
    nav.current!.querySelector('.active')?.scrollIntoView({ inline: 'center', block: 'nearest' });
  });
  return (
    <nav ref={nav} aria-label={label} className={cx(barClass, className)}>
      {children}
    </nav>
  );
}
