/** The Events tab: every event of an agent's log with its number, its JSON and a URL. */
import { useLocation, useNavigate, useSearch } from '@tanstack/react-router';
import { type FormEvent, type RefObject, useEffect, useMemo, useRef, useState } from 'react';
import { type EventType, eventTypes } from '../../../../core/event.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { Button } from '../../../ui/button.tsx';
import { pillClass } from '../../../ui/chip.tsx';
import { inputClass } from '../../../ui/field.tsx';
import { hasModifier, isTyping } from '../../../ui/keys.ts';
import { Segmented } from '../../../ui/segmented.tsx';
import { Empty, Failed, NotLive, Skeleton } from '../../../ui/states.tsx';
import { ToEnd } from '../../../ui/to-end.tsx';
import { useMissingEvent } from '../missing-event.ts';
import { type Counts, formatCount, withCounts } from './counts.ts';
import { EventList, type EventListHandle } from './event-list.tsx';
import { groupEvents, singleEvents } from './groups.ts';
import { Hits } from './hits.tsx';
import { type Events as ReadEvents, useEvents } from './use-events.ts';

export function EventsTab({ agent }: { agent: AgentRecord }) {
  return <Events key={agent.id} agent={agent} />;
}

function Events({ agent }: { agent: AgentRecord }) {
  const { type, q } = useSearch({ from: '/app/agents/$agent_id/$tab' });
  const navigate = useNavigate({ from: '/agents/$agent_id/$tab' });
  const marked = useMarked();
  const events = useEvents(agent, type, marked);
  const { range, loading, errors, ended } = events;
  const [raw, setRaw] = useState(false);
  const rows = useMemo(
    () => (raw ? singleEvents(range.events) : groupEvents(range.events)),
    [raw, range.events],
  );
  const counts = useCounts(events, agent.last_seq);
  const list = useRef<EventListHandle>(null);
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set(marked === null ? [] : [marked]));
  const [follows, setFollows] = useState(marked === null);
  const openMark = (seq: number) => setOpen((known) => new Set([...known, seq]));
  const stayAt = useShownMark(events, marked, list, openMark);
  const ready = !loading && !range.newer && errors.place === undefined;
  useMissingEvent(marked, Math.max(agent.last_seq, range.events.at(-1)?.seq ?? 0), ready);
  const toEnd = () => {
    if (range.newer) events.goTo(null);
    setFollows(true);
    list.current?.toEnd();
  };
  useEndKey(toEnd);
  const toggle = (seq: number) => {
    const next = new Set(open);
    if (!next.delete(seq)) next.add(seq);
    setOpen(next);
  };
  const is_empty = range.events.length === 0;
  return (
    <div className="flex h-full min-h-0 min-w-0 flex-1 flex-col">
      <Toolbar
        type={type}
        counts={counts}
        last_seq={agent.last_seq}
        has_messages={agent.protocol === 'acp'}
        q={q}
        raw={raw}
        onRaw={setRaw}
        onChange={(next) => void navigate({ search: (old) => ({ ...old, ...next }) })}
      />
      {q !== undefined && (
        <Hits
          agent_id={agent.id}
          q={q}
          marked={marked}
          onClose={() => void navigate({ search: (search) => ({ ...search, q: undefined }) })}
        />
      )}
      {ended && <NotLive {...ended} />}
      <div className="relative flex min-h-0 flex-1 flex-col">
        {is_empty && loading && <Skeleton rows={12} height="h-5" />}
        {is_empty && !loading && (
          <NoEvents agent={agent} type={type} error={errors.place} retry={() => events.goTo(marked)} />
        )}
        {!is_empty && (
          <EventList
            ref={list}
            events={events}
            rows={rows}
            open={open}
            marked={marked}
            follows={follows}
            onFollow={setFollows}
            onToggle={toggle}
            onMark={(seq) => {
              stayAt(seq);
              setFollows(false);
              void navigate({ ...IN_PLACE, search: true, hash: `e${seq}` });
            }}
          />
        )}
        {!is_empty && (!follows || range.newer) && <ToEnd onClick={toEnd}>Jump to latest</ToEnd>}
      </div>
    </div>
  );
}

/** Changes the URL without scrolling. */
const IN_PLACE = { replace: true, resetScroll: false, hashScrollIntoView: false } as const;

function NoEvents({
  agent,
  type,
  error,
  retry,
}: {
  agent: AgentRecord;
  type: EventType | undefined;
  error: unknown;
  retry: () => void;
}) {
  if (error) return <Failed error={error} retry={retry} />;
  const title = type
    ? 'No events of this type.'
    : 'No events yet. Start the agent, and everything it does is logged here.';
  return <Empty title={title} cli={`svc logs ${agent.id} --json`} />;
}

