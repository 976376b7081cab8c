/** The machines that agents run on: this one, and the registered nodes. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { KeyRound, Plus } from 'lucide-react';
import { useState } from 'react';
import { useSession } from '../../api/session.ts';
import { NO_ROW_KEYS } from '../../shell/list-keys.ts';
import { Button } from '../../ui/button.tsx';
import { RootRequired, Screen } from '../../ui/screen.tsx';
import { Empty, ListNote, QueryState } from '../../ui/states.tsx';
import { agentNodesQuery } from './data.ts';
import { NodeDetail } from './detail.tsx';
import { NodeForm } from './form.tsx';
import { JoinNodeDialog } from './join-node.tsx';
import { NodeTable } from './table.tsx';

export function Nodes() {
  const session = useSession();
  return session?.user.role === 'root' ? <NodesScreen /> : <RootRequired />;
}

function NodesScreen() {
  const search = useSearch({ from: '/app/nodes' });
  const navigate = useNavigate({ from: '/nodes' });
  const read = useQuery(agentNodesQuery);
  const [editing, setEditing] = useState(false);
  const [joining, setJoining] = useState(false);
  const [suggested, setSuggested] = useState('');
  const show = (next: { node?: string; register?: true }) => void navigate({ search: next });
  const node = read.data?.find(({ id }) => id === search.node);
  return (
    <Screen
      title="Nodes"
      rowKeys={NO_ROW_KEYS}
      actions={
        <>
          <Button icon={<KeyRound aria-hidden />} onClick={() => setJoining(true)}>
            Show join token
          </Button>
          <Button variant="primary" icon={<Plus aria-hidden />} onClick={() => show({ register: true })}>
            Register node
          </Button>
        </>
      }
    >
      <QueryState read={read}>
        {(nodes) => (
          <>
            <NodeTable nodes={nodes} />
            {nodes.length > 0 && (
              <ListNote
                rows={nodes.length}
                title="A node is a machine that runs agents for this service. Register one for each machine."
                cli="svc nodes register gpu-1 --target https://gpu.lan:8081"
                operation="registerAgentNode"
              />
            )}
            {nodes.length === 0 && (
              <Empty
                title="No other nodes. Register a machine to run agents on it too."
                cli="svc nodes register gpu-1 --target https://gpu.lan:8081"
                operation="registerAgentNode"
              >
                <Button onClick={() => show({ register: true })}>Register node</Button>
              </Empty>
            )}
            {search.node !== undefined && !node && <Empty title="This node does not exist." />}
          </>
        )}
      </QueryState>
      {search.register && (
        <NodeForm
          node={null}
          id={suggested}
          onClose={() => show({})}
          onDone={({ id }) => show({ node: id })}
        />
      )}
      {node && !editing && !joining && (
        <NodeDetail
          node={node}
          onClose={() => show({})}
          onEdit={() => setEditing(true)}
          onJoin={() => setJoining(true)}
          onRegister={(id) => {
            setSuggested(id);
            show({ register: true });
          }}
        />
      )}
      {node && editing && (
        <NodeForm node={node} onClose={() => setEditing(false)} onDone={() => setEditing(false)} />
      )}
      <JoinNodeDialog open={joining} onClose={() => setJoining(false)} />
    </Screen>
  );
}
