/** A sub-agent: one line with its name and state, which opens to show all that it said and did. */
import { Bot, ChevronDown, ChevronRight } from 'lucide-react';
import { type ReactNode, useId, useState } from 'react';
import type { Delegation } from '../../../../acp/transcript/items.ts';
import { escapeHidden } from '../../../../core/visible.ts';
import { cx } from '../../../ui/cx.ts';
import { Status } from '../../../ui/status.tsx';
import { listWaiting, type Row, type SubagentRow } from './rows.ts';

export function SubagentBlock({
  row,
  marked,
  view,
}: {
  row: SubagentRow;
  /** The key of the item in the page's URL, if it is in the row. */
  marked: string | null;
  view: (rows: readonly Row[]) => ReactNode;
}) {
  const id = useId();
  const { head } = row;
  const [open, setOpen] = useState(false);
  const inner = marked === head.key ? null : marked;
  const [opened_for, setOpenedFor] = useState<string | null>(null);
  // Not in an effect: the page scrolls to the item as soon as it is rendered.
  if (inner !== opened_for) {
    setOpenedFor(inner);
    if (inner !== null) setOpen(true);
  }
  const Chevron = open ? ChevronDown : ChevronRight;
  // A pending request must be visible even while the row is closed.
  const shown = open ? row.rows : listWaiting(row);
  return (
    <div className="min-w-0">
      <button
        type="button"
        aria-expanded={open}
        aria-controls={shown.length > 0 ? id : undefined}
        onClick={() => setOpen(!open)}
        className="tap flex w-full min-w-0 items-center gap-1.5 rounded text-left hover:bg-surface"
      >
        <Chevron aria-hidden className="size-3.5 shrink-0 text-muted" />
        <Bot aria-hidden className="size-3.5 shrink-0 text-muted" />
        <Title head={head} />
        <span className="inline-flex shrink-0 items-center gap-x-2 text-sm">
          {head.tool_calls > 0 && (
            <span className="text-muted">
              {head.tool_calls} {head.tool_calls === 1 ? 'tool call' : 'tool calls'}
            </span>
          )}
          {!head.unknown_session && <Status status={formatStatus(head)} />}
        </span>
      </button>
      {shown.length > 0 && (
        <div
          id={id}
          className={cx('ml-1.5 flex min-w-0 flex-col gap-2 py-1 pl-3', open && 'border-line border-l-2')}
        >
          {view(shown)}
        </div>
      )}
    </div>
  );
}

function Title({ head }: { head: Delegation }) {
  const { id, name, description, unknown_session } = head;
  if (unknown_session) {
    return (
      <span className="min-w-0 flex-1 truncate text-needs">
        Unknown session <bdi className="font-mono text-sm">{escapeHidden(id)}</bdi>
      </span>
    );
  }
  return (
    <span className="min-w-0 flex-1 truncate">
      <span className="text-muted">Sub-agent </span>
      <bdi className="font-medium">{escapeHidden(name ?? id)}</bdi>
      {description !== null && (
        <span className="text-muted">
          {' '}
          <bdi>{escapeHidden(description)}</bdi>
        </span>
      )}
    </span>
  );
}

/** The same labels as for tools and agents. */
function formatStatus({ status, stop_reason }: Delegation): string {
  if (status === 'running') return 'in_progress';
  if (status === 'requires_action') return 'needs_you';
  if (status === 'unknown') return 'unknown';
  if (stop_reason === null) return 'idle';
  return stop_reason === 'end_turn' ? 'completed' : stop_reason === 'cancelled' ? 'cancelled' : 'failed';
}