/**
 * Opens the event in the page's URL whenever it changes, and shows it if that was by a search result or by going back. A
 * click on an event calls the returned function first: the event is visible already.
 */
function useShownMark(
  { range, loading, goTo }: ReadEvents,
  marked: number | null,
  list: RefObject<EventListHandle | null>,
  onOpen: (seq: number) => void,
): (seq: number) => void {
  const shown = useRef<number | null>(null);
  const clicked = useRef<number | null>(null);
  const is_there = marked !== null && range.events.some(({ seq }) => seq === marked);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when the mark or the events change
  useEffect(() => {
    if (marked === null || shown.current === marked || loading) return;
    shown.current = marked;
    onOpen(marked);
    if (clicked.current === marked) return;
    clicked.current = null;
    if (is_there) list.current?.show(marked);
    else goTo(marked);
  }, [marked, is_there, loading, goTo]);
  // After `goTo` has read it.
  useEffect(() => {
    if (is_there && marked !== null && clicked.current !== marked) list.current?.show(marked);
  }, [is_there, marked, list]);
  return (seq) => {
    clicked.current = seq;
  };
}

function useEndKey(toEnd: () => void): void {
  const latest = useRef(toEnd);
  latest.current = toEnd;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'End' || isTyping(event) || hasModifier(event)) return;
      event.preventDefault();
      latest.current();
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
}

/** The counts of the types. They are kept while only one type is read. */
function useCounts({ range, type, loading }: ReadEvents, last_seq: number): Counts {
  const [counts, setCounts] = useState<Counts>({});
  const is_unread = loading && range.events.length === 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: `last_seq` may change long before its event is read
  useEffect(() => {
    if (!is_unread) setCounts((known) => withCounts(known, range, type, last_seq));
  }, [is_unread, range, type]);
  return counts;
}

const typeLabels: Record<EventType, string> = {
  output: 'Output',
  status: 'Status',
  acp_event: 'ACP messages',
  error: 'Errors',
};

interface TypesProps {
  type: EventType | undefined;
  counts: Counts;
  last_seq: number;
  /** Whether the agent speaks a protocol. */
  has_messages: boolean;
}

/** One scrolling row on phones. */
function Types({
  type,
  counts,
  last_seq,
  has_messages,
  onType,
}: TypesProps & { onType: (type: EventType | undefined) => void }) {
  return (
    <fieldset className="-m-1 flex min-w-0 gap-1 overflow-x-auto p-1 max-md:w-full">
      <legend className="sr-only">Event type</legend>
      {[undefined, ...eventTypes].map((each) => {
        const on = each === type;
        const count = counts[each ?? 'all'];
        if (each === 'acp_event' && !has_messages && !on) return null;
        return (
          <button
            key={each ?? 'all'}
            type="button"
            aria-pressed={on}
            onClick={() => onType(each)}
            className={pillClass(on)}
          >
            {each === undefined ? 'All' : typeLabels[each]}
            <span className="min-w-4 text-right tabular-nums">
              {formatCount(count, on ? undefined : last_seq)}
            </span>
          </button>
        );
      })}
    </fieldset>
  );
}

function Toolbar({
  q,
  raw,
  onRaw,
  onChange,
  ...types
}: TypesProps & {
  q: string | undefined;
  /** Shows every event by itself. */
  raw: boolean;
  onRaw: (raw: boolean) => void;
  onChange: (next: { type?: EventType | undefined; q?: string | undefined }) => void;
}) {
  return (
    <div className="flex shrink-0 flex-wrap items-center gap-2 border-line border-b px-3 py-1">
      <Types {...types} onType={(next) => onChange({ type: next })} />
      <Segmented
        label="Messages"
        segments={[
          { value: 'whole', label: 'Whole' },
          { value: 'raw', label: 'Raw' },
        ]}
        value={raw ? 'raw' : 'whole'}
        onValue={(next) => onRaw(next === 'raw')}
      />
      <SearchBox key={q ?? ''} query={q ?? ''} onAsk={(next) => onChange({ q: next || undefined })} />
    </div>
  );
}

/** The event number in the page's URL, such as `#e1843`. */
function useMarked(): number | null {
  const hash = useLocation({ select: (location) => location.hash });
  const found = /^e(\d{1,15})$/.exec(hash)?.[1];
  return found === undefined ? null : Number(found);
}

function SearchBox({ query, onAsk }: { query: string; onAsk: (q: string) => void }) {
  const [text, setText] = useState(query);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onAsk(text.trim());
  };
  return (
    <search className="min-w-40 flex-1">
      <form onSubmit={submit} className="flex gap-2">
        <input
          aria-label="Search what the agent wrote and did"
          value={text}
          onChange={(event) => setText(event.target.value)}
          placeholder="Search the log"
          autoComplete="off"
          className={inputClass}
        />
        <Button type="submit">Search</Button>
      </form>
    </search>
  );
}
