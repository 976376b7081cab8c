/** Answering elicitations. If somebody else answered first, the card shows that answer instead of an error. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Problem } from '../../core/problem.ts';
import { useKeyPerRequest } from '../api/act-key.ts';
import { cacheAnswer } from '../api/cache-answer.ts';
import { call } from '../api/client.ts';
import { keys } from '../api/keys.ts';

export type Reply =
  | { readonly action: 'accept'; readonly content?: Record<string, unknown> }
  | { readonly action: 'decline' | 'cancel' };

export function useReply(elicitation_id: string, onAnswered: () => void) {
  const queries = useQueryClient();
  const keyOf = useKeyPerRequest();
  return useMutation({
    mutationFn: async (body: Reply) => {
      const idempotency_key = keyOf(body);
      const params = { elicitation_id };
      const cached = { one: keys.elicitation(elicitation_id), list: keys.elicitations };
      try {
        cacheAnswer(queries, cached, await call('respondElicitation', { params, body, idempotency_key }));
      } catch (error) {
        if (!(error instanceof Problem) || error.code !== 'elicitation_over') throw error;
        cacheAnswer(queries, cached, await call('getElicitation', { params }));
      }
    },
    onSuccess: onAnswered,
  });
}
