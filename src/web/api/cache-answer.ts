/** Puts the response to an answer into the query cache. */
import type { QueryClient } from '@tanstack/react-query';

interface Answerable {
  id: string;
  status: string;
}

/** The fleet feed can be ahead of the response: a record that is no longer pending is kept. */
export function cacheAnswer<T extends Answerable>(
  queries: QueryClient,
  { one, list }: { one: readonly unknown[]; list: readonly unknown[] },
  record: T,
): void {
  const newest = (known: T) => (known.status === 'pending' ? record : known);
  queries.setQueryData<T>(one, (known) => (known ? newest(known) : record));
  queries.setQueryData<T[]>(list, (rows) => rows?.map((row) => (row.id === record.id ? newest(row) : row)));
}
