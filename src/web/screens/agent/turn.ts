/** The current turn of an agent, and its cancellation. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { Problem } from '../../../core/problem.ts';
import { call, errorMessage } from '../../api/client.ts';
import { keys } from '../../api/keys.ts';
import { putResponse } from '../../api/put-response.ts';
import type { AgentRecord } from '../../api/queries.ts';
import { readCurrentPrompt } from '../../api/turns.ts';
import { awaitsAnswer } from '../../ui/agent-state.ts';
import { showToast } from '../../ui/toast.tsx';

export function hasOpenTurn(agent: AgentRecord): boolean {
  if (agent.protocol !== 'acp' || agent.status !== 'running') return false;
  return agent.activity === 'working' || agent.activity === 'quiet' || awaitsAnswer(agent);
}

/** After this time, the user may cancel again: the agent may not have confirmed, or a queued prompt may have begun the next turn. */
const CANCEL_AGAIN_MS = 5_000;

/**
 * Cancels the turn without stopping the agent. It is cancelling until the agent confirms. `prompt_id`: as for `cancelTurnOf`;
 * undefined: the turn that runs when the user presses the button, so that a delayed request does not cancel a later one.
 */
export function useCancelTurn(agent: AgentRecord, prompt_id?: string | null) {
  const queries = useQueryClient();
  const open = hasOpenTurn(agent);
  const cancel = useMutation({
    mutationFn: async () => {
      const turn = prompt_id === undefined ? await readCurrentPrompt(agent.id) : prompt_id;
      return call('cancelTurn', { params: { agent_id: agent.id }, body: { prompt_id: turn } });
    },
    onSuccess: (record) => putResponse(queries, { one: keys.agent(record.id) }, record),
    onError: (error) => {
      const is_over = error instanceof Problem && error.code === 'no_turn';
      if (is_over) void queries.invalidateQueries({ queryKey: keys.prompts(agent.id) });
      else showToast(agent.name, errorMessage(error));
    },
  });
  const { mutate, reset, isPending, isSuccess } = cancel;
  useEffect(() => {
    if (!open) reset();
    if (!isSuccess) return;
    const again = setTimeout(reset, CANCEL_AGAIN_MS);
    return () => clearTimeout(again);
  }, [open, isSuccess, reset]);
  return { open, cancelling: isPending || isSuccess, cancel: mutate as () => void };
}
