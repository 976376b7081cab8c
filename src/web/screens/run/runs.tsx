/** The runs of all teams, newest first. */
import { useQueries, useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { runStatuses } from '../../../features/runs/rules/run.ts';
import { runsQuery, teamsQuery } from '../../api/queries.ts';
import { NO_ROW_KEYS } from '../../shell/list-keys.ts';
import { buttonClass } from '../../ui/button.tsx';
import { pillClass } from '../../ui/chip.tsx';
import { Screen } from '../../ui/screen.tsx';
import { Empty, Failed, ListNote, QueryState, Skeleton } from '../../ui/states.tsx';
import { sentenceCase, statusText } from '../../ui/status.tsx';
import { useWaitingRuns } from '../../waiting/use-waiting.ts';
import { matchesFilter, shownStatus } from './facts.ts';
import { RunsTable } from './runs-table.tsx';

/** Undefined: all runs. */
const choices = [undefined, 'needs_you', ...runStatuses] as const;

export function Runs() {
  const { status } = useSearch({ from: '/app/runs' });
  const navigate = useNavigate();
  const teams = useQuery(teamsQuery);
  const reads = useQueries({ queries: (teams.data ?? []).map(({ id }) => runsQuery(id)) });
  const names = new Map((teams.data ?? []).map(({ id, name }) => [id, name]));
  const every = reads
    .flatMap(({ data }) => data ?? [])
    .sort((a, b) => b.created_at.localeCompare(a.created_at));
  const waiting = useWaitingRuns();
  const shown = every.filter((run) => matchesFilter(run, status, waiting));
  const failed = reads.find(({ error, data }) => error && data === undefined);
  const isPending = reads.some((read) => read.isPending);

  const filters = (
    <fieldset className="flex flex-wrap gap-1">
      <legend className="sr-only">Show</legend>
      {choices.map((item) => {
        const is_used = every.some((run) => shownStatus(run, waiting) === item);
        if (item !== undefined && !is_used && item !== status) return null;
        const count = every.filter((run) => matchesFilter(run, item, waiting)).length;
        return (
          <button
            key={item ?? 'all'}
            type="button"
            aria-pressed={status === item}
            onClick={() => void navigate({ to: '/runs', search: { status: item }, replace: true })}
            className={pillClass(status === item)}
          >
            {item === undefined ? 'All' : sentenceCase(statusText(item))} {count}
          </button>
        );
      })}
    </fieldset>
  );

  return (
    <Screen title="Runs" rowKeys={NO_ROW_KEYS} toolbar={every.length > 0 && filters}>
      <QueryState read={teams}>
        {() =>
          failed ? (
            <Failed error={failed.error} retry={() => void failed.refetch()} />
          ) : every.length > 0 ? (
            <>
              {shown.length > 0 ? (
                <RunsTable runs={shown} nameOf={(team_id) => names.get(team_id) ?? team_id} />
              ) : (
                <Empty title="No runs match this filter.">
                  <Link to="/runs" search={{}} className={buttonClass()}>
                    Show all {every.length}
                  </Link>
                </Empty>
              )}
              <ListNote
                rows={every.length}
                title="A run is one execution of a team. Start one from a team’s page."
                cli="svc runs create TEAM --input '{}'"
                operation="createRun"
              />
            </>
          ) : isPending ? (
            <Skeleton />
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
