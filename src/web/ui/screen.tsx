/** The layout of a screen: a header with title, actions and toolbar, and the scrolling content. */
import { Link } from '@tanstack/react-router';
import { ChevronLeft } from 'lucide-react';
import { type ReactNode, useRef } from 'react';
import { type RowKeys, useListKeys } from '../shell/list-keys.ts';
import { useScreenTitle } from '../shell/title.ts';
import { cx } from './cx.ts';
import { ScreenActions } from './screen-actions.tsx';
import { useScrolledDown } from './scrolled-down.ts';

export function Screen({
  title,
  heading,
  back,
  actions,
  primary,
  toolbar,
  rowKeys,
  children,
  className,
}: {
  /** The title of the tab, and the default heading. */
  title: string;
  heading?: ReactNode;
  /** The page above this one, for phones, where an installed app has no other way back. */
  back?: { to: string; label: string };
  /** Behind ⋯ on phones. */
  actions?: ReactNode;
  /** The one action that stays visible on phones. */
  primary?: ReactNode;
  toolbar?: ReactNode;
  /** Given if the content is a list: `j` and `k` move through its rows, and these keys act on the focused one. */
  rowKeys?: RowKeys;
  children: ReactNode;
  className?: string;
}) {
  useScreenTitle(title);
  const list = useRef<HTMLDivElement>(null);
  useListKeys(list, rowKeys && { rowKeys });
  const header = useRef<HTMLElement>(null);
  useScrolledDown(header);
  return (
    <>
      {/* A side panel that fills a small screen has its own header. */}
      <header
        ref={header}
        className="flex shrink-0 flex-col border-line border-b px-3 md:gap-2 md:px-4 md:py-2 max-lg:[&:has(+*_[data-panel])]:hidden"
      >
        <div className="flex h-12 items-center gap-2 md:h-auto md:min-h-8 md:flex-wrap">
          {back && (
            <Link
              to={back.to}
              aria-label={`Back to ${back.label}`}
              className="-ml-2 inline-flex size-11 shrink-0 items-center justify-center rounded-md text-muted md:pointer-fine:hidden"
            >
              <ChevronLeft aria-hidden className="size-5" />
            </Link>
          )}
          <h1
            tabIndex={-1}
            // As in `Truncated`. A heading with several parts has its own.
            dir={heading === undefined ? 'auto' : undefined}
            className={cx(
              'min-w-0 flex-1 truncate text-left font-semibold text-lg outline-none',
              back && '-ml-3 md:pointer-fine:ml-0',
            )}
          >
            {heading ?? title}
          </h1>
          <ScreenActions primary={primary}>{actions}</ScreenActions>
        </div>
        {toolbar && (
          <div className="flex flex-wrap items-center gap-2 empty:hidden max-md:pb-2">{toolbar}</div>
        )}
      </header>
      <div ref={rowKeys && list} className={cx('scroll-y min-h-0 flex-1', className)}>
        {children}
      </div>
    </>
  );
}

/** Call it when the element that had the focus is gone and nothing has taken its place. */
export function focusHeading(): void {
  document.querySelector<HTMLElement>('h1')?.focus();
}

/** Shown to other users at a URL that only root may open. */
export function RootRequired() {
  return (
    <Screen title="You don’t have access to this page">
      <div role="alert" className="flex flex-col items-center gap-3 px-4 py-14 text-center">
        <p className="text-prose">root required</p>
        <Link to="/agents" search={{}} className="tap underline">
          Back to agents
        </Link>
      </div>
    </Screen>
  );
}
