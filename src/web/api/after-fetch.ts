import type { Query } from '@tanstack/react-query';

/** Calls a function once the result of the query's latest fetch is in the cache; never if the fetch fails. */
export function afterFetch(query: Query | undefined, then: () => void): void {
  query?.promise?.then(
    () => setTimeout(then),
    () => {},
  );
}
