/** The page of one agent: its name, status and actions, above the tab that the URL selects. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, Navigate, Outlet, useNavigate, useParams } from '@tanstack/react-router';
import { Archive, CloudOff } from 'lucide-react';
import { createContext, use, useEffect, useRef, useState } from 'react';
import { readAfterFetch } from '../../api/after-fetch.ts';
import { keys } from '../../api/keys.ts';
import { type AgentRecord, agentQuery, agentsQuery, changesQuery, teamsQuery } from '../../api/queries.ts';
import { type AgentTab, agentTabs } from '../../router.tsx';
import { appearance } from '../../shell/appearance.ts';
import { cx } from '../../ui/cx.ts';
import { Deleted } from '../../ui/deleted.tsx';
import { hasModifier, isTyping } from '../../ui/keys.ts';
import { ObservedPermissionMode } from '../../ui/permission-mode.tsx';
import { Screen } from '../../ui/screen.tsx';
import { Failed, QueryState, Skeleton } from '../../ui/states.tsx';
import { AgentStatus } from '../../ui/status.tsx';
import { tabClass } from '../../ui/tab-class.ts';
import { TabNav } from '../../ui/tab-nav.tsx';
import { Clock } from '../../ui/time.tsx';
import { Truncated } from '../../ui/truncated.tsx';
import { firstByAgent } from '../../waiting/queue.ts';
import { useWaiting } from '../../waiting/use-waiting.ts';
import { Branch, Place, RestartsIn } from '../agents/facts.tsx';
import { listedAgents, neighborOf } from '../agents/last-list.ts';
import { describeEnd, getProgram } from '../agents/order.ts';
import { AgentActions } from './agent-actions.tsx';
import { DeleteAgent } from './delete.tsx';
import { AskToDelete, type Deletion } from './deleting.ts';
import { PendingRequest } from './pending.tsx';
import { getView } from './views.ts';

const agents_page = { to: '/agents', label: 'agents' };

const ShownAgent = createContext<AgentRecord | null>(null);

export function Agent() {
  const { agent_id } = useParams({ from: '/app/agents/$agent_id' });
  const queries = useQueryClient();
  const read = useQuery({
    ...agentQuery(agent_id),
    // The list may already have the record, so the page need not wait for it.
    placeholderData: () => queries.getQueryData(agentsQuery.queryKey)?.find((agent) => agent.id === agent_id),
  });
  const [deleting, setDeleting] = useState<{ agent: AgentRecord; how: Deletion } | null>(null);
  return (
    <>
      {read.data ? (
        <Shown
          key={agent_id}
          agent={read.data}
          error={read.error}
          onDelete={(how) => setDeleting({ agent: read.data, how })}
        />
      ) : (
        <Screen title="Agent" back={agents_page}>
          <QueryState read={read} back={agents_page}>
            {() => null}
          </QueryState>
        </Screen>
      )}
      {deleting?.agent.id === agent_id && <DeleteAgent {...deleting} onClose={() => setDeleting(null)} />}
    </>
  );
}

function Shown({
  agent,
  error,
  onDelete,
}: {
  agent: AgentRecord;
  error: unknown;
  onDelete: (how: Deletion) => void;
}) {
  const changes = useChanges(agent);
  useNeighborKeys(agent.id);
  return (
    <Screen
      title={agent.name}
      back={agents_page}
      heading={
        <span className="flex min-w-0 items-center gap-x-3 md:flex-wrap">
          <Truncated className="min-w-0 max-w-full" title={agent.name}>
            {agent.name}
          </Truncated>
          <AgentStatus agent={agent} className="shrink-0 font-normal text-base tracking-normal" />
          <span className="font-normal text-base tracking-normal max-md:hidden">
            <ObservedPermissionMode agent={agent} />
          </span>
          {agent.status === 'failed' && (
            <span className="font-normal text-base text-failed tracking-normal max-md:hidden">
              {describeEnd(agent)}
              <RestartsIn agent={agent} />
            </span>
          )}
        </span>
      }
      actions={<AgentActions agent={agent} changes={changes} onDelete={() => onDelete('delete')} />}
      toolbar={
        <>
          <TabNav label="Views" className="-mb-2 border-b-0">
            {listTabs(agent).map((tab) => (
              <Link
                key={tab}
                to="/agents/$agent_id/$tab"
                params={{ agent_id: agent.id, tab }}
                search={{}}
                activeOptions={{ includeSearch: false, includeHash: false }}
                className={cx(tabClass, 'capitalize')}
              >
                {tab}
                {tab === 'changes' && changes > 0 && ` ${changes}`}
              </Link>
            ))}
          </TabNav>
          <p className="flex min-w-0 flex-wrap items-center gap-x-3 text-muted text-sm max-md:hidden md:ml-auto">
            <span>{getProgram(agent)}</span>
            <Place agent={agent} />
            <Branch agent={agent} />
          </p>
        </>
      }
      className="relative flex flex-col overflow-hidden!"
    >
      <Deleted what="agent" error={error} />
      <Notices agent={agent} />
      <PendingRequest agent={agent} />
      <ShownAgent value={agent}>
        <AskToDelete value={onDelete}>
          <Outlet />
        </AskToDelete>
      </ShownAgent>
    </Screen>
  );
}

/** What the user must know before they read the page. */
function Notices({ agent }: { agent: AgentRecord }) {
  return (
    <>
      {agent.stale_since && (
        <p role="status" className="flex items-center gap-2 bg-surface px-4 py-1 text-warning">
          <CloudOff aria-hidden className="size-4" />
          <span>
            node:{agent.node_id} has been unreachable since <Clock at={agent.stale_since} />. This page may be
            out of date.
          </span>
        </p>
      )}
      {agent.archived_at && (
        <p role="status" className="flex items-center gap-2 bg-surface px-4 py-1 text-muted">
          <Archive aria-hidden className="size-4" />
          <span>
            Archived since <Clock at={agent.archived_at} />. Starting the agent takes it out of the archive.
          </span>
        </p>
      )}
    </>
  );
}

