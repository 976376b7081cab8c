/** One event: a line that opens to its complete JSON. */
import { ArrowLeft, ArrowRight, ChevronRight } from 'lucide-react';
import { memo, type Ref, useMemo } from 'react';
import { truncateText } from '../../../../acp/json.ts';
import { Copy } from '../../../ui/copy.tsx';
import { cx } from '../../../ui/cx.ts';
import { Clock } from '../../../ui/time.tsx';
import { type EventGroup, joined } from './groups.ts';
import { formatJson, summarizeEvent } from './summary.ts';

export interface EventRowProps {
  group: EventGroup;
  index: number;
  /** Whether it shows its type: not if all rows have the same. */
  shows_type: boolean;
  is_open: boolean;
  is_marked: boolean;
  onToggle: (seq: number) => void;
  onMark: (seq: number) => void;
  ref: Ref<HTMLLIElement>;
}

export const EventRow = memo(function EventRow(props: EventRowProps) {
  const { group, index, shows_type, is_open, is_marked, onToggle, onMark, ref } = props;
  const { seq, ts, type } = group.first;
  const { what, direction, text } = summarizeEvent(joined(group), group.request_method);
  const count = group.events.length;
  return (
    <li
      ref={ref}
      data-index={index}
      data-seq={seq}
      data-marked={is_marked || undefined}
      className={cx('border-line border-b', is_marked && 'bg-marked')}
    >
      {/* The line is drawn within its 28 px. */}
      <div className="-mb-px flex items-baseline md:items-center">
        <a
          href={`#e${seq}`}
          aria-label={`Event ${seq}`}
          onClick={(click) => {
            if (click.metaKey || click.ctrlKey) return;
            click.preventDefault();
            onMark(seq);
          }}
          className="tap inline-flex min-w-14 shrink-0 items-center justify-end pl-2 text-muted hover:text-text hover:underline"
        >
          {seq}
        </a>
        <button
          type="button"
          aria-expanded={is_open}
          onClick={() => onToggle(seq)}
          className="tap flex min-w-0 flex-1 flex-wrap items-baseline gap-x-3 px-2 text-left max-md:pb-2 md:flex-nowrap md:items-center"
        >
          <ChevronRight
            aria-hidden
            className={cx(
              'size-3.5 shrink-0 self-center text-muted transition-transform',
              is_open && 'rotate-90',
            )}
          />
          <span className="shrink-0 text-muted">
            <Clock at={ts * 1000} />
          </span>
          {shows_type && (
            <span className={cx('w-20 shrink-0', type === 'error' ? 'text-failed' : 'text-muted')}>
              {type}
            </span>
          )}
          <span className="min-w-0 shrink-0 truncate font-medium md:w-60">
            {direction && <Direction direction={direction} />}
            <span className={cx(what === 'stderr' && 'text-failed')}>{what}</span>
            {count > 1 && <span className="text-muted"> ×{count}</span>}
          </span>
          <span className="min-w-0 flex-1 truncate font-mono text-sm max-md:w-full max-md:flex-none">
            {text}
          </span>
        </button>
      </div>
      {is_open && <EventDetails group={group} />}
    </li>
  );
});

function Direction({ direction }: { direction: 'to_agent' | 'from_agent' }) {
  const Icon = direction === 'to_agent' ? ArrowRight : ArrowLeft;
  return (
    <>
      <Icon aria-hidden className="mr-1 inline size-3.5 align-[-2px] text-muted" />
      <span className="sr-only">{direction === 'to_agent' ? 'to the agent' : 'from the agent'}</span>
    </>
  );
}

/** Longer JSON is shown in part, because browsers take seconds to lay it out. */
const SHOWN_CHARS = 256 * 1024;

/** The complete JSON: one line for each event if there are several. */
function EventDetails({ group: { events } }: { group: EventGroup }) {
  const json = useMemo(() => events.map(formatJson).join('\n'), [events]);
  const shown = truncateText(json, SHOWN_CHARS);
  return (
    <div className="flex flex-col items-start gap-2 px-3 pb-2">
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll it
        tabIndex={0}
        className="max-h-96 w-full overflow-auto whitespace-pre-wrap break-all rounded bg-surface p-2 font-mono text-sm"
      >
        {shown}
      </pre>
      {shown.length < json.length && (
        <p className="text-muted">
          … shortened: {(json.length - shown.length).toLocaleString('en')} more characters. Copy the JSON to
          get all of it.
        </p>
      )}
      <Copy text={json} label="Copy JSON" />
    </div>
  );
}
