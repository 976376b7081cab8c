/** The shown part of an agent's log: read in pages around the user's position, and live at its end. */
import { type Dispatch, type SetStateAction, useCallback, useEffect, useRef, useState } from 'react';
import type { EventRecord, EventType } from '../../../../core/event.ts';
import { call } from '../../../api/client.ts';
import { streams } from '../../../live/streams.ts';
import { type LogRange, nothing, withNewer, withOlder } from './log-range.ts';

const PAGE = 200;

export interface Events {
  range: LogRange;
  /** The type that `range` was read with. */
  type: EventType | undefined;
  loading: boolean;
  error: unknown;
  readOlder: () => void;
  readNewer: () => void;
  /** Moves to another place: around an event, or to the end. */
  goTo: (seq: number | null) => void;
}

interface Place {
  /** The event in the middle; null: the end. */
  at: number | null;
  /** Increased each time, so that going to the same event again has an effect. */
  times: number;
}

export function useEvents(agent_id: string, type: EventType | undefined, first_at: number | null): Events {
  const [place, setPlace] = useState<Place>({ at: first_at, times: 0 });
  const [range, setRange] = useState(nothing);
  const [read_type, setReadType] = useState(type);
  const page = usePages(agent_id, type);
  const { loading, error, read, stop } = useOneRead();
  const { at } = place;

  // biome-ignore lint/correctness/useExhaustiveDependencies: all of `place`, also when it is the same event again
  useEffect(() => {
    setRange(nothing);
    void read(async (signal) => {
      const before = await page({ before: at === null ? Number.MAX_SAFE_INTEGER : at + 1 }, signal);
      const after = at === null ? { items: [], is_last: true } : await page({ after: at }, signal);
      if (signal.aborted) return;
      const older = withOlder(nothing, before.items, !before.is_last);
      setReadType(type);
      setRange(withNewer(older, after.items, !after.is_last));
    });
    return stop;
  }, [place, page, type, read, stop]);

  const is_at_end = !loading && !range.newer && error === null;
  useLiveEvents(agent_id, type, is_at_end, range, setRange);

  const readOlder = () => {
    const [first] = range.events;
    if (loading || !range.older || !first) return;
    void read(async (signal) => {
      const { items, is_last } = await page({ before: first.seq }, signal);
      if (!signal.aborted) setRange((known) => withOlder(known, items, !is_last));
    });
  };
  const readNewer = () => {
    const newest = range.events.at(-1);
    if (loading || !range.newer || !newest) return;
    void read(async (signal) => {
      const { items, is_last } = await page({ after: newest.seq }, signal);
      if (!signal.aborted) setRange((known) => withNewer(known, items, !is_last));
    });
  };
  const goTo = useCallback(
    (seq: number | null) => setPlace(({ times }) => ({ at: seq, times: times + 1 })),
    [],
  );
  return { range, type: read_type, loading, error, readOlder, readNewer, goTo };
}

type Query = { before: number } | { after: number };
type ReadPage = (query: Query, signal: AbortSignal) => Promise<{ items: EventRecord[]; is_last: boolean }>;

/** Reads one page of the log; `is_last` if there are no more events in that direction. */
function usePages(agent_id: string, type: EventType | undefined): ReadPage {
  return useCallback(
    async (query, signal) => {
      const filter = type === undefined ? {} : { type: type as unknown as EventType[] };
      const answer = await call('getLog', {
        params: { agent_id },
        query: { ...query, ...filter, limit: PAGE },
        signal,
      });
      const { items } = answer as { items: EventRecord[] };
      return { items, is_last: items.length < PAGE };
    },
    [agent_id, type],
  );
}

/** Runs one read at a time: a new one aborts the last. */
function useOneRead() {
  const [loading, setLoading] = useState(true);
  const [error, setError] = useState<unknown>(null);
  const reading = useRef<AbortController>(null);
  const read = useCallback(async (work: (signal: AbortSignal) => Promise<void>) => {
    const abort = new AbortController();
    reading.current?.abort();
    reading.current = abort;
    setLoading(true);
    setError(null);
    try {
      await work(abort.signal);
    } catch (failure) {
      if (!abort.signal.aborted) setError(failure);
    } finally {
      if (reading.current === abort) {
        reading.current = null;
        setLoading(false);
      }
    }
  }, []);
  const stop = useCallback(() => reading.current?.abort(), []);
  return { loading, error, read, stop };
}

/** Appends live events while the stretch reaches the end of the log. */
function useLiveEvents(
  agent_id: string,
  type: EventType | undefined,
  is_at_end: boolean,
  range: LogRange,
  setRange: Dispatch<SetStateAction<LogRange>>,
): void {
  const last = useRef(0);
  last.current = range.events.at(-1)?.seq ?? 0;
  useEffect(() => {
    if (!is_at_end) return;
    return streams().watchAgent(agent_id, { after: last.current }, (news) => {
      if (news.type !== 'events') return;
      const events = news.frames.map(({ data }) => data as unknown as EventRecord);
      const matching = type === undefined ? events : events.filter((event) => event.type === type);
      if (matching.length > 0) setRange((known) => withNewer(known, matching, false));
    });
  }, [agent_id, type, is_at_end, setRange]);
}
