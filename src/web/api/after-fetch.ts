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

/** Reads a query again: after its fetch in progress, if there is one, whose result may be older than what has changed. */
export function readAfterFetch(queries: QueryClient, queryKey: CacheKey): void {
  const read = () => void queries.invalidateQueries({ queryKey, exact: true });
  const query = queries.getQueryCache().find({ queryKey, exact: true });
  if (query?.state.fetchStatus === 'fetching') afterFetch(query, read);
  else read();
}
