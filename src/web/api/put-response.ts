/** Puts the record in the response to a command into the query cache. */
import type { QueryClient } from '@tanstack/react-query';
import type { CacheKey } from '../feature.ts';
import { compareAges } from './record-age.ts';

/** The fleet feed can be ahead of the response: a record that it brought stays. `list`: contains the record, or not yet. */
export function putResponse<T extends { id: string }>(
  queries: QueryClient,
  { one, list }: { one: CacheKey; list?: CacheKey },
  record: T,
): void {
  const newest = (known: T | undefined) => {
    const age = known && compareAges(record, known);
    return age === 'older' || age === 'same' ? known! : record;
  };
  queries.setQueryData<T>(one, newest);
  if (!list) return;
  queries.setQueryData<T[]>(list, (rows) => rows?.map((row) => (row.id === record.id ? newest(row) : row)));
}
