/** A stretch of an agent's log: read in pages where somebody is, and followed live where it reaches the end. */
import { useCallback, useEffect, useRef, useState } from 'react';
import type { EventRecord, EventType } from '../../../../core/event.ts';
import { call } from '../../../api/client.ts';
import { streams } from '../../../live/streams.ts';
import { nothing, type Stretch, withNewer, withOlder } from './stretch.ts';

const PAGE = 200;

export interface Events {
  stretch: Stretch;
  loading: boolean;
  error: unknown;
  readOlder: () => void;
  readNewer: () => void;
  /** Leaves what is shown for another place: around an event, or at the end. */
  goTo: (seq: number | null) => void;
}

interface Place {
  /** An event in the middle of what is shown; null: the end. */
  at: number | null;
  /** Going there once more is another time. */
  times: number;
}

export function useEvents(agent_id: string, type: EventType | undefined, first_at: number | null): Events {
  const [place, setPlace] = useState<Place>({ at: first_at, times: 0 });
  const [stretch, setStretch] = useState(nothing);
  const [loading, setLoading] = useState(true);
  const [error, setError] = useState<unknown>(null);
  const reading = useRef<AbortController>(null);
  const { at } = place;

  const page = useCallback(
    async (query: { before: number } | { after: number }, signal: AbortSignal) => {
      const filter = type === undefined ? {} : { type: type as unknown as EventType[] };
      const answer = await call('getLog', {
        params: { agent_id },
        query: { ...query, ...filter, limit: PAGE },
        signal,
      });
      const { items } = answer as { items: EventRecord[] };
      return { items, whole: items.length < PAGE };
    },
    [agent_id, type],
  );

  /** One reading at a time; what comes after somebody went elsewhere is dropped. */
  const read = useCallback(async (work: (signal: AbortSignal) => Promise<void>) => {
    const stop = new AbortController();
    reading.current?.abort();
    reading.current = stop;
    setLoading(true);
    setError(null);
    try {
      await work(stop.signal);
    } catch (failure) {
      if (!stop.signal.aborted) setError(failure);
    } finally {
      if (reading.current === stop) {
        reading.current = null;
        setLoading(false);
      }
    }
  }, []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `place` as a whole, also where it is the same event once more
  useEffect(() => {
    setStretch(nothing);
    void read(async (signal) => {
      const before = await page({ before: at === null ? Number.MAX_SAFE_INTEGER : at + 1 }, signal);
      const after = at === null ? { items: [], whole: true } : await page({ after: at }, signal);
      if (signal.aborted) return;
      const older = withOlder(nothing, before.items, !before.whole);
      setStretch(withNewer(older, after.items, !after.whole));
    });
    return () => reading.current?.abort();
  }, [place, page, read]);

  const is_at_end = !loading && !stretch.newer && error === null;
  const last = useRef(0);
  last.current = stretch.events.at(-1)?.seq ?? 0;
  useEffect(() => {
    if (!is_at_end) return;
    return streams().watchAgent(agent_id, { after: last.current }, (news) => {
      if (news.type !== 'events') return;
      const events = news.frames.map(({ data }) => data as unknown as EventRecord);
      const wanted = type === undefined ? events : events.filter((event) => event.type === type);
      if (wanted.length > 0) setStretch((known) => withNewer(known, wanted, false));
    });
  }, [agent_id, type, is_at_end]);

  const readOlder = () => {
    const [first] = stretch.events;
    if (loading || !stretch.older || !first) return;
    void read(async (signal) => {
      const { items, whole } = await page({ before: first.seq }, signal);
      if (!signal.aborted) setStretch((known) => withOlder(known, items, !whole));
    });
  };
  const readNewer = () => {
    const newest = stretch.events.at(-1);
    if (loading || !stretch.newer || !newest) return;
    void read(async (signal) => {
      const { items, whole } = await page({ after: newest.seq }, signal);
      if (!signal.aborted) setStretch((known) => withNewer(known, items, !whole));
    });
  };
  const goTo = useCallback(
    (seq: number | null) => setPlace(({ times }) => ({ at: seq, times: times + 1 })),
    [],
  );
  return { stretch, loading, error, readOlder, readNewer, goTo };
}
