import type { Query, QueryClient } from '@tanstack/react-query';
import type { CacheKey } from '../feature.ts';

/**
 * Calls a function as soon as the result of the query's fetch in progress is in the cache: before any other event, so that it
 * cannot undo what arrived later. Never calls it if there is no fetch in progress, or if the fetch fails.
 */
export function afterFetch(query: Query | undefined, then: () => void): void {
  // The query waits for the same promise, and registered first.
  query?.promise?.then(then, () => {});
}

/** Fetches whose queries are read again after them. */
const followed = new WeakSet<Promise<unknown>>();

/** Reads a query again after its fetch in progress: once, however often this is called meanwhile. */
export function readOnceFetched(queries: QueryClient, query: Query): void {
  const { promise, queryKey } = query;
  if (!promise || followed.has(promise)) return;
  followed.add(promise);
  afterFetch(query, () => void queries.invalidateQueries({ queryKey, exact: true }));
}

/** Reads a query again: after its fetch in progress, if there is one, whose result may be older than what has changed. */
export function readAfterFetch(queries: QueryClient, queryKey: CacheKey): void {
  const query = queries.getQueryCache().find({ queryKey, exact: true });
  if (query?.state.fetchStatus === 'fetching') readOnceFetched(queries, query);
  else void queries.invalidateQueries({ queryKey, exact: true });
}
