/** Where an agent's time went: sessions, turns, tools, waits and warnings as bars and as a table. Idle time is folded. */
import { Link } from '@tanstack/react-router';
import { ZoomIn, ZoomOut } from 'lucide-react';
import { useLayoutEffect, useMemo, useRef, useState } from 'react';
import type { View } from '../../../../acp/transcript/transcript.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { useAgentLog } from '../../../live/agent-log.ts';
import { IconButton } from '../../../ui/button.tsx';
import { Empty, Failed, Skeleton } from '../../../ui/states.tsx';
import { Clock, spanText, useNow } from '../../../ui/time.tsx';
import { Bars } from './bars.tsx';
import { buildEntries, type Entry } from './entries.ts';
import { createScale } from './scale.ts';

const ZOOM_MAX = 32;

export function TimelineTab({ agent }: { agent: AgentRecord }) {
  const log = useAgentLog(agent.id);
  if (log.view.sessions.length > 0) return <Timeline agent={agent} view={log.view} />;
  if (log.failure !== null) return <Failed error={new Error(log.failure)} />;
  if (log.view.last_seq < agent.last_seq) return <Skeleton />;
  return (
    <Empty
      title="This agent has not run yet. Start it to see where its time goes."
      cli={`svc agents start ${agent.id}`}
    />
  );
}

function Timeline({ agent, view }: { agent: AgentRecord; view: View }) {
  const ticking = Math.floor(useNow() / 1000);
  // A stopped agent's timeline does not grow.
  const now = agent.status === 'running' ? ticking : view.sessions.at(-1)!.started_ts;
  const [zoom, setZoom] = useState(1);
  const [room, measured] = useWidth();
  const entries = useMemo(() => buildEntries(view, now), [view, now]);
  const moments = useMemo(() => listMoments(view), [view]);
  const scale = useMemo(
    () => createScale(entries, moments, Math.max(320, room) * zoom),
    [entries, moments, room, zoom],
  );
  const [shown, setShown] = useState<string | null>(null);
  const entry = entries.find(({ key }) => key === shown) ?? entries.at(-1);
  return (
    <div className="scroll-y min-h-0 flex-1">
      <div className="flex items-center gap-2 px-3 py-1">
        <p className="min-w-0 flex-1 truncate text-muted">{entry && entryText(entry)}</p>
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
      <div ref={measured} className="px-3">
        <Bars agent_id={agent.id} entries={entries} scale={scale} onShow={setShown} />
      </div>
      <Table agent_id={agent.id} entries={entries} />
    </div>
  );
}

/** The times of the agent's messages and other items. */
function listMoments({ items }: View): number[] {
  return items.flatMap((item) =>
    item.kind === 'agent_message' || item.kind === 'thought' ? [item.ts, item.ended_ts ?? item.ts] : item.ts,
  );
}

function entryText({ label, from, to, open }: Entry): string {
  const time = new Date(from * 1000).toLocaleTimeString();
  const took = to > from || open ? ` · ${lasted({ from, to })}${open ? ' so far' : ''}` : '';
  return `${time}${took} · ${label}`;
}

function lasted({ from, to }: { from: number; to: number }): string {
  const seconds = to - from;
  return seconds < 10 ? `${seconds.toFixed(1)} s` : spanText(seconds * 1000);
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

const lane_names = { sessions: 'session', turns: 'turn', tools: 'tool', waits: 'wait', warnings: 'warning' };

/** The newest entry is last, as in the bars. */
function Table({ agent_id, entries }: { agent_id: string; entries: readonly Entry[] }) {
  return (
    <details className="mt-3 border-line border-t">
      <summary className="tap flex cursor-pointer items-center px-3 text-muted">Show as table</summary>
      <div className="overflow-x-auto px-3 pb-3">
        <table className="w-full text-left">
          <caption className="sr-only">Where the agent’s time went</caption>
          <thead>
            <tr className="text-muted">
              {['What', 'Kind', 'Started', 'Duration', 'Event'].map((title) => (
                <th key={title} scope="col" className="py-1 pr-3 font-medium">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {entries.map((entry) => (
              <tr key={entry.key} className="border-line border-t align-baseline">
                <th scope="row" className="max-w-96 truncate py-1 pr-3 font-normal" title={entry.label}>
                  {entry.label}
                  {entry.failed && <span className="text-failed"> failed</span>}
                </th>
                <td className="pr-3 text-muted">{lane_names[entry.lane]}</td>
                <td className="pr-3">
                  <Clock at={entry.from * 1000} />
                </td>
                <td className="whitespace-nowrap pr-3">
                  {lasted(entry)}
                  {entry.open && ' so far'}
                </td>
                <td>
                  <Link
                    to="/agents/$agent_id/$tab"
                    params={{ agent_id, tab: 'events' }}
                    search={{}}
                    hash={`e${entry.seq}`}
                    className="tap inline-flex items-center underline"
                  >
                    #{entry.seq}
                  </Link>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
