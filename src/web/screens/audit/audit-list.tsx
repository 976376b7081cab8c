/** The audit records as a virtual list, which renders only the visible rows. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { defaultRangeExtractor, useVirtualizer } from '@tanstack/react-virtual';
import { ChevronDown, ChevronRight, TriangleAlert } from 'lucide-react';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { escapeHidden } from '../../../core/visible.ts';
import { type AuditRecord, agentsQuery, nodesQuery, teamsQuery, usersQuery } from '../../api/queries.ts';
import { useListKeys } from '../../shell/list-keys.ts';
import { Chip } from '../../ui/chip.tsx';
import { Copy } from '../../ui/copy.tsx';
import { cx } from '../../ui/cx.ts';
import { type AuditRow, type AuditSearch, countAbove, toRows } from './records.ts';
import { agentNames, type Names, type Sentence, sentenceOf } from './sentences.ts';
import { useDeletedAgent } from './use-audit.ts';

const ROW_PX = 37;
const HEADING_PX = 28;
const columns = 'grid grid-cols-[minmax(0,1fr)_auto] gap-x-3 md:grid-cols-[6rem_minmax(0,1fr)_auto_8rem]';

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
  const names = useNames(records);
  useListKeys(scroller);
  const { rows, list, stuck } = useRows(records, scroller);
  const items = list.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (more && !busy && last >= rows.length - 20) onMore();
  }, [more, busy, last, rows.length, onMore]);
  useStableScroll(scroller, rows);

  const toggle = (id: number) =>
    setOpened((before) => {
      const next = new Set(before);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <Head />
      <div ref={scroller} className="scroll-y min-h-0 flex-1">
        <ol aria-label="Audit records" className="relative" style={{ height: list.getTotalSize() }}>
          {items.map(({ key, index, start }) => {
            const row = rows[index]!;
            const place = { 'data-index': index, ref: list.measureElement };
            const style = { transform: `translateY(${start}px)` };
            if (row.type === 'day') {
              const is_stuck = index === stuck();
              return (
                <li key={key} {...place} style={is_stuck ? {} : style} className={headingClass(is_stuck)}>
                  <DayText at={row.at} />
                </li>
              );
            }
            const { record, position, begins_minute } = row;
            return (
              <li
                key={key}
                {...place}
                style={style}
                aria-posinset={position}
                aria-setsize={more ? -1 : records.length}
                className="absolute inset-x-0 top-0 border-line border-b"
              >
                <Row
                  record={record}
                  begins_minute={begins_minute}
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

function Head() {
  return (
    <div
      aria-hidden
      className={cx(columns, 'hidden border-line border-b px-4 py-1.5 text-muted text-sm md:grid')}
    >
      {['Time', 'What happened', 'Event', 'IP address'].map((name) => (
        <span key={name}>{name}</span>
      ))}
    </div>
  );
}

function headingClass(is_stuck: boolean): string {
  return cx(
    'inset-x-0 top-0 border-line border-b bg-surface px-4 text-muted text-xs leading-[27px]',
    is_stuck ? 'sticky z-10' : 'absolute',
  );
}

/** The rows in view and near it. The heading of the day at the top edge stays there. */
function useRows(records: readonly AuditRecord[], scroller: { current: HTMLDivElement | null }) {
  const rows = useMemo(() => toRows(records), [records]);
  const days = useMemo(() => rows.flatMap(({ type }, at) => (type === 'day' ? at : [])), [rows]);
  const stuck = useRef(0);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    // By id, so that rows keep their place when new records arrive at the top.
    getItemKey: (at) => rows[at]!.key,
    estimateSize: (at) => (rows[at]!.type === 'day' ? HEADING_PX : ROW_PX),
    rangeExtractor: (range) => {
      stuck.current = days.findLast((at) => at <= range.startIndex) ?? 0;
      return [...new Set([stuck.current, ...defaultRangeExtractor(range)])];
    },
    overscan: 12,
  });
  return { rows, list, stuck: () => stuck.current };
}

interface KnownNames extends Names {
  /** Whether it is known that the agent with this id was deleted, and its name is not in the list. */
  isNameless: (agent_id: string) => boolean;
}

