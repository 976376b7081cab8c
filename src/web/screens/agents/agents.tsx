/** All agents, those that need the user first: a table on wide screens, cards on phones or by choice. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { LayoutGrid, List, Network, Plus } from 'lucide-react';
import { lazy, Suspense, useMemo, useState } from 'react';
import { type AgentRecord, agentsQuery, teamsQuery } from '../../api/queries.ts';
import { useSession } from '../../api/session.ts';
import type { AgentsSearch, AgentTab } from '../../router.tsx';
import type { RowKeys } from '../../shell/list-keys.ts';
import { buttonClass, IconButton } from '../../ui/button.tsx';
import { cx } from '../../ui/cx.ts';
import { FilterField } from '../../ui/filter-field.tsx';
import { mediaHook } from '../../ui/media.ts';
import { Screen } from '../../ui/screen.tsx';
import { Select } from '../../ui/select.tsx';
import { Empty, QueryState } from '../../ui/states.tsx';
import { useWaiting } from '../../waiting/use-waiting.ts';
import { AgentCards } from './cards.tsx';
import { StartDemo } from './demo.tsx';
import { counts, filterAgents, type Group, groupAgents } from './order.ts';
import { AgentRows } from './rows.tsx';

const JoinNodeDialog = lazy(async () => ({
  default: (await import('../nodes/join-node.tsx')).JoinNodeDialog,
}));

/** Whether there is room for the table; the same width as the classes `md:`. */
const useWide = mediaHook('(width >= 48rem)');

const filters = [
  { show: undefined, label: 'All' },
  { show: 'needs_you', label: 'Needs you' },
  { show: 'your_turn', label: 'Your turn' },
  { show: 'working', label: 'Working' },
  { show: 'failed', label: 'Failed' },
] as const;

const groupings = [
  { value: '', label: 'No grouping' },
  { value: 'repo', label: 'By repository' },
  { value: 'node', label: 'By node' },
  { value: 'team', label: 'By team' },
];

export function Agents() {
  const search = useSearch({ from: '/app/agents' });
  const navigate = useNavigate({ from: '/agents' });
  // Becoming quiet is not an event, so the list is also polled.
  const read = useQuery({ ...agentsQuery, refetchInterval: 60_000 });
  const groups = useGroups(read.data, search);
  const rowKeys = useRowKeys();
  const change = (next: AgentsSearch) => {
    void navigate({ search: (old) => ({ ...old, ...next }), replace: true });
  };
  return (
    <Screen
      title="Agents"
      rowKeys={rowKeys}
      actions={<Actions />}
      toolbar={<Toolbar agents={read.data ?? []} search={search} onChange={change} />}
    >
      <QueryState read={read}>
        {(agents) =>
          agents.length === 0 ? (
            <NoAgents />
          ) : groups.every((group) => group.agents.length === 0) ? (
            <Empty title="No agents match this filter.">
              <Link to="/agents" search={{}} className={buttonClass()}>
                Show all {agents.length}
              </Link>
            </Empty>
          ) : (
            <Groups groups={groups} cards={search.view === 'cards'} />
          )
        }
      </QueryState>
    </Screen>
  );
}

/** `o` and `d` open the output and the changes of the agent in the focused row. */
function useRowKeys(): RowKeys {
  const navigate = useNavigate();
  return useMemo(() => {
    const open = (tab: AgentTab) => (row: HTMLElement) =>
      void navigate({
        to: '/agents/$agent_id/$tab',
        params: { agent_id: row.dataset.row!, tab },
        search: {},
      });
    return { o: open('output'), d: open('changes') };
  }, [navigate]);
}

function useGroups(agents: AgentRecord[] | undefined, search: AgentsSearch): Group[] {
  const { data: teams = [] } = useQuery({ ...teamsQuery, enabled: search.group === 'team' });
  return useMemo(
    () =>
      groupAgents(
        filterAgents(agents ?? [], search),
        search.group,
        new Map(teams.map((team) => [team.id, team.name])),
      ),
    [agents, search, teams],
  );
}

function Actions() {
  const is_root = useSession()?.user.role === 'root';
  const [joining, setJoining] = useState(false);
  return (
    <>
      {is_root && (
        <IconButton label="Show join token" icon={<Network aria-hidden />} onClick={() => setJoining(true)} />
      )}
      <Link to="/agents/new" search={{}} className={buttonClass('primary')}>
        <Plus aria-hidden /> New agent
      </Link>
      {joining && (
        <Suspense>
          <JoinNodeDialog open onClose={() => setJoining(false)} />
        </Suspense>
      )}
    </>
  );
}

function Toolbar({
  agents,
  search,
  onChange,
}: {
  agents: readonly AgentRecord[];
  search: AgentsSearch;
  onChange: (next: AgentsSearch) => void;
}) {
  const numbers = useMemo(() => counts(agents), [agents]);
  const cards = search.view === 'cards';
  return (
    <>
      {/* One scrolling row on phones, so that nothing wraps differently when the font arrives late. */}
      <nav aria-label="Show" className="-m-1 flex w-full gap-1 overflow-x-auto p-1 md:w-auto">
        {filters.map(({ show, label }) => (
          <Link
            key={label}
            to="/agents"
            search={{ ...search, show }}
            replace
            aria-current={search.show === show ? 'true' : undefined}
            className={cx(
              'tap inline-flex shrink-0 items-center gap-1 rounded-full border px-2.5',
              search.show === show ? 'border-accent font-medium' : 'text-muted hover:text-text',
            )}
          >
            {label}
            <span className="min-w-4 text-right tabular-nums">{numbers[show ?? 'all']}</span>
          </Link>
        ))}
      </nav>
      <FilterField
        label="Filter agents"
        placeholder="Filter  /"
        value={search.q ?? ''}
        onText={(text) => onChange({ q: text || undefined })}
        className="min-w-28 flex-1 sm:max-w-56"
      />
      <Select
        aria-label="Group"
        choices={groupings}
        value={search.group ?? ''}
        onChange={(group) => onChange({ group: (group || undefined) as AgentsSearch['group'] })}
        className="w-auto max-w-36"
      />
      <span className="hidden md:inline-flex">
        <IconButton
          label={cards ? 'Show table' : 'Show cards'}
          icon={cards ? <List aria-hidden /> : <LayoutGrid aria-hidden />}
          onClick={() => onChange({ view: cards ? undefined : 'cards' })}
        />
      </span>
    </>
  );
}

function NoAgents() {
  return (
    <Empty
      title="No agents yet. An agent is a program that svc runs and supervises in a folder."
      cli="svc agents create hello --command 'echo hello' --start --follow"
    >
      <StartDemo />
      <Link to="/agents/new" search={{}} className={buttonClass()}>
        New agent
      </Link>
    </Empty>
  );
}

/** `cards`: shows cards also on wide screens. */
function Groups({ groups, cards }: { groups: readonly Group[]; cards: boolean }) {
  const { open } = useWaiting();
  const is_wide = useWide();
  // Not both with one hidden: each takes a fifth of the time that the page needs on a slow phone.
  const View = is_wide && !cards ? AgentRows : AgentCards;
  return groups.map((group) => (
    <section key={group.name} aria-label={group.name || 'Agents'}>
      {group.name && (
        <h2 className="sticky top-0 z-10 border-line border-b bg-surface px-4 py-1 font-medium text-muted text-sm">
          {group.name}
        </h2>
      )}
      <View agents={group.agents} waiting={open} />
    </section>
  ));
}
