/** Lists of runs that are read in pages. */
import type { useInfiniteQuery } from '@tanstack/react-query';

type PagedRead = Pick<
  ReturnType<typeof useInfiniteQuery>,
  | 'hasNextPage'
  | 'isFetchingNextPage'
  | 'isFetchNextPageError'
  | 'fetchNextPage'
  | 'error'
  | 'isPending'
  | 'dataUpdatedAt'
  | 'refetch'
>;

/** Reads older runs. */
export interface Older {
  busy: boolean;
  error: unknown;
  read: () => void;
}

/** Null if all runs were read. */
export function olderOf(reads: readonly PagedRead[]): Older | null {
  const more = reads.filter(({ hasNextPage }) => hasNextPage);
  if (more.length === 0) return null;
  return {
    busy: more.some(({ isFetchingNextPage }) => isFetchingNextPage),
    error: more.find(({ isFetchNextPageError }) => isFetchNextPageError)?.error ?? null,
    read: () => {
      for (const { fetchNextPage } of more) void fetchNextPage({ cancelRefetch: false });
    },
  };
}

/** The state of what was read. A failure to read older runs is not part of it: see `Older`. */
export function stateOf(reads: readonly PagedRead[]) {
  const failed = reads.find(({ error, isFetchNextPageError }) => error && !isFetchNextPageError);
  return {
    error: failed?.error ?? null,
    isPending: reads.some(({ isPending }) => isPending),
    dataUpdatedAt: Math.min(...reads.map(({ dataUpdatedAt }) => dataUpdatedAt)),
    refetch: () => Promise.all(reads.map(({ refetch }) => refetch())),
  };
}
