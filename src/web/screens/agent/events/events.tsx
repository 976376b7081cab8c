/** An agent's log as it was written: every event with its number, its JSON and an address of its own. */
import { useLocation, useNavigate, useSearch } from '@tanstack/react-router';
import { ArrowDown } from 'lucide-react';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { type EventType, eventTypes } from '../../../../core/event.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { Button } from '../../../ui/button.tsx';
import { inputClass } from '../../../ui/field.tsx';
import { hasModifier, isTyping } from '../../../ui/keys.ts';
import { Select } from '../../../ui/select.tsx';
import { Empty, Failed, Skeleton } from '../../../ui/states.tsx';
import { EventList, type EventListHandle } from './event-list.tsx';
import { Hits } from './hits.tsx';
import { useEvents } from './use-events.ts';

export function EventsTab({ agent }: { agent: AgentRecord }) {
  return <Events key={agent.id} agent={agent} />;
}

function Events({ agent }: { agent: AgentRecord }) {
  const { type, q } = useSearch({ from: '/app/agents/$agent_id/$tab' });
  const navigate = useNavigate({ from: '/agents/$agent_id/$tab' });
  const marked = useMarked();
  const events = useEvents(agent.id, type, marked);
  const { stretch, loading, error } = events;
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set(marked === null ? [] : [marked]));
  const list = useRef<EventListHandle>(null);
  const [follows, setFollows] = useState(marked === null);

  const mark = (seq: number) => {
    void navigate({
      search: true,
      hash: `e${seq}`,
      replace: true,
      resetScroll: false,
      hashScrollIntoView: false,
    });
  };
  // The address names another event: by a click on it, by a hit, or by going back.
  const shown = useRef<number | null>(null);
  const is_there = marked !== null && stretch.events.some(({ seq }) => seq === marked);
  useEffect(() => {
    if (marked === null || shown.current === marked || loading) return;
    shown.current = marked;
    setOpen((known) => new Set([...known, marked]));
    if (is_there) list.current?.show(marked);
    else events.goTo(marked);
  }, [marked, is_there, loading, events.goTo]);
  // Once it was read, after it was gone to.
  useEffect(() => {
    if (is_there && marked !== null) list.current?.show(marked);
  }, [is_there, marked]);

  const toEnd = () => {
    if (stretch.newer) events.goTo(null);
    setFollows(true);
    list.current?.toEnd();
  };
  const held = useRef(toEnd);
  held.current = toEnd;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'End' || isTyping(event) || hasModifier(event)) return;
      event.preventDefault();
      held.current();
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);

  const toggle = (seq: number) => {
    const next = new Set(open);
    if (!next.delete(seq)) next.add(seq);
    setOpen(next);
  };
  const is_empty = stretch.events.length === 0;
  return (
    <div className="flex h-full min-h-0 min-w-0 flex-1 flex-col">
      <div className="flex shrink-0 flex-wrap items-center gap-2 border-line border-b px-3 py-1">
        <Select
          aria-label="Type of events"
          className="w-36!"
          value={type ?? ''}
          onChange={(next) =>
            void navigate({
              search: (search) => ({ ...search, type: (next || undefined) as EventType | undefined }),
            })
          }
          choices={[
            { value: '', label: 'All events' },
            ...eventTypes.map((each) => ({ value: each, label: each.replace('acp_event', 'ACP messages') })),
          ]}
        />
        <SearchBox
          key={q ?? ''}
          asked={q ?? ''}
          onAsk={(next) => void navigate({ search: (search) => ({ ...search, q: next || undefined }) })}
        />
      </div>
      {q !== undefined && (
        <Hits
          agent_id={agent.id}
          q={q}
          marked={marked}
          onClose={() => void navigate({ search: (search) => ({ ...search, q: undefined }) })}
        />
      )}
      <div className="relative flex min-h-0 flex-1 flex-col">
        {is_empty && loading && <Skeleton rows={12} height="h-5" />}
        {is_empty &&
          !loading &&
          (error ? (
            <Failed error={error} retry={() => events.goTo(marked)} />
          ) : (
            <Empty
              title={type ? 'No events of this type.' : 'No events yet.'}
              cli={`svc agents logs ${agent.id} --json`}
            />
          ))}
        {!is_empty && (
          <EventList
            ref={list}
            events={events}
            open={open}
            marked={marked}
            follows={follows}
            onFollow={setFollows}
            onToggle={toggle}
            onMark={mark}
          />
        )}
        {!is_empty && (!follows || stretch.newer) && (
          <Button
            className="absolute right-4 bottom-3 min-w-28 shadow-overlay"
            icon={<ArrowDown aria-hidden />}
            title="End"
            onClick={toEnd}
          >
            To the newest
          </Button>
        )}
      </div>
    </div>
  );
}

/** `#e1843` in the address. */
function useMarked(): number | null {
  const hash = useLocation({ select: (location) => location.hash });
  const found = /^e(\d{1,15})$/.exec(hash)?.[1];
  return found === undefined ? null : Number(found);
}

function SearchBox({ asked, onAsk }: { asked: string; onAsk: (q: string) => void }) {
  const [text, setText] = useState(asked);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onAsk(text.trim());
  };
  return (
    <search className="min-w-40 flex-1">
      <form onSubmit={submit} className="flex gap-2">
        <input
          aria-label="Search what the agent wrote, said and did"
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
