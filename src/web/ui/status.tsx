/** A status as icon, text and color, because none of them alone is accessible. */
import {
  Ban,
  Check,
  Circle,
  CircleDashed,
  CircleDot,
  Clock,
  type LucideIcon,
  Minus,
  TriangleAlert,
  X,
} from 'lucide-react';
import type { AgentRecord } from '../api/queries.ts';
import { cx } from './cx.ts';

interface StatusStyle {
  icon: LucideIcon;
  color: string;
}

const statusStyles: Record<string, StatusStyle> = {
  created: { icon: Circle, color: 'text-muted' },
  pending: { icon: Circle, color: 'text-muted' },
  open: { icon: Circle, color: 'text-muted' },
  ready: { icon: CircleDashed, color: 'text-muted' },
  running: { icon: CircleDot, color: 'text-running' },
  in_progress: { icon: CircleDot, color: 'text-running' },
  in_review: { icon: Clock, color: 'text-needs' },
  needs_you: { icon: TriangleAlert, color: 'text-needs' },
  input_required: { icon: TriangleAlert, color: 'text-needs' },
  completed: { icon: Check, color: 'text-completed' },
  failed: { icon: X, color: 'text-failed' },
  cancelled: { icon: Ban, color: 'text-muted' },
  skipped: { icon: Minus, color: 'text-muted' },
};

const texts: Record<string, string> = {
  needs_you: 'needs you',
  input_required: 'input required',
  in_progress: 'in progress',
  in_review: 'in review',
};

export function Status({ status, className }: { status: string; className?: string }) {
  const { icon: Icon, color } = statusStyles[status] ?? { icon: Circle, color: 'text-muted' };
  return (
    <span className={cx('inline-flex items-center gap-1 whitespace-nowrap', color, className)}>
      <Icon aria-hidden className="size-3.5 shrink-0" />
      {texts[status] ?? status}
    </span>
  );
}

/** An agent's status, and whether it needs the user. */
export function AgentStatus({ agent, className }: { agent: AgentRecord; className?: string }) {
  return (
    <span className={cx('inline-flex flex-wrap items-center gap-x-2', className)}>
      {needsAttention(agent) && <Status status="needs_you" />}
      <Status status={agent.status} />
      {agent.activity === 'quiet' && <span className="text-muted">quiet</span>}
    </span>
  );
}

export function needsAttention(agent: AgentRecord): boolean {
  return agent.pending_reviews + agent.pending_elicitations > 0;
}
