/** The teams of the user, with their last runs. */
import { useInfiniteQuery, useQueries, useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { ChevronDown, Plus } from 'lucide-react';
import { allRunsQuery } from '../../api/all-runs.ts';
import { type RunRecord, runsQuery, type TeamRecord, teamsQuery } from '../../api/queries.ts';
import { NO_ROW_KEYS } from '../../shell/list-keys.ts';
import { Button, buttonClass } from '../../ui/button.tsx';
import { Menu } from '../../ui/menu.tsx';
import { rowMarkClass } from '../../ui/row-class.ts';
import { Screen } from '../../ui/screen.tsx';
import { ApiLink, CommandLine, ListNote, QueryState } from '../../ui/states.tsx';
import { TableHead } from '../../ui/table-head.tsx';
import { Ago } from '../../ui/time.tsx';
import { Truncated } from '../../ui/truncated.tsx';
import { useWaitingRuns } from '../../waiting/use-waiting.ts';
import { RunStatus } from '../run/status.tsx';
import { templates } from './templates.ts';

const columns = [
  { label: 'Team', className: 'w-40 lg:w-56' },
  { label: 'Description' },
  { label: 'Members', className: 'w-24' },
  { label: 'Version', className: 'w-20' },
  { label: 'Last run', className: 'w-44 lg:w-64' },
];

const NO_TEAMS: readonly TeamRecord[] = [];

export function Teams() {
  const teams = useQuery(teamsQuery);
  const lastRuns = useLastRuns(teams.data ?? NO_TEAMS);
  const waiting = useWaitingRuns();
  const navigate = useNavigate();
  const begin = (template?: string) => void navigate({ to: '/teams/new', search: { template } });
  return (
    <Screen
      title="Teams"
      rowKeys={NO_ROW_KEYS}
      actions={
        <>
          <Link to="/runs" className={buttonClass('plain')}>
            All runs
          </Link>
          <Menu
            trigger={
              <Button variant="primary" icon={<Plus aria-hidden />}>
                New team <ChevronDown aria-hidden />
              </Button>
            }
            items={[
              ...templates.map(({ id, title, what }) => ({
                label: title,
                hint: what,
                onSelect: () => begin(id),
              })),
              { label: 'Blank', onSelect: () => begin() },
            ]}
          />
        </>
      }
    >
      <QueryState read={teams}>
        {(all) =>
          all.length === 0 ? (
            <NoTeams onBegin={begin} />
          ) : (
            <>
              <table className="w-full table-fixed border-collapse max-md:block">
                <TableHead columns={columns} className="max-md:sr-only" />
                <tbody className="max-md:block">
                  {all.map((team) => {
                    const last = lastRuns.get(team.id);
                    return (
                      <Row
                        key={team.id}
                        team={team}
                        last={last}
                        needs_you={last !== undefined && waiting.has(last.id)}
                      />
                    );
                  })}
                </tbody>
              </table>
              <ListNote
                rows={all.length}
                title="A team is a group of agents that work together on the steps of a run."
                cli="svc teams create --file team.json"
                operation="createTeam"
              />
            </>
          )
        }
      </QueryState>
    </Screen>
  );
}

type LastRun = Pick<RunRecord, 'id' | 'number' | 'status' | 'created_at'>;

/**
 * The newest run of each team, by its id. Most are among the newest runs of all teams; only the runs of other teams are read
 * for each team.
 */
function useLastRuns(teams: readonly TeamRecord[]): ReadonlyMap<string, LastRun> {
  const { data, hasNextPage } = useInfiniteQuery(allRunsQuery);
  const last = new Map<string, LastRun>();
  for (const run of data?.pages.flatMap(({ items }) => items) ?? []) {
    if (!last.has(run.team_id)) last.set(run.team_id, run);
  }
  const others = hasNextPage ? teams.filter(({ id }) => !last.has(id)) : NO_TEAMS;
  const reads = useQueries({ queries: others.map(({ id }) => runsQuery(id)) });
  for (const { data: runs } of reads) {
    if (runs?.[0]) last.set(runs[0].team_id, runs[0]);
  }
  return last;
}

function Row({
  team,
  last,
  needs_you,
}: {
  team: TeamRecord;
  last: LastRun | undefined;
  /** Something in its last run waits for the user. */
  needs_you: boolean;
}) {
  return (
    <tr
      data-row
      className={`${rowMarkClass} max-md:flex max-md:flex-wrap max-md:gap-x-3 max-md:px-3 max-md:py-1.5 md:h-9 md:[&>td]:px-2 md:[&>th]:pr-2 md:[&>th]:pl-4`}
    >
      <th scope="row" className="min-w-0 truncate text-left font-normal max-md:max-w-full">
        <Link
          to="/teams/$team_id"
          params={{ team_id: team.id }}
          className="tap inline-flex max-w-full items-center font-medium after:absolute after:inset-0 hover:underline"
        >
          <Truncated>{team.name}</Truncated>
        </Link>
      </th>
      <td className="min-w-0 max-md:order-last max-md:w-full">
        <div dir="auto" className="truncate text-left text-muted" title={team.description}>
          {team.description}
        </div>
      </td>
      <td className="max-md:flex max-md:items-center">
        <span>
          {team.spec.members.length} <span className="text-muted md:sr-only">members</span>
        </span>
      </td>
      <td className="text-muted max-md:hidden">v{team.version}</td>
      <td className="max-md:flex max-md:items-center">
        {last ? (
          <Link
            to="/teams/$team_id/runs/$run_id"
            params={{ team_id: team.id, run_id: last.id }}
            className="tap relative z-1 inline-flex max-w-full items-center gap-2 hover:underline"
          >
            Run {last.number} <RunStatus status={last.status} needs_you={needs_you} />
            <span className="text-muted max-lg:hidden">
              <Ago at={last.created_at} />
            </span>
          </Link>
        ) : (
          <span className="text-muted">No runs</span>
        )}
      </td>
    </tr>
  );
}

function NoTeams({ onBegin }: { onBegin: (template?: string) => void }) {
  return (
    <div className="mx-auto flex max-w-3xl flex-col items-center gap-4 px-4 py-12 text-center">
      <p className="text-prose">
        No teams yet. A team is a group of agents that work together on the steps of a run. Start with one of
        these:
      </p>
      <ul className="grid w-full gap-3 md:grid-cols-3">
        {templates.map(({ id, title, what }) => (
          <li key={id} className="flex">
            <button
              type="button"
              onClick={() => onBegin(id)}
              className="flex w-full flex-col gap-1 rounded-lg border border-line p-4 text-left transition-colors hover:border-line-strong hover:bg-surface"
            >
              <span className="font-medium">{title}</span>
              <span className="text-muted">{what}</span>
            </button>
          </li>
        ))}
      </ul>
      <Button onClick={() => onBegin()}>New blank team</Button>
      <CommandLine command="svc teams create --file team.json" />
      <ApiLink operation="createTeam" />
    </div>
  );
}
