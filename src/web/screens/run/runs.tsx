/** The runs of all teams, newest first. */
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useMemo } from 'react';
import { type RunStatus, runStatuses } from '../../../features/runs/rules/run.ts';
import { allRunsQuery, type ListedRunRecord, runsWithQuery } from '../../api/all-runs.ts';
import { NO_ROW_KEYS } from '../../shell/list-keys.ts';
import { buttonClass } from '../../ui/button.tsx';
import { pillClass } from '../../ui/chip.tsx';
import { Screen } from '../../ui/screen.tsx';
import { Empty, ListNote, QueryState } from '../../ui/states.tsx';
import { sentenceCase, statusText } from '../../ui/status.tsx';
import { useWaitingRuns } from '../../waiting/use-waiting.ts';
import { matchesFilter, shownStatus } from './facts.ts';
import { type Older, olderOf, stateOf } from './paged.ts';
import { OlderRuns, RunsTable } from './runs-table.tsx';

/** Undefined: all runs. */
const choices = [undefined, 'needs_you', ...runStatuses] as const;

interface ShownRuns {
  /** All that were read, of any status. */
  every: readonly ListedRunRecord[] | undefined;
  /** Those that match the filter. */
  shown: readonly ListedRunRecord[];
  /** Loads older runs that may match the filter. Null when all of them are loaded. */
  older: Older | null;
  /** Whether older runs exist that are not among `every`. */
  is_incomplete: boolean;
}

/** The statuses of the runs that a filter shows. A run that waits for the user is running or needs input. */
function statusesOf(filter: string | undefined): readonly RunStatus[] {
  if (filter === 'needs_you') return ['running', 'input_required'];
  return runStatuses.filter((status) => status === filter);
}

/** If older runs were not read, the service searches them for the statuses. */
function useRuns(filter: string | undefined) {
  const read = useInfiniteQuery(allRunsQuery);
  const waiting = useWaitingRuns();
  const [first, second] = statusesOf(filter);
  const is_searched = first !== undefined && read.hasNextPage;
  const found = useInfiniteQuery({ ...runsWithQuery(first ?? 'failed'), enabled: is_searched });
  const also_found = useInfiniteQuery({
    ...runsWithQuery(second ?? 'failed'),
    enabled: is_searched && second !== undefined,
  });
  const reads = !is_searched ? [read] : second === undefined ? [found] : [found, also_found];
  const every = useMemo(() => read.data?.pages.flatMap(({ items }) => items), [read.data]);
  const is_read = reads.every(({ data }) => data !== undefined);
  const shown = reads
    .flatMap(({ data }) => data?.pages.flatMap(({ items }) => items) ?? [])
    .filter((run) => matchesFilter(run, filter, waiting))
    .sort((a, b) => Date.parse(b.created_at) - Date.parse(a.created_at));
  const needs_you = filter === 'needs_you';
  // What waits is known, so there is nothing to load once all of it is listed.
  const older = needs_you && shown.length === waiting.size ? null : olderOf(reads);
  useReadAll(needs_you && is_read ? older : null);
  const runs: ShownRuns = { every, shown, older, is_incomplete: read.hasNextPage };
  return { runs, read: { ...stateOf(reads), data: is_read ? every : undefined } };
}

/** Keeps loading older runs until none are left or a request fails. */
function useReadAll(older: Older | null): void {
  const read = older && !older.busy && older.error === null ? older.read : null;
  useEffect(() => read?.());
}

export function Runs() {
  const { status } = useSearch({ from: '/app/runs' });
  const { runs, read } = useRuns(status);
  const { every, shown, older } = runs;
  return (
    <Screen
      title="Runs"
      rowKeys={NO_ROW_KEYS}
      toolbar={every && every.length > 0 && <Filters every={every} runs={runs} />}
    >
      <QueryState read={read}>
        {(every) => (every.length > 0 ? <Matching every={every} shown={shown} older={older} /> : <NoRuns />)}
      </QueryState>
    </Screen>
  );
}

function Matching({
  every,
  shown,
  older,
}: Pick<ShownRuns, 'shown' | 'older'> & { every: readonly ListedRunRecord[] }) {
  return (
    <>
      {shown.length > 0 ? (
        <RunsTable runs={shown} names_teams older={older} />
      ) : (
        <Empty title="No runs match this filter.">
          <Link to="/runs" search={{}} className={buttonClass()}>
            Show all runs
          </Link>
          {older && <OlderRuns {...older} />}
        </Empty>
      )}
      <ListNote
        rows={every.length}
        title="A run is one execution of a team. Start one from a team’s page."
        cli="svc runs create TEAM --input '{}'"
        operation="createRun"
      />
    </>
  );
}

function NoRuns() {
  return (
    <Empty
      title="No runs yet. A run is one execution of a team. Start one from a team’s page."
      cli="svc runs create TEAM --input '{}'"
      operation="createRun"
    >
      <Link to="/teams" className={buttonClass('primary')}>
        Open teams
      </Link>
    </Empty>
  );
}

/** The numbers are those of the runs that were read: older ones are not counted. */
function Filters({ every, runs }: { every: readonly ListedRunRecord[]; runs: ShownRuns }) {
  const { shown, older, is_incomplete } = runs;
  const { status } = useSearch({ from: '/app/runs' });
  const navigate = useNavigate();
  const waiting = useWaitingRuns();
  const countOf = (item: (typeof choices)[number]): string => {
    // Older runs may have any status, but all that wait for the user are known.
    if (item === 'needs_you' && is_incomplete) return String(waiting.size);
    if (item === status && item !== undefined) return `${shown.length}${older ? '+' : ''}`;
    const count = every.filter((run) => matchesFilter(run, item, waiting)).length;
    if (!is_incomplete) return String(count);
    return count === 0 ? '' : `${count}+`;
  };
  return (
    <fieldset className="flex flex-wrap gap-1">
      <legend className="sr-only">Show</legend>
      {choices.map((item) => {
        const is_used = every.some((run) => shownStatus(run, waiting) === item);
        const may_match = is_used || (item === 'needs_you' ? waiting.size > 0 : is_incomplete);
        if (item !== undefined && !may_match && item !== status) return null;
        return (
          <button
            key={item ?? 'all'}
            type="button"
            aria-pressed={status === item}
            onClick={() => void navigate({ to: '/runs', search: { status: item }, replace: true })}
            className={pillClass(status === item)}
          >
            {item === undefined ? 'All' : sentenceCase(statusText(item))} {countOf(item)}
          </button>
        );
      })}
    </fieldset>
  );
}
