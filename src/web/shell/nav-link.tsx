/** A link of the navigation, with the number of items that wait. */
import { Link, useRouterState } from '@tanstack/react-router';
import type { Place } from '../feature.ts';
import { cx } from '../ui/cx.ts';
import { isInPlace } from './place.ts';

/** The properties of a link that depend on whether the page belongs to its entry. The router knows only its path. */
export function usePlaceLink(to: string) {
  const is_current = useRouterState({ select: ({ location }) => isInPlace(location.pathname, to) });
  return {
    to,
    activeOptions: { exact: true },
    ...(is_current && { 'aria-current': 'page' as const }),
  };
}

export function NavLink({
  place,
  count,
  collapsed = false,
  onClick,
}: {
  place: Place;
  count: number;
  /** Shows only the icon. */
  collapsed?: boolean;
  onClick?: () => void;
}) {
  const { icon: Icon, to, label, useCount = useNone } = place;
  const waiting = useCount() + count;
  return (
    <Link
      {...usePlaceLink(to)}
      {...(onClick && { onClick })}
      {...(collapsed && { title: label })}
      className="tap relative flex items-center gap-2 rounded-md px-2 text-muted transition-colors hover:bg-surface hover:text-text aria-[current=page]:bg-selected aria-[current=page]:font-medium aria-[current=page]:text-text"
    >
      <Icon aria-hidden className="size-4 shrink-0" />
      <span className={collapsed ? 'sr-only' : undefined}>{label}</span>
      {waiting > 0 && (
        <Count count={waiting} className={collapsed ? 'absolute -top-1 -right-1' : 'ml-auto'} />
      )}
    </Link>
  );
}

function useNone(): number {
  return 0;
}

export function Count({ count, className }: { count: number; className?: string }) {
  return (
    <span
      className={cx(
        'min-w-5 rounded-full bg-needs px-1 text-center font-medium text-ground text-xs',
        className,
      )}
    >
      {count}
      <span className="sr-only"> waiting</span>
    </span>
  );
}
