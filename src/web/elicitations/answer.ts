/** Answering elicitations. If somebody else answered first, the card shows that answer instead of an error. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef } from 'react';
import { Problem } from '../../core/problem.ts';
import { cacheAnswer } from '../api/cache-answer.ts';
import { call, newKey } from '../api/client.ts';
import { keys as queryKeys } from '../api/keys.ts';

export type Reply =
  | { readonly action: 'accept'; readonly content?: Record<string, unknown> }
  | { readonly action: 'decline' | 'cancel' };

export function useReply(elicitation_id: string, onAnswered: () => void) {
  const queries = useQueryClient();
  const keys = useRef(new Map<string, string>());
  return useMutation({
    mutationFn: async (body: Reply) => {
      // A retry of the same answer has the same idempotency key.
      const act = JSON.stringify(body);
      const idempotency_key = keys.current.get(act) ?? newKey();
      keys.current.set(act, idempotency_key);
      const params = { elicitation_id };
      const cached = { one: queryKeys.elicitation(elicitation_id), list: queryKeys.elicitations };
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
