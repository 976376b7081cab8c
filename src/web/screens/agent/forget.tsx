/** Removing the record of an agent whose machine is gone for good, with word of what stays there. */
import { useMutation } from '@tanstack/react-query';
import { call } from '../../api/client.ts';
import type { AgentRecord } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Refused } from '../../ui/states.tsx';
import { tell } from '../../ui/toast.tsx';
import { LeftBehindList } from '../agents/left-behind.tsx';
import { useLeave } from './leave.ts';

export function ForgetAgent({ agent, onClose }: { agent: AgentRecord; onClose: () => void }) {
  const leave = useLeave(agent);
  const forget = useMutation({
    mutationFn: () => call('deleteAgent', { params: { agent_id: agent.id }, query: { forget: true } }),
    onSuccess: () => {
      tell(`${agent.name} is forgotten`, 'The audit log lists what stays on its machine.');
      leave();
    },
  });
  return (
    <Dialog open onClose={onClose} title={`Forget ${agent.name}?`}>
      <div className="flex flex-col gap-3">
        <p>
          Use this only if the machine of node {agent.node_id} is gone for good. The agent’s record, its log
          and its conversation are deleted without the node.
        </p>
        <div>
          <p className="mb-1">This stays on that machine:</p>
          <LeftBehindList agents={[agent]} />
        </div>
        <p>If the node comes back, its sessions of this agent are stopped, and the audit log says so.</p>
        <Refused error={forget.error} />
        <div className="flex justify-end gap-2">
          <Button look="quiet" onClick={onClose}>
            Keep it
          </Button>
          <Button look="danger" busy={forget.isPending} onClick={() => forget.mutate()}>
            {forget.isPending ? 'Forgetting…' : 'Forget'}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
