/** All agents, those that need the user first. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { FolderGit2, Network, Plus, Search } from 'lucide-react';
import {
  type ComponentProps,
  lazy,
  Suspense,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from 'react';
import { type AgentRecord, agentsQuery, teamsQuery } from '../../api/queries.ts';
import { useRunNames } from '../../api/run-names.ts';
import { useUnread } from '../../api/seen.ts';
import { useSession } from '../../api/session.ts';
import type { AgentsSearch, AgentTab } from '../../router.tsx';
import type { RowKeys } from '../../shell/list-keys.ts';
import { canStop, stopLabel } from '../../ui/agent-state.ts';
import { Button, buttonClass, floatingClass, IconButton } from '../../ui/button.tsx';
import { pillClass } from '../../ui/chip.tsx';
import { cx } from '../../ui/cx.ts';
import { FilterField } from '../../ui/filter-field.tsx';
import { guardMovedRows } from '../../ui/moved-rows.ts';
import { Screen } from '../../ui/screen.tsx';
import { Select } from '../../ui/select.tsx';
import { Empty, ListNote, QueryState } from '../../ui/states.tsx';
import { showToast } from '../../ui/toast.tsx';
import { firstByAgent } from '../../waiting/queue.ts';
import { useWaiting } from '../../waiting/use-waiting.ts';
import { useAnyAgentAct } from './actions.ts';
import { StartDemo } from './demo.tsx';
import { rememberList } from './last-list.ts';
import {
  counts,
  filterAgents,
  type Group,
  type Grouping,
  groupAgents,
  groupingOf,
  type Waits,
} from './order.ts';
import { AgentRows } from './rows.tsx';

const JoinNodeDialog = lazy(async () => ({
  default: (await import('../nodes/join-node.tsx')).JoinNodeDialog,
}));

const NO_AGENTS: AgentRecord[] = [];
const NO_WAITS: Waits = new Map();

const filters = [
  { show: undefined, label: 'All' },
  { show: 'needs_you', label: 'Needs you' },
  { show: 'your_turn', label: 'Your turn' },
  { show: 'working', label: 'Working' },
  { show: 'failed', label: 'Failed' },
  { show: 'archived', label: 'Archived' },
] as const;

const groupings = [
  { value: 'none', label: 'No grouping' },
  { value: 'repo', label: 'By repository' },
  { value: 'node', label: 'By node' },
  { value: 'team', label: 'By team' },
];

export function Agents() {
  const search = useSearch({ from: '/app/agents' });
  const navigate = useNavigate({ from: '/agents' });
  // Becoming quiet is not an event, so the list is also polled.
  const read = useQuery({ ...agentsQuery, refetchInterval: 60_000 });
  const grouping = groupingOf(read.data ?? [], search.group);
  const { open } = useWaiting();
  const waiting = useMemo(() => firstByAgent(open), [open]);
  const groups = useGroups(read.data, { search, grouping, waiting });
  const unread = useUnread(read.data ?? NO_AGENTS);
  const run_names = useRunNames(read.data ?? NO_AGENTS);
  const rowKeys = useRowKeys();
  const is_empty = read.data?.length === 0;
  useEffect(() => rememberList(search), [search]);
  const change = (next: AgentsSearch) => {
    void navigate({ search: (old) => ({ ...old, ...next }), replace: true });
  };
  return (
    <Screen
      title="Agents"
      rowKeys={rowKeys}
      actions={
        <>
          {/* The toolbar has no room for it. */}
          {!is_empty && (
            <GroupSelect value={grouping} onChange={change} className="hidden sideways:block sideways:w-44" />
          )}
          <KeptWorktrees />
          {!is_empty && <JoinNode />}
        </>
      }
      // Without agents, the list itself says what to do.
      primary={!is_empty && <NewAgent />}
      toolbar={
        !is_empty && <Toolbar agents={read.data} search={search} grouping={grouping} onChange={change} />
      }
    >
      <QueryState read={read}>
        {(agents) =>
          agents.length === 0 ? (
            <NoAgents />
          ) : groups.every((group) => group.agents.length === 0) ? (
            <NoMatch agents={agents} search={search} />
          ) : (
            // On phones, the button for a new agent must not cover what is last.
            <div ref={guardMovedRows} className="max-md:pb-20">
              <Groups {...{ groups, waiting, unread, run_names }} />
              <ListNote
                rows={agents.length}
                title="An agent is a program that svc runs and supervises in a folder."
                cli="svc agents create hello --command 'echo hello' --follow"
                operation="createAgent"
              />
            </div>
          )
        }
      </QueryState>
    </Screen>
  );
}