/** `[` and `]` open the previous and the next agent, in the order of the list, filtered and grouped as it was last. */
function useNeighborKeys(agent_id: string): void {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const { open } = useWaiting();
  const waiting = useRef(open);
  waiting.current = open;
  useEffect(() => {
    const press = async (event: KeyboardEvent) => {
      if (event.key !== '[' && event.key !== ']') return;
      if (event.defaultPrevented || !appearance().shortcuts || hasModifier(event) || isTyping(event)) return;
      event.preventDefault();
      // Without an answer of the service there is nowhere to go, and the badge shows why.
      const list = await queries.ensureQueryData(agentsQuery).catch(() => []);
      const teams = queries.getQueryData(teamsQuery.queryKey) ?? [];
      const listed = listedAgents(list, teams, firstByAgent(waiting.current));
      const next = neighborOf(agent_id, event.key === '[' ? -1 : 1, listed);
      if (next) void navigate({ to: '/agents/$agent_id', params: { agent_id: next.id } });
    };
    const onKey = (event: KeyboardEvent) => void press(event);
    // Before Alt and a digit, which types a bracket on some Macs.
    document.addEventListener('keydown', onKey, true);
    return () => document.removeEventListener('keydown', onKey, true);
  }, [queries, navigate, agent_id]);
}

/** The number of changed files; read again whenever the agent's status or activity changes. */
function useChanges({ id, status, activity, stale_since }: AgentRecord): number {
  const queries = useQueryClient();
  const { data } = useQuery({ ...changesQuery(id), enabled: !stale_since });
  const is_open = useRef(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: read again when one of these changes
  useEffect(() => {
    if (is_open.current) readAfterFetch(queries, keys.changes(id));
    // The page may have just begun to read them.
    else void queries.invalidateQueries({ queryKey: keys.changes(id) }, { cancelRefetch: false });
    is_open.current = true;
  }, [queries, id, status, activity]);
  return data?.files.length ?? 0;
}

function listTabs({ protocol }: AgentRecord): AgentTab[] {
  return agentTabs.filter((tab) => tab !== 'conversation' || protocol === 'acp');
}

export function AgentHome() {
  const agent = use(ShownAgent);
  if (!agent) return null;
  const [tab] = listTabs(agent);
  return (
    <Navigate to="/agents/$agent_id/$tab" params={{ agent_id: agent.id, tab: tab! }} search={{}} replace />
  );
}

export function AgentView() {
  const agent = use(ShownAgent);
  const { tab } = useParams({ from: '/app/agents/$agent_id/$tab' });
  if (!agent) return null;
  const known = agentTabs.find((item) => item === tab);
  if (known === 'conversation' && !listTabs(agent).includes(known)) return <AgentHome />;
  if (!known)
    return (
      <Failed error={new Error('This page does not exist.')}>
        <Link
          to="/agents/$agent_id"
          params={{ agent_id: agent.id }}
          className="tap inline-flex items-center underline"
        >
          Go to {agent.name}
        </Link>
      </Failed>
    );
  const View = getView(known);
  return <div className="flex min-h-0 flex-1 flex-col">{View ? <View agent={agent} /> : <Skeleton />}</div>;
}
