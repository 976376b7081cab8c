/**
 * The audit log as a list that grows at both ends: older records when the user scrolls, new ones by polling every few
 * seconds, because they are not part of any stream.
 */
import { type InfiniteData, useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { useMemo } from 'react';
import { call } from '../../api/client.ts';
import { keys } from '../../api/keys.ts';
import type { AuditRecord } from '../../api/queries.ts';
import {
  type AuditPage,
  type AuditSearch,
  grows,
  isPeriod,
  newerThan,
  periodStart,
  toQuery,
  withNewer,
} from './records.ts';
import { agentNames } from './sentences.ts';

const PAGE = 100;
const EVERY_MS = 3000;

export function useAudit(search: AuditSearch) {
  const queries = useQueryClient();
  const key = keys.audit(search);
  const read = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => readPage(search, pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next_cursor,
  });
  const is_growing = grows(search, Date.now());
  const newest = useQuery({
    queryKey: keys.audit_newest(search),
    enabled: is_growing && read.isSuccess,
    // Until the end of the range, which may come while the page is open.
    refetchInterval: () => grows(search, Date.now()) && EVERY_MS,
    staleTime: 0,
    gcTime: 0,
    queryFn: async ({ signal }) => {
      const { items } = await readPage(search, undefined, signal);
      const known = queries.getQueryData<InfiniteData<AuditPage, string | undefined>>(key);
      const start = isPeriod(search.last) ? periodStart(search.last, Date.now()) : null;
      if (!known) return start;
      const newer = newerThan(known.pages, items);
      // More records arrived than one page holds: start again at the top.
      if (newer === null) await queries.resetQueries({ queryKey: key });
      else if (newer.length > 0)
        queries.setQueryData(key, { ...known, pages: withNewer(known.pages, newer) });
      return start;
    },
  });
  // A period moves on with the time, so its oldest records leave the list.
  const start = newest.data ?? Number.NEGATIVE_INFINITY;
  const records = useMemo(
    () =>
      read.data?.pages.flatMap(({ items }) =>
        items.filter(({ timestamp }) => Date.parse(timestamp) >= start),
      ),
    [read.data, start],
  );
  return { read, records, live: is_growing && !newest.isError };
}

async function readPage(
  search: AuditSearch,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<AuditPage> {
  const query = { ...toQuery(search, Date.now()), limit: PAGE, ...(cursor !== undefined && { cursor }) };
  const answer = await call('listAudit', { query, signal });
  return answer as { items: AuditRecord[]; next_cursor?: string };
}

/** The name of an agent that was deleted, from the record of its deletion or creation; undefined until it is known. */
export function useDeletedAgent(agent_id: string | null): string | undefined {
  const { data } = useQuery({
    queryKey: keys.audit_agent(agent_id),
    enabled: agent_id !== null,
    queryFn: async ({ signal }) => {
      for (const event of ['agent_deleted', 'agent_created'] as const) {
        const query = { agent_id: agent_id!, event, limit: 1 };
        const { items } = (await call('listAudit', { query, signal })) as AuditPage;
        const name = agentNames(items).get(agent_id!);
        if (name !== undefined) return name;
      }
      return null;
    },
  });
  return data ?? undefined;
}
