/** The prompt that a user writes: a draft until it is sent, and again if sending fails. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { call, errorMessage, newKey } from '../../../api/client.ts';
import { keys } from '../../../api/keys.ts';
import { promptsQuery } from '../../../api/queries.ts';
import { cancelTurnOf, currentPrompt } from '../../../api/turns.ts';
import { useDraft } from '../../../ui/drafts.ts';
import { showToast } from '../../../ui/toast.tsx';

interface Prompt {
  text: string;
  /** The idempotency key. */
  key: string;
}

interface Sent extends Prompt {
  /** The prompt whose turn is cancelled (null: work without a prompt); undefined: none. */
  replaces: string | null | undefined;
}

function parsePrompt(stored: string): Prompt | null {
  try {
    return stored === '' ? null : (JSON.parse(stored) as Prompt);
  } catch {
    return null;
  }
}

export function usePrompt(agent_id: string, onSent: () => void) {
  const queries = useQueryClient();
  const [text, setText] = useDraft(`prompt.${agent_id}`);
  // A prompt leaves the field when it is sent. If sending fails, it returns to the field, even after a reload.
  const [in_flight, setInFlight] = useDraft(`prompt.${agent_id}.on-way`);
  // Sending the same text again after a failure reuses its key.
  const failed = useRef<Prompt | null>(null);
  const restore = (prompt: Prompt) => {
    failed.current = prompt;
    setInFlight('');
    setText((now) => [prompt.text, now].filter(Boolean).join('\n'));
  };
  const sending = useMutation({
    mutationFn: async ({ text, key, replaces }: Sent) => {
      const { prompt_id } = await call('promptAgent', {
        params: { agent_id },
        body: { text },
        idempotency_key: key,
      });
      // After the prompt: if this one repeats a request whose response was lost, its own turn may be the current one.
      if (replaces === undefined || replaces === prompt_id) return;
      // The prompt is queued anyway.
      await cancelTurnOf(agent_id, replaces).catch((error) =>
        showToast('The turn was not cancelled', errorMessage(error)),
      );
    },
    onSuccess: () => {
      failed.current = null;
      setInFlight('');
      void queries.invalidateQueries({ queryKey: keys.prompts(agent_id) });
      onSent();
    },
    onError: (_, prompt) => restore(prompt),
  });
  const left = useRef(in_flight);
  useEffect(() => {
    const prompt = parsePrompt(left.current);
    left.current = '';
    if (prompt) restore(prompt);
  });
  /** `now`: cancels the turn that the user sees. */
  const send = ({ now = false } = {}) => {
    const turn = currentPrompt(queries.getQueryData(promptsQuery(agent_id).queryKey) ?? []);
    const prompt = failed.current?.text === text ? failed.current : { text, key: newKey() };
    setInFlight(JSON.stringify(prompt));
    setText('');
    sending.mutate({ ...prompt, replaces: now ? turn : undefined });
  };
  return { text, setText, send, is_sending: sending.isPending, error: sending.error };
}
