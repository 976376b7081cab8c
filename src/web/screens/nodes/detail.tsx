/** A registered node: its facts, its connection test and its actions. */
import { useMutation } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { call } from '../../api/client.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ActionError } from '../../ui/states.tsx';
import { Ago } from '../../ui/time.tsx';
import { useBoundAgents, useRefetchNodes } from './data.ts';
import { ForgetNode } from './forget.tsx';
import type { NodeRecord } from './health.ts';
import { NodeStatus } from './status.tsx';
import { TestConnection } from './test-connection.tsx';

/** How many agents are listed by name; the others are counted. */
const NAMED = 8;

export function NodeDetail({
  node,
  onClose,
  ...actions
}: {
  node: NodeRecord;
  onClose: () => void;
  onEdit: () => void;
  onJoin: () => void;
  onRegister: (id: string) => void;
}) {
  const [forgetting, setForgetting] = useState(false);
  const facts: [string, ReactNode][] = [
    ['Status', <NodeStatus key="status" status={node.status} />],
    ['ID', node.id],
    ['Target', node.grpc_target],
    ['TLS server name', node.tls_server_name ?? 'Same as the target host'],
    ['Worktree root', <Root key="root" node={node} />],
    ['Version', node.version ?? 'Unknown'],
    ['Last seen', node.last_seen_at === null ? 'Never' : <Ago key="seen" at={node.last_seen_at} />],
  ];
  return (
    <Dialog open onClose={onClose} title={node.name} wide>
      <div className="flex flex-col gap-4">
        <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1">
          {facts.map(([name, value]) => (
            <div key={name} className="contents">
              <dt className="text-muted">{name}</dt>
              <dd className="break-words">{value}</dd>
            </div>
          ))}
        </dl>
        <TestConnection node={node} {...actions} />
        <div className="flex flex-wrap items-center gap-2 border-line border-t pt-3">
          <Button onClick={actions.onEdit}>Edit</Button>
          <DeleteNode node={node} onDeleted={onClose} />
          {node.status !== 'connected' && <Button onClick={() => setForgetting(true)}>Forget…</Button>}
        </div>
      </div>
      {forgetting && <ForgetNode node={node} onClose={() => setForgetting(false)} onForgotten={onClose} />}
    </Dialog>
  );
}

function Root({ node: { default_worktree_root, worktree_root_problem } }: { node: NodeRecord }) {
  return (
    <>
      {default_worktree_root ?? 'Configured on the node'}
      {worktree_root_problem !== null && <span className="block text-warning">{worktree_root_problem}</span>}
    </>
  );
}

/** Disabled while agents are bound to the node; then it lists them. */
function DeleteNode({ node, onDeleted }: { node: NodeRecord; onDeleted: () => void }) {
  const agents = useBoundAgents(node.id);
  const refetch = useRefetchNodes();
  const [is_confirming, setConfirming] = useState(false);
  const remove = useMutation({
    mutationFn: () => call('deleteAgentNode', { params: { node_id: node.id } }),
    onSuccess: () => {
      refetch();
      onDeleted();
    },
  });
  // The record's count includes agents created since the list was read.
  const bound = Math.max(agents.length, node.agents);
  return (
    <>
      {is_confirming ? (
        <>
          <Button variant="danger" busy={remove.isPending} onClick={() => remove.mutate()}>
            {remove.isPending ? 'Deleting…' : `Delete ${node.id}`}
          </Button>
          <Button onClick={() => setConfirming(false)}>Cancel</Button>
        </>
      ) : (
        <Button
          variant="danger"
          disabled={bound > 0}
          aria-describedby={bound > 0 ? 'bound-agents' : undefined}
          onClick={() => setConfirming(true)}
        >
          Delete…
        </Button>
      )}
      {bound > 0 && (
        <p id="bound-agents" className="min-w-0 break-words text-muted text-sm">
          {bound === 1 ? 'Delete its agent first: ' : `Delete its ${bound} agents first: `}
          {agents.slice(0, NAMED).map(({ id, name }, at) => (
            <span key={id}>
              {at > 0 && ', '}
              <Link to="/agents/$agent_id" params={{ agent_id: id }} className="underline">
                {name}
              </Link>
            </span>
          ))}
          {bound > NAMED && ` and ${bound - NAMED} more`}
        </p>
      )}
      <ActionError error={remove.error} />
    </>
  );
}
