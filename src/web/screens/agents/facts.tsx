/** Facts about an agent, for its row and its page. */
import { Link } from '@tanstack/react-router';
import { Ellipsis, GitBranch, Play, RotateCw, Square } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';
import { escapeHidden } from '../../../core/visible.ts';
import type { AgentRecord } from '../../api/queries.ts';
import { buttonClass, IconButton } from '../../ui/button.tsx';
import { useReplacedGuard } from '../../ui/replaced.ts';
import { Clock, ShortAgo, Until } from '../../ui/time.tsx';
import { Truncated } from '../../ui/truncated.tsx';
import { costText, usedPercent } from '../../ui/usage.ts';
import { linkLabels, linkNames, type WaitingItem } from '../../waiting/queue.ts';
import { waitingText } from '../../waiting/text.ts';
import { Wait } from '../../waiting/wait.tsx';
import { useAgentAct } from './actions.ts';
import { describeEnd, folderOf, lastPart, shortBranch } from './order.ts';

/** Where it works: its node, unless that is the main node, and its repository or folder. */
export function Place({ agent }: { agent: AgentRecord }) {
  const is_remote = agent.node_id !== 'main';
  return (
    <span>
      {is_remote && <NodeName agent={agent} />}
      {is_remote && folderOf(agent) !== null && ' · '}
      <Folder agent={agent} />
    </span>
  );
}

/** Its repository or folder. */
export function Folder({ agent }: { agent: AgentRecord }) {
  const folder = folderOf(agent);
  if (folder === null) return null;
  return <span title={escapeHidden(folder)}>{escapeHidden(lastPart(folder))}</span>;
}

export function NodeName({ agent }: { agent: AgentRecord }) {
  return (
    <span className={agent.stale_since ? 'text-warning' : undefined}>
      {`node:${agent.node_id}`}
      {agent.stale_since && (
        <>
          {' unreachable since '}
          <Clock at={agent.stale_since} />
        </>
      )}
    </span>
  );
}

export function Branch({ agent }: { agent: AgentRecord }) {
  if (agent.worktree_branch === null) return null;
  return (
    <span className="inline-flex min-w-0 max-w-full items-center gap-1" title={agent.worktree_branch}>
      <GitBranch aria-label="branch" className="size-3.5 shrink-0" />
      <span className="truncate">{shortBranch(agent.worktree_branch)}</span>
    </span>
  );
}

/** For an agent of a run. */
export function RunLink({ agent: { team_id, run_id }, name }: { agent: AgentRecord; name: string }) {
  return (
    <Link
      to="/teams/$team_id/runs/$run_id"
      params={{ team_id: team_id!, run_id: run_id! }}
      tabIndex={-1}
      title={name}
      className="relative z-1 min-w-0 truncate hover:underline"
    >
      {name}
    </Link>
  );
}

/** How long it has waited for the user, or the time since its last activity. */
export function LastActivity({ agent, item }: { agent: AgentRecord; item: WaitingItem | undefined }) {
  // Above the link that covers the row, so that its tooltip appears.
  if (item) return <Wait since={item.since} className="relative z-1" />;
  const at = agent.last_event_at ?? agent.ended_at ?? agent.created_at;
  return <ShortAgo at={at} className="relative z-1 text-muted" />;
}

/** One line about the agent: what it asks or does, or how it ended. */
export function StatusLine({ agent, item }: { agent: AgentRecord; item: WaitingItem | undefined }) {
  const { summary } = agent;
  if (item) {
    return (
      <span dir="ltr" className="flex min-w-0 text-needs">
        <span className="whitespace-pre">asks: </span>
        <Truncated>{waitingText(item)}</Truncated>
      </span>
    );
  }
  if (agent.pending) return <>{agent.pending} pending: the node is unreachable</>;
  if (agent.activity === 'starting') return <>Starting…</>;
  if (agent.status === 'failed') {
    const end = describeEnd(agent);
    return (
      <>
        <span className="text-failed">{end}</span>
        <RestartsIn agent={agent} />
        {summary.now && <span className="font-mono">{`${end && ' · '}${escapeHidden(summary.now)}`}</span>}
      </>
    );
  }
  if (agent.activity === 'idle') return <>Finished its turn</>;
  if (summary.now) return <>{escapeHidden(summary.now)}</>;
  return agent.protocol === 'acp' ? null : (
    <span className="font-mono">{escapeHidden(agent.command.split('\n', 1)[0]!)}</span>
  );
}

/** Follows how the agent ended. Renders nothing if it will not be restarted. */
export function RestartsIn({ agent: { restart_at } }: { agent: Pick<AgentRecord, 'restart_at'> }) {
  if (!restart_at) return null;
  return (
    <>
      {' · restarts '}
      <Until at={restart_at} />
    </>
  );
}

const SEGMENTS_MAX = 8;

