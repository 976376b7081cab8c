/**
 * Keeps the list of waiting runs current. Frames of runs lack the names in that list, and a run can begin to wait when a step
 * stops waiting, without a frame of the run. So the list is read again.
 */
import type { QueryClient } from '@tanstack/react-query';
import type { Frame } from '../../client/client.ts';
import { readAfterFetch } from './after-fetch.ts';
import { keys } from './keys.ts';

const queryKey = keys.waiting_runs;

export function applyToWaitingRuns(queries: QueryClient, { event, data }: Frame): void {
  const record = data.record as Record<string, unknown> | undefined;
  if (!record) return;
  const query = queries.getQueryCache().find({ queryKey, exact: true });
  if (!query || !mayChange(queries, event, record)) return;
  readAfterFetch(queries, queryKey);
}

function mayChange(queries: QueryClient, event: string, record: Record<string, unknown>): boolean {
  if (event === 'run') {
    const listed = queries.getQueryData<{ run_id: string }[]>(queryKey) ?? [];
    return record.status === 'input_required' || listed.some(({ run_id }) => run_id === record.id);
  }
  const waiting = queries.getQueryData<{ run_id: string; step_key: string }[]>(keys.waiting_steps) ?? [];
  return (
    event === 'step' &&
    record.waiting_since === null &&
    waiting.some(({ run_id, step_key }) => run_id === record.run_id && step_key === record.step_key)
  );
}
