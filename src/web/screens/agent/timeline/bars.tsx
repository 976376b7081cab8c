/** The bars of the timeline: a lane per kind with its name at the left, on a common time axis. */
import { Link } from '@tanstack/react-router';
import { memo, type PointerEvent, useMemo, useState } from 'react';
import { cx } from '../../../ui/cx.ts';
import { type Lane, lanes, type TimedEntry } from './entries.ts';
import { countRows, LABEL_PAD_PX, type Label, type PlacedBar, placeBars } from './layout.ts';
import { measureText } from './measure.ts';
import type { Scale } from './scale.ts';
import { placeTicks, TICK_PAD_PX } from './ticks.ts';
import { entryText, foldText, foldTitle, laneTitles, tickText } from './words.ts';

/** The column with the names of the lanes. */
export const LANES_PX = 96;
const ROW_PX = 24;
const BAR_PX = 20;

const looks: Record<Lane, string> = {
  sessions: 'bg-surface border-control-line',
  turns: 'bg-running/8 border-running/40',
  tools: 'bg-running/16 border-running',
  waits: 'bg-needs/24 border-needs',
  warnings: 'bg-surface border-line-strong',
};
const failedBar = 'bg-failed/16 border-failed';

interface LanesProps {
  agent_id: string;
  entries: readonly TimedEntry[];
  scale: Scale;
  /** Called with the key of the entry that has the pointer or the focus, and with null when it leaves. */
  onShow: (key: string | null) => void;
}

export function Bars(props: LanesProps) {
  const { scale } = props;
  const [pointer, setPointer] = useState<number | null>(null);
  const follow = (event: PointerEvent<HTMLDivElement>) => {
    if (event.pointerType === 'touch') return;
    const x = event.clientX - event.currentTarget.getBoundingClientRect().left - LANES_PX;
    setPointer(x < 0 || x > scale.width ? null : x);
  };
  return (
    <section
      aria-label="Timeline"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll it
      tabIndex={0}
      className="overflow-x-auto border-line border-b pb-2 -outline-offset-2"
    >
      <div
        className="relative"
        style={{ width: LANES_PX + scale.width }}
        onPointerMove={follow}
        onPointerLeave={() => setPointer(null)}
      >
        <Lanes {...props} />
        {pointer !== null && <Crosshair x={pointer} scale={scale} />}
      </div>
    </section>
  );
}

/** Separate from the crosshair, which is rendered whenever the pointer moves. */
const Lanes = memo(function Lanes({ agent_id, entries, scale, onShow }: LanesProps) {
  return (
    <>
      <Axis scale={scale} />
      {lanes.map((lane) => {
        const own = entries.filter((entry) => entry.lane === lane);
        return (
          own.length > 0 && (
            <LaneRow key={lane} lane={lane} entries={own} agent_id={agent_id} scale={scale} onShow={onShow} />
          )
        );
      })}
    </>
  );
});

/** The ticks, and the folded segments with what they stand for, behind all lanes. */
function Axis({ scale }: { scale: Scale }) {
  const ticks = useMemo(
    () =>
      placeTicks(scale, {
        format: tickText,
        measure: measureText,
        offset_s: -60 * new Date((scale.segments[0]?.from ?? 0) * 1000).getTimezoneOffset(),
      }),
    [scale],
  );
  return (
    <>
      <div aria-hidden className="sticky left-0 z-10 h-7 w-24 bg-ground" />
      <div className="absolute inset-y-0 text-muted text-xs" style={{ left: LANES_PX, width: scale.width }}>
        {ticks.map(({ x, ts, text }) => (
          <span
            key={ts}
            className="absolute inset-y-0 whitespace-nowrap border-line border-l pt-1.5"
            style={{ left: x, paddingLeft: TICK_PAD_PX }}
          >
            {text}
          </span>
        ))}
        {scale.segments.map(
          (segment) =>
            segment.fold && (
              <span
                key={segment.from}
                title={foldTitle(segment)}
                className="absolute inset-y-0 border-line-strong/50 border-x border-dashed"
                style={{ left: segment.x, width: segment.width }}
              >
                <span
                  className={cx(
                    'block whitespace-nowrap text-center leading-7',
                    segment.fold === 'waiting' ? 'bg-needs/12 text-needs' : 'bg-surface',
                  )}
                >
                  {foldText(segment)}
                </span>
              </span>
            ),
        )}
      </div>
    </>
  );
}

function LaneRow({ lane, entries, agent_id, scale, onShow }: LanesProps & { lane: Lane }) {
  const bars = useMemo(() => placeBars(entries, scale, measureText), [entries, scale]);
  return (
    <div className="relative flex border-line border-t py-1">
      <h3 className="sticky left-0 z-10 -my-1 w-24 shrink-0 bg-ground py-1 text-muted text-xs leading-5">
        {laneTitles[lane]}
      </h3>
      <ul className="relative flex-1" style={{ height: countRows(bars) * ROW_PX }}>
        {bars.map((bar) => (
          <Bar key={bar.entry.key} bar={bar} agent_id={agent_id} onShow={onShow} />
        ))}
      </ul>
    </div>
  );
}

function Bar({ bar, agent_id, onShow }: { bar: PlacedBar } & Pick<LanesProps, 'agent_id' | 'onShow'>) {
  const { entry, x, width, row, label } = bar;
  return (
    <li
      className="absolute"
      style={{ left: x, width, top: row * ROW_PX + (ROW_PX - BAR_PX) / 2, height: BAR_PX }}
    >
      <Link
        to="/agents/$agent_id/$tab"
        params={{ agent_id, tab: 'events' }}
        search={{}}
        hash={`e${entry.seq}`}
        preload={false}
        aria-label={entryText(entry)}
        onMouseEnter={() => onShow(entry.key)}
        onMouseLeave={() => onShow(null)}
        onFocus={() => onShow(entry.key)}
        onBlur={() => onShow(null)}
        className={cx(
          // The height of its row can be tapped. The width cannot be larger than the time that it shows.
          'absolute inset-0 whitespace-nowrap rounded-sm border text-xs leading-[18px] before:absolute before:inset-x-0 before:-inset-y-0.75 hover:brightness-95',
          entry.result?.status === 'failed' ? failedBar : looks[entry.lane],
          entry.is_open && 'rounded-r-none border-r-0',
        )}
      >
        {label && <BarLabel {...label} />}
      </Link>
    </li>
  );
}

const sides: Record<Label['side'], string> = {
  inside: 'left-0',
  after: 'left-full',
  before: 'right-full',
};

function BarLabel({ text, side }: Label) {
  return (
    <span
      className={cx('absolute inset-y-0 text-text', sides[side], side !== 'inside' && 'bg-ground')}
      style={{ paddingInline: side === 'inside' ? LABEL_PAD_PX - 1 : LABEL_PAD_PX / 2 }}
    >
      {text}
    </span>
  );
}

function Crosshair({ x, scale }: { x: number; scale: Scale }) {
  const found = scale.find(x);
  if (!found) return null;
  const date = new Date(found.ts * 1000);
  const is_today = date.toDateString() === new Date().toDateString();
  return (
    <div
      aria-hidden
      data-crosshair
      className="pointer-events-none absolute inset-y-0 z-20 border-text/60 border-l"
      style={{ left: LANES_PX + x }}
    >
      <time
        className={cx(
          'absolute top-0.5 whitespace-nowrap rounded-sm bg-text px-1.5 text-ground text-xs leading-5',
          x > scale.width / 2 ? 'right-1' : 'left-1',
        )}
      >
        {is_today ? date.toLocaleTimeString() : date.toLocaleString()}
      </time>
    </div>
  );
}