/** How long a second `e` may take: as long as the toast that asks for it is in view. */
const AGAIN_MS = 5_000;

const offers = { 'Stop agent': 'stop the agent', 'Cancel restart': 'cancel the restart of the agent' };

/** Stops the agent in a row, or starts it if it does not run, when called twice; the first call only says so. */
function useStopOrStart(): (row: HTMLElement) => void {
  const queries = useQueryClient();
  const { mutate } = useAnyAgentAct();
  const offered = useRef<{ offer: string; at: number }>(undefined);
  return useCallback(
    (row) => {
      const agent = queries.getQueryData(agentsQuery.queryKey)?.find(({ id }) => id === row.dataset.row);
      if (!agent) return;
      const act = canStop(agent) ? 'stop' : 'start';
      const what = act === 'stop' ? offers[stopLabel(agent)] : 'start the agent';
      const offer = `${what} ${agent.id}`;
      const { current: first } = offered;
      const at = performance.now();
      if (first?.offer === offer && at - first.at < AGAIN_MS) {
        offered.current = undefined;
        mutate({ agent, act });
      } else {
        offered.current = { offer, at };
        showToast(agent.name, `Press e again to ${what}`);
      }
    },
    [queries, mutate],
  );
}

/** `o` and `d` open the output and the changes of the agent in the focused row, and `e` twice stops or starts it. */
function useRowKeys(): RowKeys {
  const navigate = useNavigate();
  const stopOrStart = useStopOrStart();
  return useMemo(() => {
    const open = (tab: AgentTab) => (row: HTMLElement) =>
      void navigate({
        to: '/agents/$agent_id/$tab',
        params: { agent_id: row.dataset.row!, tab },
        search: {},
      });
    return { o: open('output'), d: open('changes'), e: stopOrStart };
  }, [navigate, stopOrStart]);
}

function useGroups(
  agents: AgentRecord[] | undefined,
  { search, grouping, waiting }: { search: AgentsSearch; grouping: Grouping; waiting: Waits },
): Group[] {
  const { data: teams = [] } = useQuery({ ...teamsQuery, enabled: grouping === 'team' });
  return useMemo(
    () =>
      groupAgents(
        filterAgents(agents ?? [], search, waiting),
        grouping,
        new Map(teams.map((team) => [team.id, team.name])),
      ),
    [agents, search, grouping, waiting, teams],
  );
}

function KeptWorktrees() {
  return (
    <Link to="/worktrees" search={{}} title="Kept worktrees" className={buttonClass('quiet', 'min-w-7 px-1')}>
      <FolderGit2 aria-hidden /> <span className="md:sr-only">Kept worktrees</span>
    </Link>
  );
}

/** Shows root how to add a machine. */
function JoinNode({ is_labeled = false }: { is_labeled?: boolean }) {
  const is_root = useSession()?.user.role === 'root';
  const [joining, setJoining] = useState(false);
  return (
    <>
      {is_root &&
        (is_labeled ? (
          <Button onClick={() => setJoining(true)}>Join node with token</Button>
        ) : (
          <IconButton
            label="Join node with token"
            icon={<Network aria-hidden />}
            onClick={() => setJoining(true)}
          />
        ))}
      {joining && (
        <Suspense>
          <JoinNodeDialog open onClose={() => setJoining(false)} />
        </Suspense>
      )}
    </>
  );
}

function NewAgent() {
  return (
    <Link to="/agents/new" search={{}} className={floatingClass}>
      <Plus aria-hidden /> <span className="max-md:sr-only">New agent</span>
    </Link>
  );
}

