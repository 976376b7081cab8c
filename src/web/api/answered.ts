/** Responses to answers, put into what screens have read. */
import type { QueryClient } from '@tanstack/react-query';

interface Answerable {
  id: string;
  status: string;
}

/** `one` and `list` are the query keys. The fleet stream can be ahead of the response: what it brought stays. */
export function keepAnswered<T extends Answerable>(
  queries: QueryClient,
  { one, list }: { one: string; list: string },
  record: T,
): void {
  const newest = (known: T) => (known.status === 'pending' ? record : known);
  queries.setQueryData<T>([one, record.id], (known) => (known ? newest(known) : record));
  queries.setQueryData<T[]>([list], (rows) => rows?.map((row) => (row.id === record.id ? newest(row) : row)));
}
