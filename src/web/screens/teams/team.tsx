/** One team: its members, steps and runs. */
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { Pencil, Play, Trash } from 'lucide-react';
import { type ComponentProps, type ReactNode, useState } from 'react';
import { useAct } from '../../api/act.ts';
import { teamRunsQuery } from '../../api/all-runs.ts';
import { call } from '../../api/client.ts';
import { keys } from '../../api/keys.ts';
import { type TeamRecord, teamQuery } from '../../api/queries.ts';
import { GRAPH_STEPS_MAX, StepsGraph } from '../../graph/lazy.tsx';
import { Button, buttonClass } from '../../ui/button.tsx';
import { Deleted, isDeleted } from '../../ui/deleted.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Disclosure } from '../../ui/disclosure.tsx';
import { useIsHere } from '../../ui/here.ts';
import { useNarrow } from '../../ui/media.ts';
import { Page } from '../../ui/page.tsx';
import { Screen } from '../../ui/screen.tsx';
import { ActionError, Empty, QueryState, Stale } from '../../ui/states.tsx';
import { showToast } from '../../ui/toast.tsx';
import { olderOf, stateOf } from '../run/paged.ts';
import { RunsTable } from '../run/runs-table.tsx';
import { CallsHint } from './calls-hint.tsx';
import { StartRun } from './start-run.tsx';

export function Team() {
  const { team_id } = useParams({ from: '/app/teams/$team_id' });
  const team = useQuery(teamQuery(team_id));
  if (team.data) {
    const notice = team.error && (
      <TeamNotice error={team.error} since={team.dataUpdatedAt} retry={() => void team.refetch()} />
    );
    return <TeamScreen key={team_id} team={team.data} notice={notice} />;
  }
  return (
    <Screen title="Team" back={teams_page}>
      <QueryState read={team} back={teams_page}>
        {() => null}
      </QueryState>
    </Screen>
  );
}

const teams_page = { to: '/teams', label: 'teams' };

/** Why the shown record may not be current. */
function TeamNotice({ error, ...stale }: { error: Error } & ComponentProps<typeof Stale>) {
  return isDeleted(error) ? <Deleted what="team" error={error} /> : <Stale {...stale} />;
}

function TeamScreen({ team, notice }: { team: TeamRecord; notice: ReactNode }) {
  const [open, setOpen] = useState<'start' | 'delete' | null>(null);
  const read = useInfiniteQuery(teamRunsQuery(team));
  const runs = { ...stateOf([read]), data: read.data?.pages.flatMap(({ items }) => items) };
  const start = (
    <Button variant="primary" icon={<Play aria-hidden />} onClick={() => setOpen('start')}>
      Start run
    </Button>
  );
  return (
    <Screen
      title={team.name}
      back={teams_page}
      primary={start}
      actions={
        <>
          <Button variant="danger" icon={<Trash aria-hidden />} onClick={() => setOpen('delete')}>
            Delete
          </Button>
          <Link to="/teams/$team_id/edit" params={{ team_id: team.id }} className={buttonClass('plain')}>
            <Pencil aria-hidden /> Edit
          </Link>
        </>
      }
    >
      {notice}
      <Page width="full" className="gap-3!">
        <About team={team} />
        <CallsHint spec={team.spec} />
        <div className="grid min-w-0 gap-3 xl:grid-cols-2">
          <MemberList team={team} />
          <Steps team={team} />
        </div>
        <section aria-label="Runs" className="min-w-0">
          <h2 className="py-1 font-medium">Runs</h2>
          <QueryState read={runs}>
            {(runs) =>
              runs.length === 0 ? (
                <Empty
                  title="No runs yet. A run is one execution of this team."
                  cli={`svc runs create ${team.id}`}
                  operation="createRun"
                >
                  {start}
                </Empty>
              ) : (
                <RunsTable runs={runs} older={olderOf([read])} />
              )
            }
          </QueryState>
        </section>
      </Page>
      <Dialog open={open === 'start'} onClose={() => setOpen(null)} title={`Run ${team.name}`}>
        <StartRun team={team} />
      </Dialog>
      <Dialog
        open={open === 'delete'}
        onClose={() => setOpen(null)}
        title={`Delete ${team.name}?`}
        description="Its runs, tasks and task threads are deleted too. Agents that its runs created are kept until their retention ends."
      >
        <Delete team={team} onClose={() => setOpen(null)} />
      </Dialog>
    </Screen>
  );
}

