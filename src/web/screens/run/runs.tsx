/** The runs of all teams, newest first. */
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useMemo } from 'react';
import { runStatuses } from '../../../features/runs/rules/run.ts';
import { allRunsQuery, type ListedRunRecord, runsWithQuery } from '../../api/all-runs.ts';
import { NO_ROW_KEYS } from '../../shell/list-keys.ts';
import { buttonClass } from '../../ui/button.tsx';
import { pillClass } from '../../ui/chip.tsx';
import { Screen } from '../../ui/screen.tsx';
import { Empty, ListNote, QueryState } from '../../ui/states.tsx';
import { sentenceCase, statusText } from '../../ui/status.tsx';
import { useWaitingRuns } from '../../waiting/use-waiting.ts';
import { matchesFilter, shownStatus } from './facts.ts';
import { type Older, OlderRuns, RunsTable } from './runs-table.tsx';

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

/** If older runs were not read, the service searches them for the status. */
function useRuns(status: string | undefined) {
  const read = useInfiniteQuery(allRunsQuery);
  const searched = runStatuses.find((one) => one === status);
  const is_searched = searched !== undefined && read.hasNextPage;
  const found = useInfiniteQuery({ ...runsWithQuery(searched ?? 'failed'), enabled: is_searched });
  const waiting = useWaitingRuns();
  const every = useMemo(() => read.data?.pages.flatMap(({ items }) => items), [read.data]);
  const listed = is_searched ? found.data?.pages.flatMap(({ items }) => items) : every;
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage, error } = is_searched
    ? found
    : read;
  const older: Older | null = hasNextPage
    ? {
        busy: isFetchingNextPage,
        error: isFetchNextPageError ? error : null,
        read: () => void fetchNextPage(),
      }
    : null;
  const runs: ShownRuns = {
    every,
    shown: listed?.filter((run) => matchesFilter(run, status, waiting)) ?? [],
    older,
    is_incomplete: read.hasNextPage,
  };
  const { isPending, dataUpdatedAt, refetch } = is_searched ? found : read;
  return {
    runs,
    read: {
      data: listed && every,
      error: isFetchNextPageError ? null : error,
      isPending,
      dataUpdatedAt,
      refetch,
    },
  };
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
        // Older runs may have any status, but those that wait for the user are few and known.
        const may_match = is_used || (is_incomplete && item !== 'needs_you' && item !== 'input_required');
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
