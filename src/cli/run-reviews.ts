/** What reviews of a run's agents wait for an answer. */
import { sleep } from '../base/async.ts';
import { limits } from '../base/limits.ts';
import type { Api } from './api.ts';
import type { ReviewRecord } from './review-lines.ts';

/** Looks every now and then until the signal aborts, and tells of them when others wait than before. */
export async function lookForReviews(
  api: Api,
  run_id: string,
  signal: AbortSignal,
  tell: (waiting: readonly ReviewRecord[]) => void,
): Promise<void> {
  let before = '';
  while (!signal.aborted) {
    // Whatever is wrong with the plane, whoever follows the run hears of it there.
    const waiting = await reviewsOf(api, run_id).catch(() => null);
    const ids = waiting?.map(({ id }) => id).join(' ') ?? before;
    if (waiting && ids !== before && !signal.aborted) tell(waiting);
    before = ids;
    await sleep(limits.cli_review_look_ms, signal);
  }
}

/** Oldest first. */
async function reviewsOf(api: Api, run_id: string): Promise<ReviewRecord[]> {
  const pending = await api.all('listReviews', { query: { status: 'pending' } });
  return pending.filter((review) => review.run_id === run_id).reverse();
}
