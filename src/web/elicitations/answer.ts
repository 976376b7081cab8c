/** Answering elicitations. A later answer learns who was first; that is a state of the card, not an error. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef } from 'react';
import { Problem } from '../../core/problem.ts';
import { keepAnswered } from '../api/answered.ts';
import { call, newKey } from '../api/client.ts';

const KEYS = { one: 'elicitation', list: 'elicitations' };

export type Reply =
  | { readonly action: 'accept'; readonly content?: Record<string, unknown> }
  | { readonly action: 'decline' | 'cancel' };

export function useReply(elicitation_id: string) {
  const queries = useQueryClient();
  const keys = useRef(new Map<string, string>());
  return useMutation({
    mutationFn: async (body: Reply) => {
      // A retry of the same answer has the same key.
      const act = JSON.stringify(body);
      const idempotency_key = keys.current.get(act) ?? newKey();
      keys.current.set(act, idempotency_key);
      const params = { elicitation_id };
      try {
        keepAnswered(queries, KEYS, await call('respondElicitation', { params, body, idempotency_key }));
      } catch (error) {
        if (!(error instanceof Problem) || error.code !== 'elicitation_over') throw error;
        keepAnswered(queries, KEYS, await call('getElicitation', { params }));
      }
    },
  });
}
