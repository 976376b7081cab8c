/** The layout of a screen: a header with title, actions and toolbar, and the scrolling content. */
import { type ReactNode, useRef } from 'react';
import { type RowKeys, useListKeys } from '../shell/list-keys.ts';
import { useScreenTitle } from '../shell/title.ts';
import { cx } from './cx.ts';

export function Screen({
  title,
  heading,
  actions,
  toolbar,
  rowKeys,
  children,
  className,
}: {
  /** The title of the tab, and the default heading. */
  title: string;
  heading?: ReactNode;
  actions?: ReactNode;
  toolbar?: ReactNode;
  /** Given if the content is a list: `j` and `k` move through its rows, and these keys act on the focused one. */
  rowKeys?: RowKeys;
  children: ReactNode;
  className?: string;
}) {
  useScreenTitle(title);
  const list = useRef<HTMLDivElement>(null);
  useListKeys(list, rowKeys && { rowKeys });
  return (
    <>
      <header className="flex shrink-0 flex-col gap-2 border-line border-b px-3 py-2 md:px-4">
        <div className="flex min-h-8 flex-wrap items-center justify-between gap-2">
          <h1 className="min-w-0 truncate font-semibold text-lg">{heading ?? title}</h1>
          {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
        </div>
        {toolbar && <div className="flex flex-wrap items-center gap-2">{toolbar}</div>}
      </header>
      <div ref={rowKeys && list} className={cx('scroll-y min-h-0 flex-1', className)}>
        {children}
      </div>
    </>
  );
}

/** Shown to other users at a URL that only root may open. */
export function RootRequired() {
  return (
    <Screen title="You don’t have access to this page">
      <div role="alert" className="flex flex-col items-center gap-3 px-4 py-14 text-center">
        <p className="text-prose">root required</p>
        <a href="/agents" className="underline">
          Back to agents
        </a>
      </div>
    </Screen>
  );
}
