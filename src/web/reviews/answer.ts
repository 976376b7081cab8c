/** Answering permission reviews. If somebody else answered first, the card shows that answer instead of an error. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Problem } from '../../core/problem.ts';
import { useKeyPerRequest } from '../api/act-key.ts';
import { cacheAnswer } from '../api/cache-answer.ts';
import { call } from '../api/client.ts';
import { keys } from '../api/keys.ts';
import type { ReviewRecord } from '../api/queries.ts';
import { readCurrentPrompt } from '../api/turns.ts';

export type Reply =
  /** `message`: the agent's next prompt, which counts only together with the answer. */
  | { type: 'option'; option_id: string; message?: string }
  /** Ends the agent's turn; the agent gets the outcome `cancelled`. */
  | { type: 'cancel_turn' };

interface ReviewTarget {
  review_id: string;
  agent_id: string;
}

export function useAnswer(target: ReviewTarget, onCounted: (reply: Reply) => void) {
  const give = useReply();
  return useMutation({
    mutationFn: (reply: Reply) => give(target, reply),
    // Also called if the page has been left by then.
    onSuccess: (counts, reply) => counts && onCounted(reply),
  });
}

/** Repeats of the same answer have the same idempotency key. Resolves to whether the answer counts. */
export function useReply(): (target: ReviewTarget, reply: Reply) => Promise<boolean> {
  const queries = useQueryClient();
  const keyOf = useKeyPerRequest();
  return async (target, reply) => {
    const cached = { one: keys.review(target.review_id), list: keys.reviews };
    const { review, counts } = await answered(target, reply, keyOf([target.review_id, reply]));
    cacheAnswer(queries, cached, review);
    return counts;
  };
}

async function answered(
  { review_id, agent_id }: ReviewTarget,
  reply: Reply,
  idempotency_key: string,
): Promise<{ review: ReviewRecord; counts: boolean }> {
  const params = { review_id };
  const counted = async (review: Promise<ReviewRecord>) => ({ review: await review, counts: true });
  try {
    if (reply.type === 'option') {
      const { type: _, ...body } = reply;
      return await counted(call('respondReview', { params, body, idempotency_key }));
    }
    // In this order: a review that is still pending belongs to the turn that ran before. Later, another turn may run.
    const prompt_id = await readVisiblePrompt(agent_id);
    const review = await call('getReview', { params });
    if (review.status !== 'pending') return { review, counts: false };
    if (prompt_id !== undefined && (await cancelsTurn(agent_id, prompt_id)))
      return await counted(call('getReview', { params }));
    const body = { outcome: 'cancelled' } as const;
    return await counted(call('respondReview', { params, body, idempotency_key }));
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'review_over') throw error;
    return { review: await call('getReview', { params }), counts: false };
  }
}

/** The prompt whose turn runs; null: none; undefined: the user may not see it. */
async function readVisiblePrompt(agent_id: string): Promise<string | null | undefined> {
  try {
    return await readCurrentPrompt(agent_id);
  } catch (error) {
    if (isRefused(error)) return undefined;
    throw error;
  }
}

/** False: the turn is over, or the user may not cancel it; then only the review can be cancelled. */
async function cancelsTurn(agent_id: string, prompt_id: string | null): Promise<boolean> {
  try {
    await call('cancelTurn', { params: { agent_id }, body: { prompt_id } });
    return true;
  } catch (error) {
    if (isRefused(error)) return false;
    throw error;
  }
}

function isRefused(error: unknown): boolean {
  return error instanceof Problem && ['conflict', 'forbidden', 'not_found'].includes(error.kind);
}
