/** A step in the graph: its key, its member and elapsed time, and why it failed, what it asks or for whom it waits. */
import { Handle, type Node, type NodeProps, Position } from '@xyflow/react';
import { table } from '../table.ts';
import { cx } from '../ui/cx.ts';
import { StatusIcon, statusText } from '../ui/status.tsx';
import { Duration } from '../ui/time.tsx';
import type { ShownStep } from './step.ts';

export type StepNode = Node<{
  step: ShownStep;
  chosen: boolean;
  onSelect: ((step_key: string) => void) | undefined;
}>;

const borders = table({
  running: 'border-l-running',
  completed: 'border-l-completed',
  failed: 'border-l-failed',
  input_required: 'border-l-needs',
  needs_you: 'border-l-needs',
});

export function StepBox({ data: { step, chosen, onSelect } }: NodeProps<StepNode>) {
  const { step_key, member_id, status, error_text, waits_for } = step;
  const note = error_text || (waits_for && `Waits for ${waits_for}`) || null;
  const classes = cx(
    'flex h-full w-full flex-col justify-center rounded-md border bg-raised px-2 text-left leading-4',
    status && 'border-l-3',
    status && (borders[status] ?? 'border-l-line-strong'),
    chosen
      ? 'border-y-accent border-r-accent outline-2 outline-accent'
      : 'border-y-control-line border-r-control-line',
    (status === 'pending' || status === 'skipped') &&
      !chosen &&
      'border-y-line-strong/70 border-r-line-strong/70 border-dashed',
    !onSelect && 'border-control-line',
  );
  const content = (
    <>
      <span className="flex w-full min-w-0 items-center gap-1.5">
        {status && <StatusIcon status={status} />}
        <span className="truncate font-semibold" title={step_key}>
          {step_key}
        </span>
        {status && <span className="sr-only">{statusText(status)}</span>}
      </span>
      <span className="flex w-full min-w-0 items-center gap-1.5 text-muted text-xs">
        <span className="truncate">{member_id}</span>
        {step.started_at && (
          <span aria-hidden className="ml-auto shrink-0">
            <Duration from={step.started_at} to={step.ended_at ?? null} />
          </span>
        )}
      </span>
      {note && (
        <span
          aria-hidden
          className={cx('w-full truncate text-xs', status === 'failed' ? 'text-failed' : 'text-needs')}
          title={note}
        >
          {note}
        </span>
      )}
    </>
  );
  return (
    <>
      <Handle type="target" position={Position.Left} isConnectable={false} className="invisible" />
      {onSelect ? (
        <button
          type="button"
          aria-pressed={chosen}
          aria-description={note ?? undefined}
          onClick={() => onSelect(step_key)}
          className={cx('pointer-events-auto', classes)}
        >
          {content}
        </button>
      ) : (
        <div className={classes}>{content}</div>
      )}
      <Handle type="source" position={Position.Right} isConnectable={false} className="invisible" />
    </>
  );
}
