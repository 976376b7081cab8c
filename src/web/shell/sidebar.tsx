/**
 * The sidebar of wide screens: the pages in groups, the agents that run, and the account. It can be collapsed to its icons.
 */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { PanelLeftClose, PanelLeftOpen, Search } from 'lucide-react';
import { memo, type ReactNode, useEffect, useMemo, useRef } from 'react';
import { type AgentRecord, agentsQuery } from '../api/queries.ts';
import { useUnread } from '../api/seen.ts';
import type { Session } from '../api/session.ts';
import type { Place } from '../feature.ts';
import { compareAttention, type Waits } from '../screens/agents/order.ts';
import { agentState } from '../ui/agent-state.ts';
import { cx } from '../ui/cx.ts';
import { Kbd } from '../ui/kbd.tsx';
import { isMac, isTyping, MOD } from '../ui/keys.ts';
import { Mark, Wordmark } from '../ui/mark.tsx';
import { AgentStatus } from '../ui/status.tsx';
import { ShortAgo } from '../ui/time.tsx';
import { Truncated } from '../ui/truncated.tsx';
import { UnreadDot } from '../ui/unread.tsx';
import { firstByAgent } from '../waiting/queue.ts';
import { useWaiting } from '../waiting/use-waiting.ts';
import { Wait } from '../waiting/wait.tsx';
import { appearance, setAppearance, useAppearance } from './appearance.ts';
import { Badge } from './badge.tsx';
import { NavLink } from './nav-link.tsx';

const groups = [
  { name: 'Work', title: null },
  { name: 'Teams', title: 'Teams' },
  { name: 'Admin', title: 'Admin' },
] as const;

/** Agents that the sidebar lists. */
const AGENTS_MAX = 8;
const NO_AGENTS: AgentRecord[] = [];

export const Sidebar = memo(function Sidebar({
  user,
  places,
  waiting,
  onPalette,
}: {
  user: Session['user'];
  places: readonly Place[];
  /** Items that wait for the user. */
  waiting: number;
  onPalette: () => void;
}) {
  const collapsed = useAppearance().sidebar === 'icons';
  const link = (place: Place) => (
    <NavLink
      key={place.to}
      place={place}
      count={place.to === '/approvals' ? waiting : 0}
      collapsed={collapsed}
    />
  );
  return (
    <nav
      aria-label="Main"
      className={cx(
        'scroll-y hidden shrink-0 flex-col gap-0.5 border-line border-r bg-sidebar p-2 md:flex',
        collapsed ? 'w-13' : 'w-52',
      )}
    >
      <div
        className={cx('flex items-center justify-between pt-1 pb-2', collapsed ? 'flex-col gap-1' : 'px-2')}
      >
        {collapsed ? <Mark waiting={waiting > 0} /> : <Wordmark waiting={waiting > 0} />}
        <button
          type="button"
          onClick={onPalette}
          className="tap flex items-center gap-1 rounded-md px-1.5 text-muted hover:bg-surface hover:text-text"
        >
          <Search aria-hidden className="size-3.5" /> {!collapsed && <Kbd>{MOD} K</Kbd>}
          <span className="sr-only">Search and commands</span>
        </button>
      </div>
      {groups.map(({ name, title }) => {
        const own = places.filter(({ group }) => group === name);
        if (own.length === 0) return null;
        return (
          <div key={name} className="flex flex-col gap-0.5 pb-1">
            {title !== null && !collapsed && <span className="px-2 pt-1.5 text-muted text-xs">{title}</span>}
            {own.map(link)}
          </div>
        );
      })}
      <ActiveAgents collapsed={collapsed} />
      <Footer user={user} collapsed={collapsed}>
        {places.filter(({ group }) => group === undefined).map(link)}
      </Footer>
    </nav>
  );
});

