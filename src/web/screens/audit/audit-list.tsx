/** The audit records as a virtual list, which renders only the visible rows. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { ChevronDown, ChevronRight, TriangleAlert } from 'lucide-react';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { escapeHidden } from '../../../core/visible.ts';
import { type AuditRecord, agentsQuery, nodesQuery, usersQuery } from '../../api/queries.ts';
import { useListKeys } from '../../shell/list-keys.ts';
import { Chip } from '../../ui/chip.tsx';
import { Copy } from '../../ui/copy.tsx';
import { cx } from '../../ui/cx.ts';
import { Clock } from '../../ui/time.tsx';
import type { AuditSearch } from './records.ts';
import { type Names, sentenceOf } from './sentences.ts';

const ROW_PX = 37;
const columns = 'grid grid-cols-[1fr_auto] gap-x-3 md:grid-cols-[11rem_minmax(0,1fr)_auto_8rem]';

export function AuditList({
  records,
  more,
  busy,
  onMore,
  onFilter,
}: {
  records: readonly AuditRecord[];
  more: boolean;
  busy: boolean;
  onMore: () => void;
  onFilter: (change: AuditSearch) => void;
}) {
  const scroller = useRef<HTMLDivElement>(null);
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const names = useNames();
  useListKeys(scroller);
  const rows = useVirtualizer({
    count: records.length,
    getScrollElement: () => scroller.current,
    // By id, so that rows keep their place when new records arrive at the top.
    getItemKey: (at) => records[at]!.id,
    estimateSize: () => ROW_PX,
    overscan: 12,
  });
  const items = rows.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (more && !busy && last >= records.length - 20) onMore();
  }, [more, busy, last, records.length, onMore]);
  useStableScroll(scroller, records);

  const toggle = (id: number) =>
    setOpened((before) => {
      const next = new Set(before);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div
        aria-hidden
        className={cx(columns, 'hidden border-line border-b px-4 py-1.5 text-muted text-sm md:grid')}
      >
        {['Time', 'What happened', 'Event', 'IP address'].map((name) => (
          <span key={name}>{name}</span>
        ))}
      </div>
      <div ref={scroller} className="scroll-y min-h-0 flex-1">
        <ol aria-label="Audit records" className="relative" style={{ height: rows.getTotalSize() }}>
          {items.map(({ key, index, start }) => {
            const record = records[index]!;
            return (
              <li
                key={key}
                data-index={index}
                aria-posinset={index + 1}
                aria-setsize={more ? -1 : records.length}
                ref={rows.measureElement}
                className="absolute inset-x-0 top-0 border-line border-b"
                style={{ transform: `translateY(${start}px)` }}
              >
                <Row
                  record={record}
                  names={names}
                  open={opened.has(record.id)}
                  onToggle={() => toggle(record.id)}
                  onFilter={onFilter}
                />
              </li>
            );
          })}
        </ol>
      </div>
    </div>
  );
}

function useNames(): Names {
  const { data: users } = useQuery(usersQuery);
  const { data: agents } = useQuery(agentsQuery);
  const { data: nodes } = useQuery(nodesQuery);
  return useMemo(() => {
    const by_user = new Map(users?.map(({ id, username }) => [id, username]));
    const by_agent = new Map(agents?.map(({ id, name }) => [id, name]));
    const by_node = new Map(nodes?.map(({ id, name }) => [id, name]));
    return {
      user: (id) => by_user.get(id) ?? id,
      agent: (id) => by_agent.get(id) ?? id,
      node: (id) => by_node.get(id) ?? id,
    };
  }, [users, agents, nodes]);
}

/** Keeps the scroll position when records arrive at the top. */
function useStableScroll(
  scroller: { current: HTMLDivElement | null },
  records: readonly AuditRecord[],
): void {
  const top = useRef(records[0]?.id);
  useLayoutEffect(() => {
    const element = scroller.current;
    const added = records.findIndex(({ id }) => id === top.current);
    // Rows that were never rendered have the estimated height.
    if (element && added > 0 && element.scrollTop > 0) element.scrollTop += added * ROW_PX;
    top.current = records[0]?.id;
  }, [scroller, records]);
}

function Row({
  record,
  names,
  open,
  onToggle,
  onFilter,
}: {
  record: AuditRecord;
  names: Names;
  open: boolean;
  onToggle: () => void;
  onFilter: (change: AuditSearch) => void;
}) {
  const Chevron = open ? ChevronDown : ChevronRight;
  const { actor, text } = sentenceOf(record, names);
  return (
    <>
      <div className={cx(columns, 'items-center px-3 py-1 hover:bg-surface md:px-4')}>
        <span className="order-2 text-right text-muted md:order-none md:text-left">
          <Clock at={record.timestamp} />
        </span>
        <span className="order-1 min-w-0 md:order-none">
          <button
            type="button"
            data-row
            aria-expanded={open}
            onClick={onToggle}
            className="tap flex w-full min-w-0 items-center gap-1 rounded text-left"
          >
            <Chevron aria-hidden className="size-4 shrink-0 text-muted" />
            <span className="min-w-0 md:truncate">
              <b className="font-semibold">{escapeHidden(actor)}</b> {escapeHidden(text)}
            </span>
            {record.level === 'warn' && (
              <span className="inline-flex shrink-0 items-center gap-1 text-warning text-sm">
                <TriangleAlert aria-hidden className="size-3.5" /> warning
              </span>
            )}
          </button>
        </span>
        <span className="order-3 flex min-w-0 pl-5 md:order-none md:pl-0">
          <Chip mono>{record.event}</Chip>
        </span>
        <span className="order-4 truncate text-right text-muted md:order-none md:text-left">
          {record.ip ?? '–'}
        </span>
      </div>
      {open && (
        <div className="flex flex-col gap-2 border-line border-t bg-surface px-3 py-2 md:px-4">
          <div className="flex flex-wrap items-center gap-2">
            <Copy text={JSON.stringify(record, null, 2)} label="Copy JSON" />
            {record.agent_id && (
              <>
                <Link
                  to="/agents/$agent_id"
                  params={{ agent_id: record.agent_id }}
                  className="tap flex items-center px-1 underline"
                >
                  Open agent
                </Link>
                <Filter onClick={() => onFilter({ agent_id: record.agent_id! })}>Only this agent</Filter>
              </>
            )}
            {record.user_id && (
              <Filter onClick={() => onFilter({ user_id: record.user_id! })}>Only this user</Filter>
            )}
            <Filter onClick={() => onFilter({ event: record.event })}>Only this event</Filter>
          </div>
          <pre className="whitespace-pre-wrap break-all font-mono text-sm">
            {JSON.stringify(record, null, 2)}
          </pre>
        </div>
      )}
    </>
  );
}

function Filter({ onClick, children }: { onClick: () => void; children: string }) {
  return (
    <button type="button" onClick={onClick} className="tap px-1 underline">
      {children}
    </button>
  );
}
