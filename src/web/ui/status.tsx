/** A status as icon, text and color, because none of them alone is accessible. */
import {
  Ban,
  Check,
  Circle,
  CircleDashed,
  CircleDot,
  CircleStop,
  Clock,
  Diamond,
  LoaderCircle,
  type LucideIcon,
  Minus,
  TriangleAlert,
  X,
} from 'lucide-react';
import type { AgentRecord } from '../api/queries.ts';
import { table } from '../table.ts';
import { type AgentState, agentState, apiStatus } from './agent-state.ts';
import { cx } from './cx.ts';
import { useNow } from './time.tsx';

interface StatusStyle {
  icon: LucideIcon;
  color: string;
}

const statusStyles = table<StatusStyle>({
  created: { icon: Circle, color: 'text-muted' },
  pending: { icon: Circle, color: 'text-muted' },
  open: { icon: Circle, color: 'text-muted' },
  ready: { icon: CircleDashed, color: 'text-muted' },
  running: { icon: CircleDot, color: 'text-running' },
  in_progress: { icon: CircleDot, color: 'text-running' },
  in_review: { icon: Clock, color: 'text-warning' },
  needs_you: { icon: TriangleAlert, color: 'text-needs' },
  input_required: { icon: TriangleAlert, color: 'text-needs' },
  completed: { icon: Check, color: 'text-completed' },
  failed: { icon: X, color: 'text-failed' },
  cancelled: { icon: Ban, color: 'text-muted' },
  skipped: { icon: Minus, color: 'text-muted' },
});

const texts = table({
  needs_you: 'needs you',
  input_required: 'input required',
  in_progress: 'in progress',
  in_review: 'in review',
});

export function statusText(status: string): string {
  return texts[status] ?? status;
}

/** `in progress` as `In progress`: labels begin with a capital letter, words within a line do not. */
export function sentenceCase(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Only the icon, for places that have the words in their label. It turns while something runs. */
export function StatusIcon({ status, className }: { status: string; className?: string }) {
  const { icon, color } = statusStyles[status] ?? { icon: Circle, color: 'text-muted' };
  const Icon = status === 'running' ? LoaderCircle : icon;
  return (
    <Icon
      aria-hidden
      className={cx('size-3.5 shrink-0', color, status === 'running' && 'animate-working', className)}
    />
  );
}

export function Status({ status, className }: { status: string; className?: string }) {
  const { icon: Icon, color } = statusStyles[status] ?? { icon: Circle, color: 'text-muted' };
  return (
    <span className={cx('inline-flex items-center gap-1 whitespace-nowrap', color, className)}>
      <Icon aria-hidden className="size-3.5 shrink-0" />
      {sentenceCase(statusText(status))}
    </span>
  );
}

const agentStyles: Record<AgentState, StatusStyle & { label: string }> = {
  needs_you: { icon: TriangleAlert, color: 'text-needs', label: 'Needs you' },
  failed: { icon: X, color: 'text-failed', label: 'Failed' },
  your_turn: { icon: Diamond, color: 'text-accent', label: 'Your turn' },
  working: { icon: LoaderCircle, color: 'text-running', label: 'Working' },
  quiet: { icon: CircleDashed, color: 'text-muted', label: 'Quiet' },
  starting: { icon: CircleDashed, color: 'text-muted', label: 'Starting' },
  waiting: { icon: Clock, color: 'text-muted', label: 'Waiting' },
  created: { icon: Circle, color: 'text-muted', label: 'Created' },
  completed: { icon: Check, color: 'text-completed', label: 'Done' },
  run_ended: { icon: CircleStop, color: 'text-muted', label: 'Run ended' },
  cancelled: { icon: Ban, color: 'text-muted', label: 'Cancelled' },
};

/** Why the agent has its status in the API, if its label does not say so. */
const notes: Partial<Record<AgentState, string>> = {
  waiting: 'waits for its next step',
  run_ended: 'stopped by the end of its run',
};

/** An agent's state; its status in the API is in the tooltip, and screen readers read it. */
export function AgentStatus({
  agent,
  className,
  labelClassName,
}: {
  agent: AgentRecord;
  className?: string;
  labelClassName?: string;
}) {
  const state = agentState(agent);
  const { color, label } = agentStyles[state];
  const note = notes[state];
  const api = note === undefined ? apiStatus(agent) : `${apiStatus(agent)}, ${note}`;
  return (
    <span title={api} className={cx('inline-flex items-center gap-1 whitespace-nowrap', color, className)}>
      <AgentIcon agent={agent} />
      <span className={labelClassName}>
        {state === 'run_ended' ? `Run ${agent.stopped_by_run}` : label}
        {state === 'quiet' && agent.last_event_at !== null && <Minutes since={agent.last_event_at} />}
        <span className="sr-only"> ({api})</span>
      </span>
    </span>
  );
}

/** Only the icon of an agent's state, for places that have the words elsewhere. */
export function AgentIcon({ agent }: { agent: AgentRecord }) {
  const state = agentState(agent);
  const { icon: Icon, color } = agentStyles[state];
  return (
    <Icon aria-hidden className={cx('size-3.5 shrink-0', color, state === 'working' && 'animate-working')} />
  );
}

function Minutes({ since }: { since: string }) {
  return ` ${Math.floor((useNow() - Date.parse(since)) / 60_000)}m`;
}
