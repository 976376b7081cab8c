/** Removing a node whose machine is gone for good, together with the records of its agents. */
import { useMutation } from '@tanstack/react-query';
import { call } from '../../api/client.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Refused } from '../../ui/states.tsx';
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
  return (
    <Dialog open onClose={onClose} title={`Forget ${node.id}?`}>
      <div className="flex flex-col gap-3">
        <p>
          Use this only if the machine is gone for good. The node and{' '}
          {node.agents === 1 ? 'the record of its agent' : `the records of its ${node.agents} agents`} are
          deleted without it.
        </p>
        {agents.length > 0 && (
          <div>
            <p className="mb-1">This stays on that machine:</p>
            <LeftBehindList agents={agents} />
          </div>
        )}
        <p>
          If the node is registered again, its sessions of these agents are stopped, and the audit log says
          so.
        </p>
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
