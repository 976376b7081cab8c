/** Runs as a table, with stacked rows on phones. */
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { errorMessage } from '../../api/client.ts';
import type { RunRecord } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { cx } from '../../ui/cx.ts';
import { rowMarkClass } from '../../ui/row-class.ts';
import { TableHead } from '../../ui/table-head.tsx';
import { Ago, Duration } from '../../ui/time.tsx';
import { useTint } from '../../ui/tint.ts';
import { Truncated } from '../../ui/truncated.tsx';
import { useWaitingRuns } from '../../waiting/use-waiting.ts';
import type { Older } from './paged.ts';
import { RunStatus } from './status.tsx';

const FIRST = 100;

/** Between phones and wide screens, there is no room for all columns. */
const WIDE_ONLY = 'md:max-lg:hidden';

const columns = [
  { label: 'Status', className: 'w-42' },
  { label: 'Input and message' },
  { label: 'Started by', className: cx('w-26', WIDE_ONLY) },
  { label: 'Duration', className: cx('w-24', WIDE_ONLY) },
  { label: 'Started', className: 'w-28' },
];

/** A run as rows show it. */
type ShownRun = Omit<RunRecord, 'spec' | 'input' | 'output'> & {
  title: string | null;
  team_name?: string;
};

export function RunsTable({
  runs,
  names_teams = false,
  older,
}: {
  runs: readonly ShownRun[];
  /** Whether the table has runs of several teams. */
  names_teams?: boolean;
  /** Null if all runs were read. */
  older: Older | null;
}) {
  const [shown, setShown] = useState(FIRST);
  const waiting = useWaitingRuns();
  return (
    <>
      <table className="w-full table-fixed border-collapse max-md:block">
        <TableHead
          columns={[{ label: 'Run', className: names_teams ? 'w-40 lg:w-56' : 'w-24' }, ...columns]}
          className="max-md:sr-only"
        />
        <tbody className="max-md:block">
          {runs.slice(0, shown).map((run) => (
            <Row
              key={run.id}
              run={run}
              name={names_teams ? run.team_name : undefined}
              needs_you={waiting.has(run.id)}
            />
          ))}
        </tbody>
      </table>
      <div className="flex justify-center p-3 empty:hidden">
        {runs.length > shown ? (
          <Button onClick={() => setShown(shown + FIRST)}>Show {runs.length - shown} more</Button>
        ) : (
          older && (
            <OlderRuns
              {...older}
              read={() => {
                setShown(shown + FIRST);
                older.read();
              }}
            />
          )
        )}
      </div>
    </>
  );
}

export function OlderRuns({ busy, error, read }: Older) {
  return (
    <span className="inline-flex items-center gap-3">
      <Button busy={busy} onClick={read}>
        {busy ? 'Loading…' : 'Show older runs'}
      </Button>
      {error !== null && (
        <span role="alert" className="text-failed">
          {errorMessage(error)}
        </span>
      )}
    </span>
  );
}

function Row({ run, name, needs_you }: { run: ShownRun; name: string | undefined; needs_you: boolean }) {
  const { title } = run;
  const why = run.error ?? run.attention;
  const tinted = useTint<HTMLTableRowElement>(run.status);
  return (
    <tr
      ref={tinted}
      data-row
      className={`${rowMarkClass} max-md:flex max-md:flex-wrap max-md:gap-x-3 max-md:px-3 max-md:py-1.5 md:h-9 md:[&>td]:px-2 md:[&>th]:pr-2 md:[&>th]:pl-4`}
    >
      <th scope="row" className="min-w-0 truncate text-left font-normal max-md:flex-1">
        <Link
          to="/teams/$team_id/runs/$run_id"
          params={{ team_id: run.team_id, run_id: run.id }}
          className="tap inline-flex max-w-full items-center font-medium after:absolute after:inset-0 hover:underline"
        >
          {name !== undefined && (
            <>
              <Truncated>{name}</Truncated>
              <span className="whitespace-pre"> · </span>
            </>
          )}
          <span className="whitespace-nowrap">Run {run.number}</span>
        </Link>
      </th>
      <td className="max-md:flex max-md:items-center">
        <RunStatus status={run.status} needs_you={needs_you} className="align-middle" />{' '}
        {run.attempt > 1 && (
          <span className="whitespace-nowrap text-muted text-sm max-md:ml-1.5">attempt {run.attempt}</span>
        )}
      </td>
      <td className="min-w-0 max-md:w-full">
        <div dir="auto" className="truncate text-left" title={title ?? undefined}>
          {title ?? (why === null && <span className="text-muted">–</span>)}
          {why !== null && (
            <span className={run.error ? 'text-failed' : 'text-needs'} title={why}>
              {title !== null && ' · '}
              {why}
            </span>
          )}
        </div>
      </td>
      <td
        className={cx('truncate text-muted max-md:flex max-md:items-center', WIDE_ONLY)}
        title={run.created_by_name ?? undefined}
      >
        {run.created_by_name}
      </td>
      <td className={cx('text-muted max-md:flex max-md:items-center', WIDE_ONLY)}>
        {run.started_at && <Duration from={run.started_at} to={run.ended_at} />}
      </td>
      <td className="text-muted max-md:flex max-md:items-center">
        <Ago at={run.created_at} />
      </td>
    </tr>
  );
}