function useNames(records: readonly AuditRecord[]): KnownNames {
  const { data: users } = useQuery(usersQuery);
  const { data: agents } = useQuery(agentsQuery);
  const { data: nodes } = useQuery(nodesQuery);
  const { data: teams } = useQuery(teamsQuery);
  const by_record = useMemo(() => agentNames(records), [records]);
  return useMemo(() => {
    const by_user = new Map(users?.map(({ id, username }) => [id, username]));
    const by_agent = new Map(agents?.map(({ id, name }) => [id, name]));
    const by_node = new Map(nodes?.map(({ id, name }) => [id, name]));
    const by_team = new Map(teams?.map(({ id, name }) => [id, name]));
    return {
      user: (id) => by_user.get(id) ?? id,
      agent: (id) => by_agent.get(id) ?? by_record.get(id) ?? id,
      isNameless: (id) => agents !== undefined && !by_agent.has(id) && !by_record.has(id),
      node: (id) => by_node.get(id) ?? id,
      team: (id) => by_team.get(id) ?? id,
    };
  }, [users, agents, nodes, teams, by_record]);
}

/** Keeps the scroll position when records arrive at the top. */
function useStableScroll(scroller: { current: HTMLDivElement | null }, rows: readonly AuditRow[]): void {
  const top = useRef<number | undefined>(undefined);
  useLayoutEffect(() => {
    const element = scroller.current;
    const { records, headings } = countAbove(rows, top.current);
    // Rows that were never rendered have the estimated height.
    if (element && element.scrollTop > 0) element.scrollTop += records * ROW_PX + headings * HEADING_PX;
    top.current = rows.find((row) => row.type === 'record')?.record.id;
  }, [scroller, rows]);
}

function useSentence(record: AuditRecord, names: KnownNames): Sentence {
  const { agent_id } = record;
  const deleted = useDeletedAgent(agent_id !== null && names.isNameless(agent_id) ? agent_id : null);
  return sentenceOf(record, deleted === undefined ? names : { ...names, agent: () => deleted });
}

function Row({
  record,
  begins_minute,
  names,
  open,
  onToggle,
  onFilter,
}: {
  record: AuditRecord;
  begins_minute: boolean;
  names: KnownNames;
  open: boolean;
  onToggle: () => void;
  onFilter: (change: AuditSearch) => void;
}) {
  const Chevron = open ? ChevronDown : ChevronRight;
  const { actor, text } = useSentence(record, names);
  return (
    <>
      <div
        className={cx(columns, 'items-center px-3 py-1 hover:bg-surface max-md:pointer-coarse:pb-3 md:px-4')}
      >
        <span className="order-2 text-right text-muted md:order-none md:text-left">
          <TimeText at={record.timestamp} shown={begins_minute} />
        </span>
        <span className="order-1 min-w-0 md:order-none">
          <button
            type="button"
            data-row
            aria-expanded={open}
            onClick={onToggle}
            // The padding keeps a second line above what follows, which moves up.
            className="tap flex w-full min-w-0 items-center gap-1 rounded text-left max-md:pointer-coarse:py-2"
          >
            <Chevron aria-hidden className="size-4 shrink-0 text-muted" />
            <span className="wrap-anywhere min-w-0 md:truncate">
              <b className="font-semibold">{escapeHidden(actor)}</b> {escapeHidden(text)}
            </span>
            {record.level === 'warn' && (
              <span className="inline-flex shrink-0 items-center gap-1 text-warning text-sm">
                <TriangleAlert aria-hidden className="size-3.5" /> warning
              </span>
            )}
          </button>
        </span>
        <span className="order-3 flex min-w-0 pl-5 max-md:pointer-coarse:-mt-2 md:order-none md:pl-0">
          <Chip mono>{record.event}</Chip>
        </span>
        <span className="order-4 truncate text-right text-muted max-md:pointer-coarse:-mt-2 md:order-none md:text-left">
          {record.ip ?? '–'}
        </span>
      </div>
      {open && <Details record={record} onFilter={onFilter} />}
    </>
  );
}

function Details({ record, onFilter }: { record: AuditRecord; onFilter: (change: AuditSearch) => void }) {
  return (
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
      <pre className="whitespace-pre-wrap break-all font-mono text-sm">{JSON.stringify(record, null, 2)}</pre>
    </div>
  );
}

/** `Thursday, November 26, 2026`. */
function DayText({ at }: { at: string }) {
  return <time dateTime={at}>{day_format.format(new Date(at))}</time>;
}

/** The minute within the day of the heading: `4:20 PM`. Unless `shown`, only for screen readers, and its space stays. */
function TimeText({ at, shown }: { at: string; shown: boolean }) {
  const date = new Date(at);
  return (
    <time
      dateTime={at}
      title={date.toLocaleString()}
      className={cx('whitespace-nowrap tabular-nums', !shown && 'opacity-0')}
    >
      {time_format.format(date)}
    </time>
  );
}

const day_format = new Intl.DateTimeFormat(undefined, { dateStyle: 'full' });
const time_format = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });

function Filter({ onClick, children }: { onClick: () => void; children: string }) {
  return (
    <button type="button" onClick={onClick} className="tap px-1 underline">
      {children}
    </button>
  );
}
