/** The dialog that deletes the records of a node whose machine is gone, and of its agents. */
import { useMutation } from '@tanstack/react-query';
import { call } from '../../api/client.ts';
import { ForgetDialog } from '../../ui/forget.tsx';
import { showToast } from '../../ui/toast.tsx';
import { LeftBehindList } from '../agents/left-behind.tsx';
import { useBoundAgents, useRefetchNodes } from './data.ts';
import type { NodeRecord } from './health.ts';

export function ForgetNode({
  node,
  onClose,
  onForgotten,
}: {
  node: NodeRecord;
  onClose: () => void;
  onForgotten: () => void;
}) {
  const refetch = useRefetchNodes();
  const agents = useBoundAgents(node.id);
  const forget = useMutation({
    mutationFn: () => call('deleteAgentNode', { params: { node_id: node.id }, query: { forget: true } }),
    onSuccess: () => {
      showToast(`Forgot ${node.id}`, 'The audit log lists what stays on its machine.');
      refetch();
      onForgotten();
    },
  });
  return (
    <ForgetDialog
      name={node.id}
      about={`Use this only if the machine is permanently gone. ${whatIsDeleted(node.agents)} deleted without contacting it.`}
      left={agents.length > 0 && <LeftBehindList agents={agents} />}
      returning="If the node is registered again, svc stops these agents’ sessions on it and records that in the audit log."
      act={forget}
      onClose={onClose}
    />
  );
}

function whatIsDeleted(agents: number): string {
  if (agents === 0) return 'The node is';
  return `The node and ${agents === 1 ? 'the record of its agent' : `the records of its ${agents} agents`} are`;
}
