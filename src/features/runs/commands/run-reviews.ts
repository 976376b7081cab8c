/** Watches for pending reviews of a run's agents. */
import { sleep } from '../../../base/async.ts';
import type { Api } from '../../../cli/api.ts';
import type { ReviewRecord } from '../../reviews/commands/review-lines.ts';
import { limits } from '../limits.ts';

/** Polls until the signal aborts, and calls `onChange` when the pending reviews change. */
export async function watchReviews(
  api: Api,
  run_id: string,
  signal: AbortSignal,
  onChange: (waiting: readonly ReviewRecord[]) => void,
): Promise<void> {
  let before = '';
  while (!signal.aborted) {
    // Errors of the plane are reported by the stream of the run.
    const waiting = await listRunReviews(api, run_id).catch(() => null);
    const ids = waiting?.map(({ id }) => id).join(' ') ?? before;
    if (waiting && ids !== before && !signal.aborted) onChange(waiting);
    before = ids;
    await sleep(limits.cli_review_poll_ms, signal);
  }
}

/** Oldest first. */
async function listRunReviews(api: Api, run_id: string): Promise<ReviewRecord[]> {
  const pending = await api.all('listReviews', { query: { status: 'pending' } });
  return pending.filter((review) => review.run_id === run_id).reverse();
}
