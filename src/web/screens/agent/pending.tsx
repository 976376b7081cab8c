/** A request that waits for an unreachable node, with a button to withdraw it. */
import { useMutation } from '@tanstack/react-query';
import { Hourglass } from 'lucide-react';
import { call } from '../../api/client.ts';
import type { AgentRecord } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { ActionError } from '../../ui/states.tsx';

const verbs = { start: 'starts', stop: 'stops', restart: 'restarts' };

export function PendingRequest({ agent }: { agent: AgentRecord }) {
  const withdraw = useMutation({
    mutationFn: () => call('withdrawPending', { params: { agent_id: agent.id } }),
  });
  if (agent.pending === null) return null;
  return (
    <div className="flex flex-wrap items-center gap-2 bg-surface px-4 py-1">
      <p role="status" className="flex items-center gap-2">
        <Hourglass aria-hidden className="size-4 shrink-0" />
        Node {agent.node_id} is unreachable. The agent {verbs[agent.pending]} when the node is back.
      </p>
      <Button busy={withdraw.isPending} onClick={() => withdraw.mutate()}>
        Withdraw {agent.pending}
      </Button>
      <ActionError error={withdraw.error} />
    </div>
  );
}
