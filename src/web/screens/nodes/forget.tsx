/** Removing a node whose machine is gone for good, together with the records of its agents. */
import { useMutation } from '@tanstack/react-query';
import { call } from '../../api/client.ts';
import { ForgetDialog } from '../../ui/forget.tsx';
import { tell } from '../../ui/toast.tsx';
import { LeftBehindList } from '../agents/left-behind.tsx';
import { useBoundAgents, useNodesAgain } from './data.ts';
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
  const again = useNodesAgain();
  const agents = useBoundAgents(node.id);
  const forget = useMutation({
    mutationFn: () => call('deleteAgentNode', { params: { node_id: node.id }, query: { forget: true } }),
    onSuccess: () => {
      tell(`${node.id} is forgotten`, 'The audit log lists what stays on the machine.');
      again();
      onForgotten();
    },
  });
  const records = node.agents === 1 ? 'the record of its agent' : `the records of its ${node.agents} agents`;
  return (
    <ForgetDialog
      name={node.id}
      about={`Use this only if the machine is gone for good. The node and ${records} are deleted without it.`}
      left={agents.length > 0 && <LeftBehindList agents={agents} />}
      returning="If the node is registered again, its sessions of these agents are stopped, and the audit log says so."
      act={forget}
      onClose={onClose}
    />
  );
}
