/** The states of a screen without current data: empty, loading, failed, stale. */
import { Link } from '@tanstack/react-router';
import { CloudOff } from 'lucide-react';
import { type ReactNode, useEffect, useState } from 'react';
import { type call, errorMessage } from '../api/client.ts';
import { Button } from './button.tsx';
import { Copy } from './copy.tsx';
import { cx } from './cx.ts';
import { Clock } from './time.tsx';

type Operation = Parameters<typeof call>[0];

interface ListHelp {
  /** What the list is for. */
  title: string;
  /** The action that fills it. */
  children?: ReactNode;
  /** The same action as a CLI command. */
  cli?: string;
  /** The operation of the API that does it, as its reference names it. */
  operation?: Operation;
}

/** An empty state. */
export function Empty({ title, children, cli, operation }: ListHelp) {
  return (
    <div className="flex flex-col items-center gap-3 px-4 py-14 text-center">
      <p className="text-prose">{title}</p>
      {children && <div className="flex flex-wrap justify-center gap-2">{children}</div>}
      {cli && <CommandLine command={cli} />}
      {operation && <ApiLink operation={operation} />}
    </div>
  );
}

const FEW_ROWS = 3;

/** Below a list of few rows, where there is space to say what the list is for. */
export function ListNote({ rows, title, children, cli, operation }: ListHelp & { rows: number }) {
  if (rows > FEW_ROWS) return null;
  return (
    <aside className="m-3 flex max-w-page flex-wrap items-center gap-x-4 gap-y-2 rounded-lg bg-surface px-4 py-3 md:m-4">
      <p className="min-w-0 flex-1 basis-64 text-muted">{title}</p>
      {children}
      {cli && <CommandLine command={cli} />}
      {operation && <ApiLink operation={operation} />}
    </aside>
  );
}

/** A command with a button that copies it. */
export function CommandLine({ command }: { command: string }) {
  return (
    <span className="inline-flex max-w-full items-center gap-1 rounded-md border border-line bg-ground pl-3">
      <code className="min-w-0 break-words py-1 text-left font-mono text-sm">{command}</code>
      <Copy text={command} variant="quiet" />
    </span>
  );
}

/** A link to the operation in the API reference. */
export function ApiLink({ operation }: { operation: Operation }) {
  return (
    <Link
      to="/docs"
      search={{ operation }}
      className="tap inline-flex items-center text-muted text-sm underline"
    >
      API reference
    </Link>
  );
}

/** A loading state: nothing for 200 ms, then gray lines of the final height. */
export function Skeleton({ rows = 6, height = 'h-9' }: { rows?: number; height?: string }) {
  const [shown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), 200);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div role="status" aria-label="Loading" className="flex flex-col gap-2 p-3">
      {Array.from({ length: rows }, (_, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: gray lines are all the same
        <div key={at} className={cx('rounded', height, shown && 'bg-surface')} />
      ))}
    </div>
  );
}

/** The error of a screen's first request, with a retry button or another way to continue. */
export function Failed({
  error,
  retry,
  children,
}: {
  error: unknown;
  retry?: () => void;
  children?: ReactNode;
}) {
  return (
    <div role="alert" className="flex flex-col items-center gap-3 px-4 py-14 text-center">
      <p className="text-failed text-prose">{errorMessage(error)}</p>
      {retry && <Button onClick={retry}>Try again</Button>}
      {children}
    </div>
  );
}

/** A way to continue from an error. */
export function GoTo({ to, label }: { to: string; label: string }) {
  return (
    <Link to={to} className="tap inline-flex items-center underline">
      Go to {label}
    </Link>
  );
}

/** Shown above or below live data whose stream ended. */
export function NotLive({ reason, retry }: { reason: string; retry: () => void }) {
  return (
    <p role="alert" className="shrink-0 break-words border-line border-y px-3 py-1 text-failed">
      Live updates ended: {reason}{' '}
      <button type="button" onClick={retry} className="tap underline">
        Try again
      </button>
    </p>
  );
}

/** The error of an action, next to it; renders nothing without an error. */
export function ActionError({ error }: { error: unknown }) {
  if (!error) return null;
  return (
    <p role="alert" className="break-words text-failed">
      {errorMessage(error)}
    </p>
  );
}

/** Shown above stale data: when it was updated, with a retry button. */
export function Stale({ since, retry }: { since: number; retry: () => void }) {
  return (
    <div
      role="status"
      className="flex items-center gap-2 border-line border-b bg-surface px-3 py-1 text-muted text-sm"
    >
      <CloudOff aria-hidden className="size-3.5" />
      <span>
        Last updated <Clock at={since} />
      </span>
      <button type="button" onClick={retry} className="tap underline">
        Try again
      </button>
    </div>
  );
}

interface Read<T> {
  data: T | undefined;
  error: unknown;
  isPending: boolean;
  dataUpdatedAt: number;
  refetch: () => unknown;
}

/** Renders the state of a query around its data. Stale data stays visible with a note. */
export function QueryState<T>({
  read,
  rows,
  back,
  children,
}: {
  read: Read<T>;
  rows?: number;
  /** Linked from the error if the data cannot be read. */
  back?: { to: string; label: string };
  children: (data: T) => ReactNode;
}) {
  if (read.data === undefined) {
    if (read.error)
      return (
        <Failed error={read.error} retry={() => void read.refetch()}>
          {back && <GoTo {...back} />}
        </Failed>
      );
    return <Skeleton {...(rows !== undefined && { rows })} />;
  }
  return (
    <>
      {Boolean(read.error) && <Stale since={read.dataUpdatedAt} retry={() => void read.refetch()} />}
      {children(read.data)}
    </>
  );
}
