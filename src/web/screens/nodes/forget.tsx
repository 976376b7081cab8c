/** Removing a node whose machine is gone for good, together with the records of its agents. */
import { useMutation } from '@tanstack/react-query';
import { call } from '../../api/client.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Refused } from '../../ui/states.tsx';
import { LeftBehindList } from '../agents/left-behind.tsx';
import { useNodesAgain } from './data.ts';
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
  const forget = useMutation({
    mutationFn: () => call('deleteAgentNode', { params: { node_id: node.id }, query: { forget: true } }),
  });
  const leave = () => {
    again();
    onForgotten();
  };
  if (forget.data) {
    return (
      <Dialog open onClose={leave} title={`${node.id} is forgotten`}>
        <LeftBehindList agents={forget.data.left_behind} />
        <div className="mt-3 flex justify-end">
          <Button onClick={leave}>Back to nodes</Button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog open onClose={onClose} title={`Forget ${node.id}?`}>
      <div className="flex flex-col gap-3">
        <p>
          Use this only if the machine is gone for good. The node and{' '}
          {node.agents === 1 ? 'the record of its agent' : `the records of its ${node.agents} agents`} are
          deleted without it.
        </p>
        <p>
          Processes, folders and branches stay on that machine. If the node is registered again, sessions of
          these agents are stopped, and the audit log says so.
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
