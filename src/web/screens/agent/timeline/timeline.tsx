/** Where an agent's time went: sessions, turns, tools, waits and warnings as bars and as a table. Idle time is folded. */
import { ZoomIn, ZoomOut } from 'lucide-react';
import { useLayoutEffect, useMemo, useRef, useState } from 'react';
import type { View } from '../../../../acp/transcript/transcript.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { useAgentLog } from '../../../live/agent-log.ts';
import { IconButton } from '../../../ui/button.tsx';
import { cx } from '../../../ui/cx.ts';
import { Disclosure } from '../../../ui/disclosure.tsx';
import { Segmented } from '../../../ui/segmented.tsx';
import { Empty, Failed, NotLive, Skeleton } from '../../../ui/states.tsx';
import { useNow } from '../../../ui/time.tsx';
import { Bars, LANES_PX } from './bars.tsx';
import { buildEntries, entriesAt, listMoments } from './entries.ts';
import { createScale } from './scale.ts';
import { Table } from './table.tsx';
import { entryText, summarize } from './words.ts';

const ZOOM_MAX = 32;
const WIDTH_MIN_PX = 320;

export function TimelineTab({ agent }: { agent: AgentRecord }) {
  const log = useAgentLog(agent.id);
  if (log.view.sessions.length > 0)
    return (
      <>
        {log.failure !== null && <NotLive reason={log.failure} retry={log.retry} />}
        <Timeline agent={agent} view={log.view} />
      </>
    );
  if (log.failure !== null) return <Failed error={new Error(log.failure)} retry={log.retry} />;
  if (log.view.last_seq < agent.last_seq) return <Skeleton />;
  return (
    <Empty
      title="This agent has not run yet. Start it to see where its time goes."
      cli={`svc agents start ${agent.id}`}
    />
  );
}

/** On phones, one of the two at a time. */
type Shape = 'table' | 'chart';
const shapes = [
  { value: 'table', label: 'Table' },
  { value: 'chart', label: 'Chart' },
] as const;

function Timeline({ agent, view }: { agent: AgentRecord; view: View }) {
  const now = Math.floor(useNow() / 1000);
  const [zoom, setZoom] = useState(1);
  const [shape, setShape] = useState<Shape>('table');
  const [room, measured] = useWidth();
  const entries = useMemo(() => buildEntries(view, agent.status !== 'running'), [view, agent.status]);
  const moments = useMemo(() => listMoments(view), [view]);
  // Without an open entry, time changes nothing.
  const end = entries.some(({ to }) => to === null) ? now : 0;
  const timed = useMemo(() => entriesAt(entries, end), [entries, end]);
  const scale = useMemo(
    () => createScale(timed, moments, Math.max(WIDTH_MIN_PX, room - LANES_PX) * zoom),
    [timed, moments, room, zoom],
  );
  const [shown, setShown] = useState<string | null>(null);
  const entry = timed.find(({ key }) => key === shown);
  const is_table = shape === 'table';
  return (
    <div className="scroll-y min-h-0 flex-1">
      <div className="flex items-center gap-2 py-1 pr-2 pl-4">
        <p className="min-w-0 flex-1 truncate text-muted">
          {entry
            ? `${new Date(entry.from * 1000).toLocaleTimeString()} · ${entryText(entry)}`
            : summarize(entries, now)}
        </p>
        <Segmented label="Show as" segments={shapes} value={shape} onValue={setShape} className="sm:hidden" />
        <div className={cx('flex gap-2', is_table && 'max-sm:hidden')}>
          <IconButton
            label="Zoom out"
            icon={<ZoomOut aria-hidden />}
            disabled={zoom === 1}
            onClick={() => setZoom(zoom / 2)}
          />
          <IconButton
            label="Zoom in"
            icon={<ZoomIn aria-hidden />}
            disabled={zoom >= ZOOM_MAX}
            onClick={() => setZoom(zoom * 2)}
          />
        </div>
      </div>
      <div ref={measured} className={cx('px-4', is_table && 'max-sm:hidden')}>
        <Bars agent_id={agent.id} entries={timed} scale={scale} onShow={setShown} />
      </div>
      <Disclosure
        open
        summary="Table"
        className={cx('pt-1', !is_table && 'max-sm:hidden')}
        summaryClass="ml-4 text-muted text-sm hover:text-text max-sm:hidden"
      >
        <Table agent_id={agent.id} entries={entries} />
      </Disclosure>
    </div>
  );
}

function useWidth(): [number, { current: HTMLDivElement | null }] {
  const measured = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = measured.current;
    if (!element) return;
    // Within its padding.
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [width, measured];
}
