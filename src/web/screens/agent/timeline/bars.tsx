/** The bars of the timeline, one lane per kind, on a common time axis. */
import { Link } from '@tanstack/react-router';
import { cx } from '../../../ui/cx.ts';
import { spanText } from '../../../ui/time.tsx';
import { type Entry, type Lane, lanes } from './entries.ts';
import { assignRows, type Scale } from './scale.ts';

const ROW_PX = 28;
const MIN_BAR_PX = 6;
/** Wider bars have a label. */
const LABEL_PX = 48;

const looks: Record<Lane, { title: string; className: string }> = {
  sessions: { title: 'Sessions', className: 'bg-surface border-line-strong text-text' },
  turns: { title: 'Turns', className: 'bg-running/20 border-running text-text' },
  tools: { title: 'Tools', className: 'bg-completed/20 border-completed text-text' },
  waits: { title: 'Waiting for you', className: 'bg-needs/20 border-needs border-dashed text-text' },
  warnings: { title: 'Warnings', className: 'bg-failed/20 border-failed text-text' },
};

export interface BarsProps {
  agent_id: string;
  entries: readonly Entry[];
  scale: Scale;
  /** Called with the key of the entry that has the pointer or the focus. */
  onShow: (key: string) => void;
}

export function Bars({ agent_id, entries, scale, onShow }: BarsProps) {
  return (
    <section
      aria-label="Timeline"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll it
      tabIndex={0}
      className="overflow-x-auto pb-2"
    >
      <div className="relative" style={{ width: scale.width }}>
        <Axis scale={scale} />
        {lanes.map((lane) => {
          const mine = entries.filter((entry) => entry.lane === lane);
          return (
            mine.length > 0 && (
              <LaneRow
                key={lane}
                lane={lane}
                entries={mine}
                agent_id={agent_id}
                scale={scale}
                onShow={onShow}
              />
            )
          );
        })}
      </div>
    </section>
  );
}

/** The start time of each segment, and the length of each folded one. */
function Axis({ scale }: { scale: Scale }) {
  return (
    <div className="h-6 text-muted text-xs">
      {scale.segments.map(({ from, to, folded, x, width }) => (
        <span
          key={from}
          className={cx(
            'absolute top-0 overflow-hidden whitespace-nowrap',
            folded ? 'bottom-0 border-line border-x border-dashed bg-surface/60 text-center' : 'h-6',
          )}
          style={{ left: x, width }}
          title={folded ? `${spanText((to - from) * 1000)} without events, not shown to scale` : undefined}
        >
          {folded
            ? spanText((to - from) * 1000)
            : width > LABEL_PX && new Date(from * 1000).toLocaleTimeString()}
        </span>
      ))}
    </div>
  );
}

function LaneRow({ lane, entries, agent_id, scale, onShow }: BarsProps & { lane: Lane }) {
  const bars = entries.map((entry) => {
    const x = scale.at(entry.from);
    return { entry, x, width: Math.max(MIN_BAR_PX, scale.at(entry.to) - x) };
  });
  const rows = assignRows(bars);
  const { title, className } = looks[lane];
  return (
    <div className="relative">
      <h3 className="sticky left-0 w-fit pt-2 text-muted text-sm">{title}</h3>
      <ul className="relative" style={{ height: (Math.max(...rows) + 1) * ROW_PX }}>
        {bars.map(({ entry, x, width }, at) => (
          <li
            key={entry.key}
            className="absolute"
            style={{ left: x, width, top: rows[at]! * ROW_PX, height: ROW_PX - 3 }}
          >
            <Link
              to="/agents/$agent_id/$tab"
              params={{ agent_id, tab: 'events' }}
              search={{}}
              hash={`e${entry.seq}`}
              preload={false}
              aria-label={entryLabel(entry)}
              title={entryLabel(entry)}
              onMouseEnter={() => onShow(entry.key)}
              onFocus={() => onShow(entry.key)}
              className={cx(
                'block size-full overflow-hidden whitespace-nowrap rounded border px-1 text-sm leading-[23px]',
                entry.failed ? looks.warnings.className : className,
                entry.open && 'border-r-0 rounded-r-none',
              )}
            >
              {width > LABEL_PX && (
                <>
                  {entry.failed && '✕ '}
                  {entry.label}
                </>
              )}
            </Link>
          </li>
        ))}
      </ul>
    </div>
  );
}

function entryLabel({ label, from, to, open, failed }: Entry): string {
  const took = to > from ? `, ${spanText((to - from) * 1000)}` : '';
  return `${label}${failed ? ', failed' : ''}${took}${open ? ', not ended yet' : ''}`;
}
