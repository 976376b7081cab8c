/** What the command palette offers, in the order in which it shows it. */
import { useInfiniteQuery, useQueries, useQuery } from '@tanstack/react-query';
import { useMatch, useNavigate } from '@tanstack/react-router';
import {
  FileDiff,
  FlaskConical,
  FolderGit2,
  LogOut,
  MessageSquare,
  Play,
  Plus,
  RotateCw,
  ShieldCheck,
  Square,
  SunMoon,
  Terminal,
  TriangleAlert,
  UsersRound,
} from 'lucide-react';
import { type ReactNode, useMemo } from 'react';
import { allRunsQuery } from '../api/all-runs.ts';
import { type AgentRecord, agentsQuery, teamsQuery } from '../api/queries.ts';
import { useRunNames } from '../api/run-names.ts';
import { signOut } from '../api/sign-out.ts';
import { cancelTurnOf, readCurrentPrompt } from '../api/turns.ts';
import type { Found, Place } from '../feature.ts';
import { features } from '../features.ts';
import { hasOpenTurn } from '../screens/agent/turn.ts';
import { useAgentAct } from '../screens/agents/actions.ts';
import { useArchive } from '../screens/agents/archive.tsx';
import { isArchived } from '../screens/agents/order.ts';
import { canStop, stopLabel } from '../ui/agent-state.ts';
import { Kbd } from '../ui/kbd.tsx';
import { AgentStatus, Status } from '../ui/status.tsx';
import { ShortAgo } from '../ui/time.tsx';
import { linkNames } from '../waiting/queue.ts';
import { waitingText } from '../waiting/text.ts';
import { useWaiting } from '../waiting/use-waiting.ts';
import { appearance, setAppearance } from './appearance.ts';
import { jumps } from './key-table.ts';
import type { Findable } from './palette-find.ts';
import { startDemo } from './start-agent.ts';

/** In how many teams features look for records, the newest teams first. */
const TEAMS_SEARCHED_MAX = 20;
const APPROVALS = '/approvals';
/** The page Approvals, and as many requests. */
const WAITING_MAX = 6;

export interface Entry extends Findable {
  key: string;
  icon?: ReactNode;
  /** Follows the label. */
  detail?: string;
  right?: ReactNode;
  act: () => unknown;
}

export interface Group {
  heading: string;
  entries: readonly Entry[];
  /** The most entries shown. */
  max: number;
}

export function useGroups(places: readonly Place[]): Group[] {
  const { data: agents = NO_AGENTS } = useQuery(agentsQuery);
  const waiting = useWaitingEntries(agents);
  const pages = usePages(places);
  return [
    { heading: 'Needs you', entries: waiting, max: WAITING_MAX },
    useThisAgent(agents),
    { heading: 'Agents', entries: useAgents(agents), max: 8 },
    // Approvals is the first entry of all if something waits.
    {
      heading: 'Pages',
      entries: waiting.length > 0 ? pages.filter(({ key }) => key !== APPROVALS) : pages,
      max: 12,
    },
    { heading: 'Actions', entries: useActions(), max: 8 },
    ...useTeamsAndRuns(),
    ...useFound(),
  ];
}

const NO_AGENTS: readonly AgentRecord[] = [];

/** The page Approvals, and the requests that have waited longest. */
function useWaitingEntries(agents: readonly AgentRecord[]): Entry[] {
  const navigate = useNavigate();
  const { open } = useWaiting();
  if (open.length === 0) return [];
  const names = new Map(agents.map(({ id, name }) => [id, name]));
  return [
    {
      key: APPROVALS,
      label: 'Approvals',
      detail: `${open.length} waiting`,
      icon: <ShieldCheck aria-hidden />,
      right: keysOf(APPROVALS),
      act: () => navigate({ to: APPROVALS }),
    },
    ...open.map((item) => ({
      key: `${item.kind} ${item.id}`,
      label: waitingText(item),
      detail: names.get(item.agent_id ?? '') ?? (item.kind === 'run' ? 'a run' : 'a member of a run'),
      also: names.get(item.agent_id ?? '') ?? '',
      icon: <TriangleAlert aria-hidden className="text-needs" />,
      right: <ShortAgo at={item.since} />,
      act: () => navigate({ to: APPROVALS, search: { [linkNames[item.kind]]: item.id } }),
    })),
  ];
}

