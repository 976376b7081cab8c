/** The runs of all teams, newest first. */
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useMemo } from 'react';
import { runStatuses } from '../../../features/runs/rules/run.ts';
import { allRunsQuery, type ListedRunRecord } from '../../api/all-runs.ts';
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

export function Runs() {
  const { status } = useSearch({ from: '/app/runs' });
  const read = useInfiniteQuery(allRunsQuery);
  const every = useMemo(() => read.data?.pages.flatMap(({ items }) => items), [read.data]);
  const waiting = useWaitingRuns();
  const shown = every?.filter((run) => matchesFilter(run, status, waiting)) ?? [];
  const older: Older | null = read.hasNextPage
    ? {
        busy: read.isFetchingNextPage,
        error: read.isFetchNextPageError ? read.error : null,
        read: () => void read.fetchNextPage(),
      }
    : null;
  const { isPending, dataUpdatedAt, refetch } = read;
  const error = read.isFetchNextPageError ? null : read.error;
  return (
    <Screen
      title="Runs"
      rowKeys={NO_ROW_KEYS}
      toolbar={every && every.length > 0 && <Filters runs={every} has_more={older !== null} />}
    >
      <QueryState read={{ data: every, error, isPending, dataUpdatedAt, refetch }}>
        {(every) =>
          every.length > 0 ? (
            <>
              {shown.length > 0 ? (
                <RunsTable runs={shown} names_teams older={older} />
              ) : (
                <Empty title="No runs match this filter.">
                  <Link to="/runs" search={{}} className={buttonClass()}>
                    Show all {every.length}
                    {older && '+'}
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
          ) : (
            <Empty
              title="No runs yet. A run is one execution of a team. Start one from a team’s page."
              cli="svc runs create TEAM --input '{}'"
              operation="createRun"
            >
              <Link to="/teams" className={buttonClass('primary')}>
                Open teams
              </Link>
            </Empty>
          )
        }
      </QueryState>
    </Screen>
  );
}

/** `has_more`: there are older runs, which are not counted. */
function Filters({ runs, has_more }: { runs: readonly ListedRunRecord[]; has_more: boolean }) {
  const { status } = useSearch({ from: '/app/runs' });
  const navigate = useNavigate();
  const waiting = useWaitingRuns();
  return (
    <fieldset className="flex flex-wrap gap-1">
      <legend className="sr-only">Show</legend>
      {choices.map((item) => {
        const is_used = runs.some((run) => shownStatus(run, waiting) === item);
        if (item !== undefined && !is_used && item !== status) return null;
        const count = runs.filter((run) => matchesFilter(run, item, waiting)).length;
        return (
          <button
            key={item ?? 'all'}
            type="button"
            aria-pressed={status === item}
            onClick={() => void navigate({ to: '/runs', search: { status: item }, replace: true })}
            className={pillClass(status === item)}
          >
            {item === undefined ? 'All' : sentenceCase(statusText(item))} {count}
            {has_more && '+'}
          </button>
        );
      })}
    </fieldset>
  );
}
