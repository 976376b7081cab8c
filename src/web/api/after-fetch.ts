import type { Query } from '@tanstack/react-query';

/**
 * Calls a function as soon as the result of the query's fetch in progress is in the cache: before any other event, so that it
 * cannot undo what arrived later. Never calls it if there is no fetch in progress, or if the fetch fails.
 */
export function afterFetch(query: Query | undefined, then: () => void): void {
  // The query waits for the same promise, and registered first.
  query?.promise?.then(then, () => {});
}
