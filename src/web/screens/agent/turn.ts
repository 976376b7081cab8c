/** The current turn of an agent, and its cancellation. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { call, errorMessage } from '../../api/client.ts';
import { keys } from '../../api/keys.ts';
import { putResponse } from '../../api/put-response.ts';
import type { AgentRecord } from '../../api/queries.ts';
import { awaitsAnswer } from '../../ui/agent-state.ts';
import { showToast } from '../../ui/toast.tsx';

export function hasOpenTurn(agent: AgentRecord): boolean {
  if (agent.protocol !== 'acp' || agent.status !== 'running') return false;
  return agent.activity === 'working' || agent.activity === 'quiet' || awaitsAnswer(agent);
}

/** After this time, the user may cancel again: the agent may not have confirmed, or a queued prompt may have begun the next turn. */
const CANCEL_AGAIN_MS = 5_000;

/** Cancels the turn without stopping the agent. It is cancelling until the agent confirms. */
export function useCancelTurn(agent: AgentRecord) {
  const queries = useQueryClient();
  const open = hasOpenTurn(agent);
  const cancel = useMutation({
    mutationFn: () => call('cancelTurn', { params: { agent_id: agent.id } }),
    onSuccess: (record) => putResponse(queries, { one: keys.agent(record.id) }, record),
    onError: (error) => showToast(agent.name, errorMessage(error)),
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
