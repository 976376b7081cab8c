/** The prompt that a user writes: a draft until it is sent, and again if sending fails. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { Problem } from '../../../../core/problem.ts';
import { call, newKey } from '../../../api/client.ts';
import { keys } from '../../../api/keys.ts';
import { useDraft } from '../../../ui/drafts.ts';

interface Prompt {
  text: string;
  /** The idempotency key. */
  key: string;
}

interface Sent extends Prompt {
  /** The current turn is cancelled first. */
  now: boolean;
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
    mutationFn: async ({ text, key, now }: Sent) => {
      // In this order: the other one could cancel the turn of this prompt.
      if (now) await cancelTurn(agent_id);
      await call('promptAgent', { params: { agent_id }, body: { text }, idempotency_key: key });
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
  const send = ({ now = false } = {}) => {
    const prompt = failed.current?.text === text ? failed.current : { text, key: newKey() };
    setInFlight(JSON.stringify(prompt));
    setText('');
    sending.mutate({ ...prompt, now });
  };
  return { text, setText, send, is_sending: sending.isPending, error: sending.error };
}

async function cancelTurn(agent_id: string): Promise<void> {
  try {
    await call('cancelTurn', { params: { agent_id } });
  } catch (error) {
    // It has ended meanwhile.
    if (!(error instanceof Problem && error.code === 'no_turn')) throw error;
  }
}
