/** Removing the record of an agent whose machine is gone for good, with word of what stays there. */
import { useMutation } from '@tanstack/react-query';
import { call } from '../../api/client.ts';
import type { AgentRecord } from '../../api/queries.ts';
import { ForgetDialog } from '../../ui/forget.tsx';
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
    <ForgetDialog
      name={agent.name}
      about={`Use this only if the machine of node ${agent.node_id} is gone for good. The agent’s record, its log and its conversation are deleted without the node.`}
      left={<LeftBehindList agents={[agent]} />}
      returning="If the node comes back, its sessions of this agent are stopped, and the audit log says so."
      act={forget}
      onClose={onClose}
    />
  );
}
