/** The prompt that a user writes: a draft until it is sent, and again if sending fails. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { call, errorMessage, newKey } from '../../../api/client.ts';
import { keys } from '../../../api/keys.ts';
import { promptsQuery } from '../../../api/queries.ts';
import { cancelTurnOf, currentPrompt, isBehindTurn } from '../../../api/turns.ts';
import { useDraft } from '../../../ui/drafts.ts';
import { showToast } from '../../../ui/toast.tsx';
import { type Prompt, parsePrompt, withoutPrompt, withPrompt } from './sent-prompt.ts';

interface Sent extends Prompt {
  /** Whether the turn that the user sees is cancelled, so that the prompt is sent at once. */
  is_urgent: boolean;
}

export function usePrompt(agent_id: string, onSent: () => void) {
  const queries = useQueryClient();
  const [text, setText, last] = useDraft(`prompt.${agent_id}`);
  // A prompt leaves the field when it is sent. If sending fails, it returns to the field, even after a reload.
  const [in_flight, setInFlight] = useDraft(`prompt.${agent_id}.on-way`);
  const restore = ({ text, key }: Prompt) => {
    setInFlight('');
    setText(withPrompt(text));
    // Sending it again, unchanged, reuses its key.
    last.of(text, () => key);
  };
  /** False: another page, or this one after it was left, has restored it meanwhile. */
  const arrive = ({ key }: Prompt): boolean => {
    let arrived = false;
    setInFlight((now) => {
      arrived = parsePrompt(now)?.key === key;
      return arrived ? '' : now;
    });
    return arrived;
  };
  const sending = useMutation({
    mutationFn: async ({ text, key, is_urgent }: Sent) => {
      // First, because the prompt may begin the next turn.
      const turn = is_urgent ? currentPrompt(await queries.ensureQueryData(promptsQuery(agent_id))) : null;
      const body = { text };
      const { prompt_id } = await call('promptAgent', { params: { agent_id }, body, idempotency_key: key });
      // After the prompt: if this one repeats a request whose response was lost, its own turn may be the current one.
      if (is_urgent && turn !== prompt_id) await cancelBefore(agent_id, prompt_id, turn);
    },
    onSuccess: (_, prompt) => {
      if (!arrive(prompt)) setText(withoutPrompt(prompt.text));
      void queries.invalidateQueries({ queryKey: keys.prompts(agent_id) });
      onSent();
    },
    onError: (_, prompt) => {
      if (arrive(prompt)) restore(prompt);
    },
  });
  const left = useRef(in_flight);
  useEffect(() => {
    const prompt = parsePrompt(left.current);
    left.current = '';
    if (prompt) restore(prompt);
  });
  /** `now`: cancels the turn that the user sees. */
  const send = ({ now = false } = {}) => {
    const prompt: Prompt = { text, key: last.of(text, newKey) };
    setInFlight(JSON.stringify(prompt));
    setText('');
    sending.mutate({ ...prompt, is_urgent: now });
  };
  return { text, setText, send, is_sending: sending.isPending, error: sending.error };
}

/** Cancels a turn before a queued prompt. If that fails, the user is told, because the prompt waits. */
async function cancelBefore(agent_id: string, prompt_id: string, turn: string | null): Promise<void> {
  try {
    if (await cancelTurnOf(agent_id, turn)) return;
    if (isBehindTurn(await call('listPrompts', { params: { agent_id } }), prompt_id))
      showToast('The prompt is queued', 'Another turn had already begun.');
  } catch (error) {
    showToast('The turn was not cancelled', errorMessage(error));
  }
}