function About({ team }: { team: TeamRecord }) {
  return (
    <>
      {team.description && (
        <p dir="auto" className="max-w-prose break-words text-prose">
          {team.description}
        </p>
      )}
      <p className="flex flex-wrap gap-x-4 text-muted text-sm">
        <span>Version {team.version}</span>
        <span className="min-w-0 break-words">
          Access: {team.human_members.length > 0 ? team.human_members.join(', ') : 'owner and root'}
        </span>
        {team.spec.review_route === 'leader' && <span>Permission reviews go to the leader first</span>}
      </p>
    </>
  );
}

function MemberList({ team: { spec } }: { team: TeamRecord }) {
  return (
    <section aria-label="Members" className="min-w-0 rounded-md border border-line">
      <h2 className="border-line border-b px-3 py-1.5 font-medium">Members</h2>
      <ul>
        {spec.members.map(({ member_id, description, skills, agent }) => (
          <li key={member_id} className="min-w-0 border-line border-t px-3 py-1.5 first:border-t-0">
            <p className="flex min-w-0 flex-wrap items-center gap-x-2">
              <b className="min-w-0 truncate font-medium">{member_id}</b>
              {member_id === spec.leader_member_id && <span className="text-accent text-sm">Leader</span>}
              <span className="min-w-0 truncate text-muted text-sm">
                {agent === null ? 'External' : (agent.preset ?? agent.command ?? agent.argv?.join(' '))}
                {agent && agent.node_id !== 'main' && ` · node:${agent.node_id}`}
              </span>
            </p>
            {description && (
              <p dir="auto" className="break-words">
                {description}
              </p>
            )}
            {skills.length > 0 && (
              <p className="break-words text-muted text-sm">skills: {skills.join(', ')}</p>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Steps({ team: { spec } }: { team: TeamRecord }) {
  const is_narrow = useNarrow();
  const list = (
    <ol className="max-h-80 overflow-y-auto">
      {spec.steps.map(({ step_key, member_id, depends_on }) => (
        <li key={step_key} className="break-words border-line border-t px-3 py-1 first:border-t-0">
          <b className="font-medium">{step_key}</b> <span className="text-muted">by {member_id}</span>
          {depends_on.length > 0 && <span className="text-muted"> after {depends_on.join(', ')}</span>}
        </li>
      ))}
    </ol>
  );
  return (
    <section aria-label="Steps" className="min-w-0 rounded-md border border-line">
      <h2 className="border-line border-b px-3 py-1.5 font-medium">
        Steps <span className="font-normal text-muted">{spec.steps.length}</span>
      </h2>
      {spec.steps.length === 0 ? (
        <p className="px-3 py-8 text-center text-muted">
          {spec.leader_member_id === null
            ? 'No steps: a person completes or fails each run.'
            : 'No steps: the leader plans the work.'}
        </p>
      ) : is_narrow ? (
        list
      ) : (
        <>
          {spec.steps.length <= GRAPH_STEPS_MAX && <StepsGraph steps={spec.steps} label="Step graph" />}
          <Disclosure summary="List" className="border-line border-t" summaryClass="px-3 py-1 text-muted">
            {list}
          </Disclosure>
        </>
      )}
    </section>
  );
}

function Delete({ team, onClose }: { team: TeamRecord; onClose: () => void }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const isHere = useIsHere();
  const act = useAct(
    (team_id: string) => call('deleteTeam', { params: { team_id } }),
    async () => {
      void queries.invalidateQueries({ queryKey: keys.teams });
      void queries.invalidateQueries({ queryKey: keys.all_runs });
      if (isHere()) await navigate({ to: '/teams' });
      else showToast(team.name, 'The team was deleted');
      // Not before, because this page would read them again while it closes. One that is shown again by now must.
      for (const queryKey of [keys.team(team.id), keys.runs(team.id)])
        void queries.invalidateQueries({ queryKey });
    },
  );
  return (
    <div className="flex flex-col gap-3">
      <ActionError error={act.error} />
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>Cancel</Button>
        <Button variant="danger" busy={act.isPending} onClick={() => act.mutate(team.id)}>
          {act.isPending ? 'Deleting…' : 'Delete team'}
        </Button>
      </div>
    </div>
  );
}