/** How much of its plan is done: as a bar and in numbers. */
export function Progress({ agent }: { agent: AgentRecord }) {
  const { plan } = agent.summary;
  if (plan === null) return null;
  const segments = Math.min(plan.total, SEGMENTS_MAX);
  const done = Math.floor((plan.done / plan.total) * segments);
  return (
    <span
      className="inline-flex items-center gap-1.5 tabular-nums"
      title={`${plan.done} of ${plan.total} plan entries completed`}
    >
      <span aria-hidden className="inline-flex gap-px">
        {Array.from({ length: segments }, (_, at) => (
          <span
            // biome-ignore lint/suspicious/noArrayIndexKey: segments have no identity
            key={at}
            className={at < done ? 'h-2.5 w-1 rounded-xs bg-muted' : 'h-2.5 w-1 rounded-xs bg-line'}
          />
        ))}
      </span>
      {plan.done}/{plan.total}
    </span>
  );
}

/** Added and removed lines. */
export function DiffSize({ agent }: { agent: AgentRecord }) {
  const { diff } = agent.summary;
  if (diff === null || diff.files === 0) return null;
  return (
    <Link
      to="/agents/$agent_id/$tab"
      params={{ agent_id: agent.id, tab: 'changes' }}
      tabIndex={-1}
      className="relative z-1 whitespace-nowrap tabular-nums hover:underline"
      title={`${diff.files} changed ${diff.files === 1 ? 'file' : 'files'}`}
    >
      <ChangedLines {...diff} />
    </Link>
  );
}

export function ChangedLines({ added, removed }: { added: number; removed: number }) {
  return (
    <>
      <span className="text-completed">+{added}</span> <span className="text-failed">−{removed}</span>
    </>
  );
}

/** How full the context of its model is. */
export function Context({ agent }: { agent: AgentRecord }) {
  const { usage } = agent.summary;
  if (usage === null || usage.size <= 0) return null;
  const { used, size } = usage;
  return (
    <span
      className="tabular-nums"
      title={`${used.toLocaleString()} of ${size.toLocaleString()} tokens of context`}
    >
      {usedPercent(usage)}%
    </span>
  );
}

/** What it has cost so far; nothing while it is free. */
export function Cost({ agent }: { agent: AgentRecord }) {
  return <span className="tabular-nums">{costText(agent.summary.usage?.cost)}</span>;
}

/** The answer that it waits for, else to stop or to start it. They and the menu appear when the pointer or the focus is in the row. */
export function RowActions({ agent, item }: { agent: AgentRecord; item: WaitingItem | undefined }) {
  return (
    <div className="flex items-center gap-1">
      {item ? (
        <Link to="/approvals" search={{ [linkNames[item.kind]]: item.id }} className={buttonClass('primary')}>
          {linkLabels[item.kind]}
          {/* Screen readers announce the agent with the button. */}
          <span className="sr-only"> {agent.name}</span>
        </Link>
      ) : (
        <span className={shownInRow}>
          <StartOrStop agent={agent} />
        </span>
      )}
      <span className="flex max-md:hidden">
        <MoreActions agent={agent} />
      </span>
    </div>
  );
}

const shownInRow =
  'flex opacity-0 transition-opacity group-focus-within:opacity-100 group-hover:opacity-100 has-aria-expanded:opacity-100 max-md:hidden pointer-coarse:opacity-100';

const ActionsMenu = lazy(() => import('./actions-menu.tsx'));

/** Only a button until it is used, because there are many rows, and the first paint waits for the code of the list. */
function MoreActions({ agent }: { agent: AgentRecord }) {
  const [used, setUsed] = useState(false);
  const label = `More actions for ${agent.name}`;
  const icon = <Ellipsis aria-hidden />;
  const first = <IconButton label={label} icon={icon} aria-haspopup="menu" onClick={() => setUsed(true)} />;
  if (!used) return first;
  return (
    <Suspense fallback={first}>
      <ActionsMenu agent={agent} trigger={<IconButton label={label} icon={icon} />} />
    </Suspense>
  );
}

function StartOrStop({ agent }: { agent: AgentRecord }) {
  const act = useAgentAct(agent);
  // The restart of a failed agent is cancelled in the menu: here, its *Restart* stays.
  const stops = agent.status === 'running';
  const guard = useReplacedGuard(stops ? 'stop' : 'start', act.isPending);
  if (stops) {
    return (
      <IconButton
        label={`Stop ${agent.name}`}
        icon={<Square aria-hidden />}
        busy={act.isPending}
        onClick={guard(() => act.mutate('stop'))}
      />
    );
  }
  const is_first = agent.session_count === 0;
  return (
    <IconButton
      label={`${is_first ? 'Start' : 'Restart'} ${agent.name}`}
      icon={is_first ? <Play aria-hidden /> : <RotateCw aria-hidden />}
      busy={act.isPending}
      onClick={guard(() => act.mutate('start'))}
    />
  );
}
