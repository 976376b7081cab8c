/**
 * Which agents have events that the user has not seen. The service keeps the marks, so all devices of a user share them; they are
 * read again when the page gets the focus.
 */
import { type QueryClient, useQuery } from '@tanstack/react-query';
import { useEffect, useMemo } from 'react';
import { afterFetch } from './after-fetch.ts';
import { call } from './client.ts';
import { keys } from './keys.ts';
import { type AgentRecord, queries, type Seen, seenQuery } from './queries.ts';

/** The ids of those of the agents that have unread events; none until the marks are known. */
export function useUnread(agents: readonly AgentRecord[]): ReadonlySet<string> {
  const { data: seen } = useQuery(seenQuery);
  return useMemo(
    () => new Set(seen ? agents.filter(isUnread(seen)).map(({ id }) => id) : []),
    [agents, seen],
  );
}

function isUnread(seen: Seen) {
  return ({ id, last_seq }: Pick<AgentRecord, 'id' | 'last_seq'>) => last_seq > (seen.get(id) ?? 0);
}

/** Marks the events up to `last_seq` as seen while the end of the log is in view and the page is visible. */
export function useMarkSeen(agent_id: string, last_seq: number, at_end: boolean): void {
  useEffect(() => {
    if (!at_end || last_seq === 0) return;
    const mark = () => {
      if (document.visibilityState === 'visible') seen_marks.mark(agent_id, last_seq);
    };
    mark();
    document.addEventListener('visibilitychange', mark);
    return () => document.removeEventListener('visibilitychange', mark);
  }, [agent_id, last_seq, at_end]);
}

type Send = (agent_id: string, seq: number) => Promise<unknown>;

/** Sends marks, at most one per agent in this time. */
const INTERVAL_MS = 2000;

/** The newest mark that is wanted is always sent in the end, also after its screen is closed. */
export class SeenMarks {
  readonly #queries: QueryClient;
  readonly #send: Send;
  /** The mark to send when the agent's time is over; null: none. Absent: it can be sent at once. */
  readonly #next = new Map<string, number | null>();

  constructor(query_client: QueryClient, send: Send) {
    this.#queries = query_client;
    this.#send = send;
  }

  mark(agent_id: string, seq: number): void {
    if (seq <= (this.#queries.getQueryData<Seen>(keys.seen)?.get(agent_id) ?? 0)) return;
    const next = this.#next.get(agent_id);
    if (next === undefined) this.#give(agent_id, seq);
    else this.#next.set(agent_id, Math.max(next ?? 0, seq));
  }

  #give(agent_id: string, seq: number): void {
    this.#next.set(agent_id, null);
    setTimeout(() => {
      const next = this.#next.get(agent_id) ?? null;
      this.#next.delete(agent_id);
      if (next !== null) this.mark(agent_id, next);
    }, INTERVAL_MS);
    const raise = () =>
      this.#queries.setQueryData<Seen>(
        keys.seen,
        (seen) => seen && new Map(seen).set(agent_id, Math.max(seq, seen.get(agent_id) ?? 0)),
      );
    // The result of a fetch in progress may be older.
    afterFetch(this.#queries.getQueryCache().find({ queryKey: keys.seen, exact: true }), raise);
    raise();
    // A mark that gets lost is sent again with the next event, or shows as unread on the next visit.
    this.#send(agent_id, seq).catch(() => {});
  }
}

const seen_marks = new SeenMarks(queries, (agent_id, seq) =>
  call('markSeen', { params: { agent_id }, body: { seq } }),
);
