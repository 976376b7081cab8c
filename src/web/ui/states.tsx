/** What a screen shows when it has nothing, not yet, or no more. */
import { CloudOff } from 'lucide-react';
import { type ReactNode, useEffect, useState } from 'react';
import { wordsOf } from '../api/client.ts';
import { Button } from './button.tsx';
import { cx } from './cx.ts';
import { Clock } from './time.tsx';

/** One sentence, one way on, and the same thing as a line for the terminal. */
export function Empty({ title, children, cli }: { title: string; children?: ReactNode; cli?: string }) {
  return (
    <div className="flex flex-col items-center gap-3 px-4 py-14 text-center">
      <p className="text-prose">{title}</p>
      {children && <div className="flex flex-wrap justify-center gap-2">{children}</div>}
      {cli && (
        <code className="max-w-full break-words rounded bg-surface px-2 py-1 font-mono text-sm">{cli}</code>
      )}
    </div>
  );
}

/** Nothing for 200 ms, then grey lines of the final height. */
export function Skeleton({ rows = 6, height = 'h-9' }: { rows?: number; height?: string }) {
  const [shown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), 200);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div role="status" aria-label="Loading" className="flex flex-col gap-2 p-3">
      {Array.from({ length: rows }, (_, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: grey lines are all the same
        <div key={at} className={cx('rounded', height, shown && 'bg-surface')} />
      ))}
    </div>
  );
}

/** A screen's first reading failed: why, and once more. */
export function Failed({ error, retry }: { error: unknown; retry?: () => void }) {
  return (
    <div role="alert" className="flex flex-col items-center gap-3 px-4 py-14 text-center">
      <p className="text-failed text-prose">{wordsOf(error)}</p>
      {retry && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}

/** Why something was not done, where it was asked for; nothing while there is no such error. */
export function Refused({ error }: { error: unknown }) {
  if (!error) return null;
  return (
    <p role="alert" className="break-words text-failed">
      {wordsOf(error)}
    </p>
  );
}

/** What is shown is old: since when, and once more. */
export function Stale({ since, retry }: { since: number; retry: () => void }) {
  return (
    <div
      role="status"
      className="flex items-center gap-2 border-line border-b bg-surface px-3 py-1 text-muted text-sm"
    >
      <CloudOff aria-hidden className="size-3.5" />
      <span>
        last updated <Clock at={since} />
      </span>
      <button type="button" onClick={retry} className="tap underline">
        retry
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

/** The states of one reading, around what is shown of it: old data stays, with a word that it is old. */
export function Reading<T>({
  read,
  rows,
  children,
}: {
  read: Read<T>;
  rows?: number;
  children: (data: T) => ReactNode;
}) {
  if (read.data === undefined) {
    if (read.error) return <Failed error={read.error} retry={() => void read.refetch()} />;
    return <Skeleton {...(rows !== undefined && { rows })} />;
  }
  return (
    <>
      {Boolean(read.error) && <Stale since={read.dataUpdatedAt} retry={() => void read.refetch()} />}
      {children(read.data)}
    </>
  );
}
