/** The machines that agents run on: this one, and the registered nodes. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { KeyRound, Plus } from 'lucide-react';
import { useState } from 'react';
import { useSession } from '../../api/session.ts';
import { NO_ROW_KEYS } from '../../shell/list-keys.ts';
import { Button, floatingClass } from '../../ui/button.tsx';
import { cx } from '../../ui/cx.ts';
import { RootRequired, Screen } from '../../ui/screen.tsx';
import { BesidePanel, SidePanel } from '../../ui/side-panel.tsx';
import { ListNote, QueryState } from '../../ui/states.tsx';
import { agentNodesQuery } from './data.ts';
import { NodeDetail } from './detail.tsx';
import { NodeForm } from './form.tsx';
import type { NodeRecord } from './health.ts';
import { JoinNodeDialog } from './join-node.tsx';
import { useListedNodes } from './listed.ts';
import { NodeTable } from './table.tsx';

export function Nodes() {
  const session = useSession();
  return session?.user.role === 'root' ? <NodesScreen /> : <RootRequired />;
}

interface NodesSearch {
  node?: string;
  /** The suggested id, or none. */
  register?: string | true;
}

function NodesScreen() {
  const search = useSearch({ from: '/app/nodes' });
  const navigate = useNavigate({ from: '/nodes' });
  const read = useQuery(agentNodesQuery);
  const [joining, setJoining] = useState(false);
  const show = (next: NodesSearch) => void navigate({ search: next });
  const register = (id: string | true) => show({ register: id });
  return (
    <Screen
      title="Nodes"
      rowKeys={NO_ROW_KEYS}
      actions={
        <Button icon={<KeyRound aria-hidden />} onClick={() => setJoining(true)}>
          Join node with token
        </Button>
      }
      primary={
        <button
          type="button"
          onClick={() => register(true)}
          className={cx(floatingClass, search.node !== undefined && 'max-lg:hidden')}
        >
          <Plus aria-hidden /> <span className="max-md:sr-only">Register node</span>
        </button>
      }
    >
      <QueryState read={read}>
        {(records) => (
          <NodesBeside
            records={records}
            open_id={search.node}
            show={show}
            onJoin={() => setJoining(true)}
            onRegister={register}
          />
        )}
      </QueryState>
      {search.register && (
        <NodeForm
          node={null}
          id={search.register === true ? '' : search.register}
          onClose={() => show({})}
          onDone={({ id }) => show({ node: id })}
        />
      )}
      <JoinNodeDialog open={joining} onClose={() => setJoining(false)} />
    </Screen>
  );
}

/** The list, with the open node beside it. */
function NodesBeside({
  records,
  open_id,
  show,
  onJoin,
  onRegister,
}: {
  records: readonly NodeRecord[];
  open_id: string | undefined;
  show: (next: NodesSearch) => void;
  onJoin: () => void;
  onRegister: (id: string) => void;
}) {
  const nodes = useListedNodes(records);
  const [editing, setEditing] = useState<NodeRecord | null>(null);
  const open = nodes.find(({ id }) => id === open_id);
  const close = () => {
    show({});
    requestAnimationFrame(() => focusRow(open_id));
  };
  return (
    <div className="flex h-full overflow-x-clip">
      <BesidePanel is_open={open_id !== undefined}>
        <NodeTable nodes={nodes} open_id={open_id} />
        {/* On phones, the button must not cover what is last. */}
        <div className="max-md:pb-20">
          <ListNote
            rows={nodes.length}
            title={
              nodes.length === 0
                ? 'No nodes yet. A node is a machine that runs agents for this service. Register one to start agents.'
                : records.length === 0
                  ? 'No other nodes. A node is a machine that runs agents for this service. Register one for each machine.'
                  : 'A node is a machine that runs agents for this service. Register one for each machine.'
            }
            cli="svc nodes register gpu-1 --target https://gpu.lan:8081"
            operation="registerAgentNode"
          />
        </div>
      </BesidePanel>
      {open ? (
        <NodeDetail
          key={open.id}
          node={open}
          onClose={close}
          onEdit={() => setEditing(open.record)}
          onJoin={onJoin}
          onRegister={onRegister}
        />
      ) : (
        open_id !== undefined &&
        nodes.length > 0 && (
          <SidePanel title="This node does not exist." back="nodes" onClose={close}>
            <p className="text-muted">It may have been deleted.</p>
          </SidePanel>
        )
      )}
      {editing && (
        <NodeForm node={editing} onClose={() => setEditing(null)} onDone={() => setEditing(null)} />
      )}
    </div>
  );
}

/** After the panel has closed, the focus returns to the row that opened it. */
function focusRow(node_id: string | undefined): void {
  if (node_id === undefined) return;
  document.querySelector<HTMLElement>(`[data-row="${CSS.escape(node_id)}"] a`)?.focus();
}
