/** The runs of all teams, newest first. */
import { useQueries, useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { runStatuses } from '../../../features/runs/rules/run.ts';
import { type RunRecord, runsQuery, teamsQuery } from '../../api/queries.ts';
import { NO_ROW_KEYS } from '../../shell/list-keys.ts';
import { buttonClass } from '../../ui/button.tsx';
import { pillClass } from '../../ui/chip.tsx';
import { Screen } from '../../ui/screen.tsx';
import { Empty, Failed, ListNote, QueryState, Skeleton } from '../../ui/states.tsx';
import { RunsTable } from './runs-table.tsx';

export function Runs() {
  const { status } = useSearch({ from: '/app/runs' });
  const navigate = useNavigate();
  const teams = useQuery(teamsQuery);
  const reads = useQueries({ queries: (teams.data ?? []).map(({ id }) => runsQuery(id)) });
  const names = new Map((teams.data ?? []).map(({ id, name }) => [id, name]));
  const every = reads
    .flatMap(({ data }) => data ?? [])
    .sort((a, b) => b.created_at.localeCompare(a.created_at));
  const failed = reads.find(({ error, data }) => error && data === undefined);
  const isPending = reads.some((read) => read.isPending);

  const filters = (
    <fieldset className="flex flex-wrap gap-1">
      <legend className="sr-only">Show</legend>
      {[undefined, ...runStatuses].map((item) => {
        const count = countRuns(every, item);
        if (item !== undefined && count === 0 && item !== status) return null;
        return (
          <button
            key={item ?? 'all'}
            type="button"
            aria-pressed={status === item}
            onClick={() => void navigate({ to: '/runs', search: { status: item }, replace: true })}
            className={pillClass(status === item)}
          >
            {item === undefined ? 'All' : statusLabel(item)} {count}
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
              <RunsTable
                runs={status === undefined ? every : every.filter((run) => run.status === status)}
                nameOf={(team_id) => names.get(team_id) ?? team_id}
              />
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

/** `input_required` as `Input required`. */
function statusLabel(status: string): string {
  const text = status.replace('_', ' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function countRuns(runs: readonly RunRecord[], status: string | undefined): number {
  return status === undefined ? runs.length : runs.filter((run) => run.status === status).length;
}