function Toolbar({
  agents,
  search,
  grouping,
  onChange,
}: {
  /** Absent until they have been read. */
  agents: readonly AgentRecord[] | undefined;
  search: AgentsSearch;
  grouping: Grouping;
  onChange: (next: AgentsSearch) => void;
}) {
  const numbers = useMemo(() => agents && counts(agents), [agents]);
  const shown = filters.filter(
    ({ show }) => show !== 'archived' || show === search.show || numbers?.archived,
  );
  const [searching, setSearching] = useState(false);
  const is_filtered = search.q !== undefined;
  return (
    <div className="contents sideways:flex sideways:min-w-0 sideways:flex-1 sideways:items-center sideways:gap-2">
      {/* One scrolling row on phones, so that nothing wraps differently when the font arrives late. */}
      <nav
        aria-label="Show"
        className="-m-1 flex min-w-0 flex-1 gap-1 overflow-x-auto p-1 md:flex-none sideways:flex-initial"
      >
        {shown.map(({ show, label }) => (
          <Link
            key={label}
            to="/agents"
            search={{ ...search, show }}
            replace
            aria-current={search.show === show ? 'true' : undefined}
            className={pillClass(search.show === show)}
          >
            {label}
            <span className="min-w-4 text-right tabular-nums">{numbers?.[show ?? 'all']}</span>
          </Link>
        ))}
      </nav>
      <span className={cx('md:hidden', (searching || is_filtered) && 'hidden')}>
        <IconButton label="Search" icon={<Search aria-hidden />} onClick={() => setSearching(true)} />
      </span>
      <FilterField
        label="Filter agents"
        placeholder="Filter"
        shows_key
        value={search.q ?? ''}
        onText={(text) => onChange({ q: text || undefined })}
        className={cx('min-w-28 flex-1 md:max-w-56', !searching && !is_filtered && 'max-md:hidden')}
      />
      <GroupSelect value={grouping} onChange={onChange} className="max-w-36 max-md:hidden sideways:hidden" />
    </div>
  );
}

function GroupSelect({
  value,
  onChange,
  className,
}: {
  value: Grouping;
  onChange: (next: AgentsSearch) => void;
  className: string;
}) {
  return (
    <Select
      aria-label="Group"
      choices={groupings}
      value={value}
      onChange={(group) => onChange({ group: group as Grouping })}
      className={cx('w-auto', className)}
    />
  );
}

/** There are agents, but the filter shows none of them. */
function NoMatch({ agents, search }: { agents: readonly AgentRecord[]; search: AgentsSearch }) {
  const { all } = counts(agents);
  const archived = filterAgents(agents, { show: 'archived', q: search.q }, NO_WAITS).length;
  return (
    <Empty title={all === 0 && !search.show ? 'All agents are archived.' : 'No agents match this filter.'}>
      {all > 0 && (
        <Link to="/agents" search={{}} className={buttonClass()}>
          Show all {all}
        </Link>
      )}
      {archived > 0 && search.show !== 'archived' && (
        <Link to="/agents" search={{ ...search, show: 'archived' }} className={buttonClass()}>
          Show {archived} archived
        </Link>
      )}
    </Empty>
  );
}

function NoAgents() {
  return (
    <Empty
      title="No agents yet. An agent is a program that svc runs and supervises in a folder. The demo needs no API key."
      cli="svc agents create hello --command 'echo hello' --follow"
      operation="createAgent"
    >
      <StartDemo />
      <Link to="/agents/new" search={{}} className={buttonClass()}>
        New agent
      </Link>
      <JoinNode is_labeled />
    </Empty>
  );
}

function Groups({
  groups,
  ...facts
}: {
  groups: readonly Group[];
} & Pick<ComponentProps<typeof AgentRows>, 'waiting' | 'unread' | 'run_names'>) {
  return groups.map((group, at) => (
    <section key={group.name} aria-label={group.name || 'Agents'}>
      {group.name && (
        <h2 className="sticky top-0 z-10 border-line border-b bg-surface px-4 py-1 font-medium text-muted text-sm">
          {group.name}
        </h2>
      )}
      <AgentRows label={group.name || 'Agents'} agents={group.agents} headed={at === 0} {...facts} />
    </section>
  ));
}