/** Settings, the account, the live badge and the button that collapses the sidebar. */
function Footer({
  user,
  collapsed,
  children,
}: {
  user: Session['user'];
  collapsed: boolean;
  /** The links. */
  children: ReactNode;
}) {
  return (
    <div className={cx('mt-auto flex flex-col gap-1 pt-3 text-muted text-sm', !collapsed && 'px-2')}>
      <div className={cx('flex flex-col gap-0.5', !collapsed && '-mx-2')}>{children}</div>
      <div className="flex items-center justify-between gap-1">
        {!collapsed && (
          <span className="min-w-0 truncate" title={`${user.username} (${user.role})`}>
            {user.username}
            {user.role === 'root' && ' · root'}
          </span>
        )}
        <button
          type="button"
          onClick={() => setAppearance({ sidebar: collapsed ? 'full' : 'icons' })}
          aria-label={collapsed ? 'Expand sidebar' : 'Collapse sidebar'}
          title={collapsed ? 'Expand sidebar' : 'Collapse sidebar'}
          className="tap inline-flex items-center justify-center rounded-md px-1.5 hover:bg-surface hover:text-text"
        >
          {collapsed ? (
            <PanelLeftOpen aria-hidden className="size-4" />
          ) : (
            <PanelLeftClose aria-hidden className="size-4" />
          )}
        </button>
      </div>
      {!collapsed && <Badge />}
    </div>
  );
}

const is_listed = new Set(['needs_you', 'your_turn', 'working', 'quiet', 'starting', 'waiting']);

const listActive = (waits: Waits) => (agents: AgentRecord[]) =>
  agents
    .filter((agent) => is_listed.has(agentState(agent)))
    .sort(compareAttention(waits))
    .slice(0, AGENTS_MAX);

/** The agents that run, those that need the user first. Alt and a digit open one. */
function ActiveAgents({ collapsed }: { collapsed: boolean }) {
  const { open } = useWaiting();
  const waiting = useMemo(() => firstByAgent(open), [open]);
  const select = useMemo(() => listActive(waiting), [waiting]);
  const { data: agents = NO_AGENTS } = useQuery({ ...agentsQuery, select });
  const unread = useUnread(agents);
  useDigits(agents);
  if (agents.length === 0) return null;
  return (
    <section aria-label="Active agents" className="flex flex-col gap-0.5 border-line border-t pt-2">
      {!collapsed && <span className="px-2 text-muted text-xs">Active agents</span>}
      {agents.map((agent, at) => (
        <AgentLink
          key={agent.id}
          agent={agent}
          digit={at + 1}
          collapsed={collapsed}
          unread={unread.has(agent.id)}
          waiting_since={waiting.get(agent.id)?.since}
        />
      ))}
    </section>
  );
}

const AgentLink = memo(function AgentLink({
  agent,
  digit,
  collapsed,
  unread,
  waiting_since,
}: {
  agent: AgentRecord;
  digit: number;
  collapsed: boolean;
  unread: boolean;
  /** Since when it has waited for the user. */
  waiting_since: string | undefined;
}) {
  return (
    <Link
      to="/agents/$agent_id"
      params={{ agent_id: agent.id }}
      title={`${agent.name} (Alt ${digit})`}
      className="tap relative flex items-center gap-2 rounded-md px-2 text-muted hover:bg-surface hover:text-text [&.active]:bg-selected [&.active]:text-text"
    >
      <AgentStatus agent={agent} labelClassName="sr-only" />
      {unread && (
        <span className={cx('flex', collapsed && 'absolute top-1 right-1')}>
          <UnreadDot />
        </span>
      )}
      <Truncated className={collapsed ? 'sr-only' : 'min-w-0 flex-1'}>{agent.name}</Truncated>
      {!collapsed && <Since agent={agent} waiting_since={waiting_since} />}
    </Link>
  );
});

/** How long it has waited for the user, else the time since its last activity. */
function Since({ agent, waiting_since }: { agent: AgentRecord; waiting_since: string | undefined }) {
  if (waiting_since !== undefined) return <Wait since={waiting_since} className="text-sm" />;
  return agent.last_event_at && <ShortAgo at={agent.last_event_at} className="text-sm" />;
}

function useDigits(agents: readonly AgentRecord[]): void {
  const navigate = useNavigate();
  const current = useRef(agents);
  current.current = agents;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || !appearance().shortcuts) return;
      if (!event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      // On a Mac, Option and a digit type a character, such as `[`.
      if (isMac && isTyping(event)) return;
      // With Alt, some keyboards produce other characters.
      const digit = /^Digit([1-8])$/.exec(event.code)?.[1];
      const agent = current.current[Number(digit) - 1];
      if (!agent) return;
      event.preventDefault();
      void navigate({ to: '/agents/$agent_id', params: { agent_id: agent.id } });
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, [navigate]);
}
