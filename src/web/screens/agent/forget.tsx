/** The dialog that deletes the record of an agent whose machine is gone, and lists what stays on it. */
import { useMutation } from '@tanstack/react-query';
import { call } from '../../api/client.ts';
import type { AgentRecord } from '../../api/queries.ts';
import { ForgetDialog } from '../../ui/forget.tsx';
import { showToast } from '../../ui/toast.tsx';
import { LeftBehindList } from '../agents/left-behind.tsx';
import { useLeave } from './leave.ts';

export function ForgetAgent({ agent, onClose }: { agent: AgentRecord; onClose: () => void }) {
  const leave = useLeave(agent);
  const forget = useMutation({
    mutationFn: () => call('deleteAgent', { params: { agent_id: agent.id }, query: { forget: true } }),
    onSuccess: () => {
      showToast(`Forgot ${agent.name}`, 'The audit log lists what stays on its machine.');
      leave();
    },
  });
  return (
    <ForgetDialog
      name={agent.name}
      about={`Use this only if the machine of node ${agent.node_id} is permanently gone. The agent’s record, log and conversation are deleted without contacting the node.`}
      left={<LeftBehindList agents={[agent]} />}
      returning="If the node comes back, svc stops this agent’s sessions on it and records that in the audit log."
      act={forget}
      onClose={onClose}
    />
  );
}
