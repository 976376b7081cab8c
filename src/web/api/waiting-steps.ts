/**
 * Keeps the list of waiting steps current, and keeps the records with which their waits ended. Frames of steps lack the names in
 * that list, so new waits are read again.
 */
import type { QueryClient } from '@tanstack/react-query';
import type { Frame } from '../../client/client.ts';
import { afterFetch } from './after-fetch.ts';
import { keys, type WaitingStepKey } from './keys.ts';

export function applyToWaitingSteps(queries: QueryClient, { event, data }: Frame): void {
  const record = data.record as Record<string, unknown> | undefined;
  if (!record || (event !== 'step' && event !== 'run')) return;
  apply(queries, event, record);
  const query = queries.getQueryCache().find({ queryKey: keys.waiting_steps, exact: true });
  // The result of a fetch in progress may be older than the frame.
  if (query?.state.fetchStatus === 'fetching') afterFetch(query, () => apply(queries, event, record));
}

function apply(queries: QueryClient, event: string, record: Record<string, unknown>): void {
  const listed = queries.getQueryData<WaitingStepKey[]>(keys.waiting_steps) ?? [];
  if (!isAffected(listed, event, record)) return;
  if (event === 'step') {
    const settled = listed.find((step) => isSame(step, record));
    if (settled) queries.setQueryData(keys.settled_step(settled), record);
    queries.setQueryData<WaitingStepKey[]>(keys.waiting_steps, (steps) =>
      steps?.filter((step) => !isSame(step, record)),
    );
  }
  void queries.invalidateQueries({ queryKey: keys.waiting_steps });
}

/** A run that starts again may remove steps, without frames about them. */
function isAffected(
  listed: readonly WaitingStepKey[],
  event: string,
  record: Record<string, unknown>,
): boolean {
  if (event === 'run') return listed.some(({ run_id }) => run_id === record.id);
  const known = listed.find((step) => isSame(step, record));
  return (known?.waiting_since ?? null) !== record.waiting_since;
}

function isSame(step: WaitingStepKey, record: Record<string, unknown>): boolean {
  return step.run_id === record.run_id && step.step_key === record.step_key;
}
