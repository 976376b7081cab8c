/** A status as icon, text and colour, because none of them alone is accessible. */
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
  colour: string;
}

const statusStyles: Record<string, StatusStyle> = {
  created: { icon: Circle, colour: 'text-muted' },
  pending: { icon: Circle, colour: 'text-muted' },
  open: { icon: Circle, colour: 'text-muted' },
  ready: { icon: CircleDashed, colour: 'text-muted' },
  running: { icon: CircleDot, colour: 'text-running' },
  in_progress: { icon: CircleDot, colour: 'text-running' },
  in_review: { icon: Clock, colour: 'text-needs' },
  needs_you: { icon: TriangleAlert, colour: 'text-needs' },
  input_required: { icon: TriangleAlert, colour: 'text-needs' },
  completed: { icon: Check, colour: 'text-completed' },
  failed: { icon: X, colour: 'text-failed' },
  cancelled: { icon: Ban, colour: 'text-muted' },
  skipped: { icon: Minus, colour: 'text-muted' },
};

const texts: Record<string, string> = {
  needs_you: 'needs you',
  input_required: 'input required',
  in_progress: 'in progress',
  in_review: 'in review',
};

export function Status({ status, className }: { status: string; className?: string }) {
  const { icon: Icon, colour } = statusStyles[status] ?? { icon: Circle, colour: 'text-muted' };
  return (
    <span className={cx('inline-flex items-center gap-1 whitespace-nowrap', colour, className)}>
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