/** The actions for the agent whose page is open. */
function useThisAgent(agents: readonly AgentRecord[]): Group {
  const navigate = useNavigate();
  const id = useThisId();
  const agent = agents.find((one) => one.id === id);
  const act = useAgentAct({ id: id ?? '', name: agent?.name ?? '' });
  const archive = useArchive(agent);
  if (!agent) return { heading: 'This agent', entries: [], max: 0 };
  const { id: agent_id, protocol, status, name } = agent;
  const open = (tab: string, label: string, icon: ReactNode): Entry => ({
    key: tab,
    label: `Open ${label}`,
    icon,
    act: () => navigate({ to: '/agents/$agent_id/$tab', params: { agent_id, tab }, search: {} }),
  });
  const running = status === 'running';
  const entries: (Entry | false)[] = [
    hasOpenTurn(agent) && {
      key: 'cancel',
      label: 'Cancel turn',
      icon: <Square aria-hidden />,
      act: async () => cancelTurnOf(agent_id, await readCurrentPrompt(agent_id)),
    },
    protocol === 'acp' && open('conversation', 'conversation', <MessageSquare aria-hidden />),
    open('changes', 'changes', <FileDiff aria-hidden />),
    open('output', 'output', <Terminal aria-hidden />),
    {
      key: 'start',
      label: running || agent.session_count > 0 ? 'Restart' : 'Start',
      icon: running ? <RotateCw aria-hidden /> : <Play aria-hidden />,
      act: () => act.mutate(running ? 'restart' : 'start'),
    },
    canStop(agent) && {
      key: 'stop',
      label: stopLabel(agent),
      icon: <Square aria-hidden />,
      act: () => act.mutate('stop'),
    },
    archive && {
      key: 'archive',
      label: archive.label,
      icon: archive.icon,
      act: archive.onSelect,
    },
  ];
  return { heading: name, entries: entries.filter((entry): entry is Entry => entry !== false), max: 6 };
}

/** The most recently active first. Those in the groups above are listed when the user searches. */
function useAgents(agents: readonly AgentRecord[]): Entry[] {
  const navigate = useNavigate();
  const { open } = useWaiting();
  const this_id = useThisId();
  const run_names = useRunNames(agents);
  return useMemo(() => {
    const above = new Set([this_id, ...open.slice(0, WAITING_MAX - 1).map(({ agent_id }) => agent_id)]);
    const active = ({ last_event_at, created_at }: AgentRecord) => last_event_at ?? created_at;
    return [...agents]
      .sort((a, b) => (active(a) < active(b) ? 1 : -1))
      .map((agent) => {
        const run_name = run_names.get(agent.run_id ?? '');
        return {
          key: agent.id,
          label: agent.name,
          ...(run_name !== undefined && { detail: run_name }),
          only_searched: above.has(agent.id) || isArchived(agent),
          also: `${agent.id} ${agent.preset ?? ''} ${agent.status} ${run_name ?? ''}`,
          icon: <AgentStatus agent={agent} labelClassName="sr-only" />,
          right: <ShortAgo at={active(agent)} />,
          act: () => navigate({ to: '/agents/$agent_id', params: { agent_id: agent.id } }),
        };
      });
  }, [agents, open, run_names, this_id, navigate]);
}

/** The id of the agent whose page is open. */
function useThisId(): string | undefined {
  return useMatch({ from: '/app/agents/$agent_id', shouldThrow: false })?.params.agent_id;
}

