/** The shown part of an agent's log: read in pages around the user's position, and live at its end. */
import {
  type Dispatch,
  type RefObject,
  type SetStateAction,
  useCallback,
  useEffect,
  useRef,
  useState,
} from 'react';
import type { EventRecord, EventType } from '../../../../core/event.ts';
import { call } from '../../../api/client.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { streams } from '../../../live/streams.ts';
import { type LogRange, nothing, withNewer, withOlder } from './log-range.ts';

const PAGE = 200;

export interface Events {
  range: LogRange;
  /** The type that `range` was read with. */
  type: EventType | undefined;
  loading: boolean;
  /** The errors of what could not be read. Without them, more is read when the user scrolls there. */
  errors: Errors;
  /** Why the range is no longer live, although it reaches the end of the log; null: it is. */
  ended: StreamEnd | null;
  readOlder: () => void;
  readNewer: () => void;
  /** Moves to another place: around an event, or to the end. */
  goTo: (seq: number | null) => void;
}

/** What is read: a place in the log, or more at an end of the range. */
type Reading = 'place' | 'older' | 'newer';
type Errors = Readonly<Partial<Record<Reading, unknown>>>;

interface StreamEnd {
  reason: string;
  retry: () => void;
}

interface Place {
  /** The event in the middle; null: the end. */
  at: number | null;
  /** Increased each time, so that going to the same event again has an effect. */
  times: number;
}

export function useEvents(
  { id: agent_id, last_seq }: AgentRecord,
  type: EventType | undefined,
  first_at: number | null,
): Events {
  const [place, setPlace] = useState<Place>({ at: first_at, times: 0 });
  const [range, setRange] = useState(nothing);
  const [read_type, setReadType] = useState(type);
  /** The end of the log after it became shorter, which the agent's record may not show yet. */
  const [reset_to, setResetTo] = useState(Number.POSITIVE_INFINITY);
  if (reset_to < Number.POSITIVE_INFINITY && last_seq <= reset_to) setResetTo(Number.POSITIVE_INFINITY);
  const page = usePages(agent_id, type, Math.min(last_seq, reset_to));
  /** All events up to here are known, also those of other types. */
  const read_to = useRef(0);
  const { loading, errors, read, stop } = useOneRead();
  const { at } = place;

  // biome-ignore lint/correctness/useExhaustiveDependencies: all of `place`, also when it is the same event again
  useEffect(() => {
    setRange(nothing);
    void read('place', async (signal) => {
      const before = await page({ before: at === null ? Number.MAX_SAFE_INTEGER : at + 1 }, signal);
      const after = at === null ? { ...before, items: [], is_last: true } : await page({ after: at }, signal);
      if (signal.aborted) return;
      read_to.current = after.to;
      const older = withOlder(nothing, before.items, !before.is_last);
      setReadType(type);
      setRange(withNewer(older, after.items, !after.is_last));
    });
    return stop;
  }, [place, page, type, read, stop]);

  const readOlder = () => {
    const [first] = range.events;
    if (loading || !range.older || !first) return;
    void read('older', async (signal) => {
      const { items, is_last } = await page({ before: first.seq }, signal);
      if (!signal.aborted) setRange((known) => withOlder(known, items, !is_last));
    });
  };
  const readNewer = () => {
    const newest = range.events.at(-1);
    if (loading || !range.newer || !newest) return;
    void read('newer', async (signal) => {
      const { items, is_last, to } = await page({ after: newest.seq }, signal);
      if (signal.aborted) return;
      read_to.current = to;
      setRange((known) => withNewer(known, items, !is_last));
    });
  };
  const goTo = useCallback(
    (seq: number | null) => setPlace(({ times }) => ({ at: seq, times: times + 1 })),
    [],
  );
  const onReset = useCallback(
    (seq: number) => {
      setResetTo(seq);
      goTo(null);
    },
    [goTo],
  );
  const is_at_end = !loading && !range.newer && errors.place === undefined;
  const ended = useLiveEvents({ agent_id, type, read_to, is_at_end, setRange, onReset });
  return { range, type: read_type, loading, errors, ended, readOlder, readNewer, goTo };
}

type Query = { before: number } | { after: number };
interface Page {
  items: EventRecord[];
  /** There are no more events in that direction. */
  is_last: boolean;
  /** If the page reaches the end of the log: every later event has a greater number. */
  to: number;
}
type ReadPage = (query: Query, signal: AbortSignal) => Promise<Page>;

function usePages(agent_id: string, type: EventType | undefined, last_seq: number): ReadPage {
  const newest = useRef(last_seq);
  newest.current = last_seq;
  return useCallback(
    async (query, signal) => {
      const existing = newest.current;
      const filter = type === undefined ? {} : { type: type as unknown as EventType[] };
      const answer = await call('getLog', {
        params: { agent_id },
        query: { ...query, ...filter, limit: PAGE },
        signal,
      });
      // A page of large events has fewer than `PAGE`.
      const { items, next_cursor } = answer as { items: EventRecord[]; next_cursor?: string };
      return { items, is_last: next_cursor === undefined, to: Math.max(existing, items.at(-1)?.seq ?? 0) };
    },
    [agent_id, type],
  );
}

/** Runs one read at a time: a new one aborts the last. */
function useOneRead() {
  const [loading, setLoading] = useState(true);
  const [errors, setErrors] = useState<Errors>({});
  const reading = useRef<AbortController>(null);
  const read = useCallback(async (what: Reading, work: (signal: AbortSignal) => Promise<void>) => {
    const abort = new AbortController();
    reading.current?.abort();
    reading.current = abort;
    setLoading(true);
    setErrors(({ [what]: _, ...others }) => (what === 'place' ? {} : others));
    try {
      await work(abort.signal);
    } catch (error) {
      if (!abort.signal.aborted) setErrors((known) => ({ ...known, [what]: error }));
    } finally {
      if (reading.current === abort) {
        reading.current = null;
        setLoading(false);
      }
    }
  }, []);
  const stop = useCallback(() => reading.current?.abort(), []);
  return { loading, errors, read, stop };
}

interface Live {
  agent_id: string;
  type: EventType | undefined;
  read_to: RefObject<number>;
  is_at_end: boolean;
  setRange: Dispatch<SetStateAction<LogRange>>;
  /** Called when the log became shorter, with the number of its last event. */
  onReset: (seq: number) => void;
}

/** Appends live events while the range reaches the end of the log. The stream has events of all types. */
function useLiveEvents({ agent_id, type, read_to, is_at_end, setRange, onReset }: Live): StreamEnd | null {
  const [reason, setReason] = useState<string | null>(null);
  const is_live = is_at_end && reason === null;
  useEffect(() => {
    if (!is_live) return;
    return streams().watchAgent(agent_id, { after: read_to.current }, (news) => {
      if (news.type !== 'events') {
        setReason(news.type === 'gone' ? 'This agent was deleted.' : news.error);
        return;
      }
      const events = news.frames.map(({ data }) => data as unknown as EventRecord);
      const reset = events.findLast((event) => event.type === 'error' && event.code === 'reset');
      if (reset) {
        onReset(reset.seq);
        return;
      }
      read_to.current = events.at(-1)?.seq ?? read_to.current;
      const matching = type === undefined ? events : events.filter((event) => event.type === type);
      if (matching.length > 0) setRange((known) => withNewer(known, matching, false));
    });
  }, [agent_id, type, read_to, is_live, setRange, onReset]);
  return reason === null ? null : { reason, retry: () => setReason(null) };
}
