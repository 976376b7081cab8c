/** Requests that may come too late, because somebody else has changed what they are about. */
import type { QueryClient, QueryKey } from '@tanstack/react-query';
import { Problem } from '../../core/problem.ts';

export function isConflict(error: unknown): error is Problem {
  return error instanceof Problem && error.kind === 'conflict';
}

/** If the request conflicts with what others have done, reads these queries again before it rejects. */
export async function readAgainOnConflict<T>(
  queries: QueryClient,
  changed: readonly QueryKey[],
  request: Promise<T>,
): Promise<T> {
  try {
    return await request;
  } catch (error) {
    if (isConflict(error))
      await Promise.all(changed.map((queryKey) => queries.invalidateQueries({ queryKey })));
    throw error;
  }
}