function usePages(places: readonly Place[]): Entry[] {
  const navigate = useNavigate();
  return places.map(({ to, label, icon: Icon }) => ({
    key: to,
    label,
    icon: <Icon aria-hidden />,
    right: keysOf(to),
    act: () => navigate({ to }),
  }));
}

/** The keys that open a page, if there are any and they are turned on. */
function keysOf(to: string): ReactNode {
  const letter = Object.entries(jumps).find(([, jump]) => jump.to === to)?.[0];
  if (letter === undefined || !appearance().shortcuts) return null;
  return (
    <span aria-hidden className="flex gap-1 pointer-coarse:hidden">
      <Kbd>g</Kbd>
      <Kbd>{letter}</Kbd>
    </span>
  );
}

function useActions(): Entry[] {
  const navigate = useNavigate();
  const go = (to: string) => navigate({ to });
  return [
    { key: 'new-agent', label: 'New agent', icon: <Plus aria-hidden />, act: () => go('/agents/new') },
    { key: 'new-team', label: 'New team', icon: <Plus aria-hidden />, act: () => go('/teams/new') },
    {
      key: 'demo',
      label: 'Start demo agent',
      icon: <FlaskConical aria-hidden />,
      act: () => startDemo().then((id) => go(`/agents/${id}`)),
    },
    {
      key: 'worktrees',
      label: 'Show kept worktrees',
      icon: <FolderGit2 aria-hidden />,
      act: () => go('/worktrees'),
    },
    ...(['system', 'light', 'dark'] as const).map((theme) => ({
      key: theme,
      label: `Theme: ${theme}`,
      also: 'appearance',
      icon: <SunMoon aria-hidden />,
      act: () => setAppearance({ theme }),
    })),
    { key: 'sign-out', label: 'Sign out', also: 'log out', icon: <LogOut aria-hidden />, act: signOut },
  ];
}

function useTeamsAndRuns(): Group[] {
  const navigate = useNavigate();
  const { data: teams = [] } = useQuery(teamsQuery);
  const { data: runs } = useInfiniteQuery(allRunsQuery);
  const team_entries = teams.map(({ id, name }) => ({
    key: id,
    label: name,
    also: id,
    icon: <UsersRound aria-hidden />,
    act: () => navigate({ to: '/teams/$team_id', params: { team_id: id } }),
  }));
  const run_entries = (runs?.pages ?? []).flatMap(({ items }) =>
    items.map(({ id, number, team_id, team_name, status, title }) => ({
      key: id,
      label: `${team_name} · run ${number}`,
      ...(title !== null && { detail: title }),
      also: `${id} ${status} ${title ?? ''}`,
      icon: <Play aria-hidden />,
      right: <Status status={status} />,
      act: () => navigate({ to: '/teams/$team_id/runs/$run_id', params: { team_id, run_id: id } }),
    })),
  );
  return [
    { heading: 'Teams', entries: team_entries, max: 6 },
    { heading: 'Runs', entries: run_entries, max: 6 },
  ];
}

const found_kinds: readonly Found[] = features.flatMap(({ found }) => found ?? []);

/** What features find in teams. */
function useFound(): Group[] {
  const navigate = useNavigate();
  const { data: teams = [] } = useQuery(teamsQuery);
  const searched = teams.slice(0, TEAMS_SEARCHED_MAX);
  const reads = useQueries({
    queries: found_kinds.flatMap(({ query }) => searched.map(({ id }) => query(id))),
  });
  return found_kinds.map(({ heading, icon: Icon, entry }, kind) => {
    const records = reads
      .slice(kind * searched.length, (kind + 1) * searched.length)
      .flatMap(({ data = [] }) => data);
    const entries = records.map(entry).map(({ id, label, status, href }) => ({
      key: id,
      label,
      also: id,
      icon: <Icon aria-hidden />,
      right: <Status status={status} />,
      act: () => navigate({ href }),
    }));
    return { heading, entries, max: 6 };
  });
}
