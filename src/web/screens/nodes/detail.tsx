/** The panel of a node: its facts, the agents found on it, its connection test and its actions. */
import { useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { FolderGit2, Pencil } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { call } from '../../api/client.ts';
import { keptWorktreesQuery, nodesQuery } from '../../api/queries.ts';
import { Button, buttonClass } from '../../ui/button.tsx';
import { SidePanel } from '../../ui/side-panel.tsx';
import { ActionError } from '../../ui/states.tsx';
import { Ago } from '../../ui/time.tsx';
import { FolderPath } from '../agent/side/folder-path.tsx';
import { AgentsFound } from './agents-found.tsx';
import { useBoundAgents, useRefetchNodes } from './data.ts';
import { FreeDisk, formatBytes } from './disk.tsx';
import { ForgetNode } from './forget.tsx';
import { type NodeRecord, unrecoveredText } from './health.ts';
import { Latency } from './latency.tsx';
import { type ListedNode, ROOT_ON_NODE } from './listed.ts';
import { NodeStatus } from './status.tsx';
import { TestConnection } from './test-connection.tsx';

/** How many agents are listed by name; the others are counted. */
const NAMED = 8;

type Fact = [name: string, value: ReactNode];

export function NodeDetail({
  node,
  onClose,
  onEdit,
  ...actions
}: {
  node: ListedNode;
  onClose: () => void;
  onEdit: () => void;
  onJoin: () => void;
  onRegister: (id: string) => void;
}) {
  const { id, name, status, record } = node;
  return (
    <SidePanel
      title={name}
      back="nodes"
      onClose={onClose}
      about={name !== id && <p className="truncate text-muted text-sm">{id}</p>}
      actions={
        record && (
          <Button icon={<Pencil aria-hidden />} onClick={onEdit}>
            Edit
          </Button>
        )
      }
    >
      <Facts facts={[...factsOf(node), ...(record ? recordFacts(record) : [])]} />
      {record === null && <Folders />}
      {record && <TestConnection node={record} {...actions} />}
      {status === 'connected' && <AgentsFound node_id={id} />}
      <KeptWorktrees node_id={id} />
      {record && <NodeActions node={record} onDeleted={onClose} />}
    </SidePanel>
  );
}

function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1">
      {facts.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-muted">{name}</dt>
          <dd className="break-words">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function factsOf({ status, agents, latencies_ms, disk, record }: ListedNode): Fact[] {
  const is_linked = status === 'connected';
  const latency = latencies_ms.length === 0 ? '–' : <Latency key="latency" latencies_ms={latencies_ms} />;
  return [
    ['Status', <NodeStatus key="status" status={status} />],
    ['Agents', agents.total === 0 ? 'None' : `${agents.running} running, ${agents.total} in total`],
    ...(is_linked && record ? [['Latency', latency] satisfies Fact] : []),
    ...(is_linked ? [['Free disk', disk ? <Disk key="disk" disk={disk} /> : '–'] satisfies Fact] : []),
  ];
}

function Disk({ disk }: { disk: NonNullable<ListedNode['disk']> }) {
  return (
    <span className="flex min-w-0 flex-wrap items-baseline gap-x-1.5">
      <FreeDisk disk={disk} />
      <span className="min-w-0 break-all text-muted">
        of {formatBytes(disk.total_bytes)} at {disk.path}
      </span>
    </span>
  );
}

function recordFacts(record: NodeRecord): Fact[] {
  const { grpc_target, tls_server_name, version, last_seen_at, unrecovered_sessions } = record;
  return [
    ['Target', grpc_target],
    ['TLS server name', tls_server_name ?? 'Same as the target host'],
    ['Worktree root', <Root key="root" node={record} />],
    ['Version', version ?? 'Unknown'],
    ...(unrecovered_sessions > 0
      ? [['Sessions', <Unrecovered key="left" node={record} />] satisfies Fact]
      : []),
    ['Last seen', last_seen_at === null ? 'Never' : <Ago key="seen" at={last_seen_at} />],
  ];
}

function Root({ node: { default_worktree_root, worktree_root_problem } }: { node: NodeRecord }) {
  return (
    <>
      {default_worktree_root === null ? (
        ROOT_ON_NODE
      ) : (
        <span className="break-all font-mono text-sm">{default_worktree_root}</span>
      )}
      {worktree_root_problem !== null && <span className="block text-warning">{worktree_root_problem}</span>}
    </>
  );
}

function Unrecovered({ node: { unrecovered_sessions } }: { node: NodeRecord }) {
  return (
    <>
      <span className="text-warning">{unrecoveredText(unrecovered_sessions)}</span>
      <span className="block text-muted">
        They keep running. To recover them, delete agents with the label recovered=true, then restart svc on
        the node.
      </span>
    </>
  );
}

/** The folders of this machine in which agents may work. */
function Folders() {
  const { data = [] } = useQuery(nodesQuery);
  const folders = data.find(({ id }) => id === 'main')?.folders;
  if (!folders) return null;
  const { worktree_root, safe_paths, repo_roots } = folders;
  const lists: [string, readonly string[]][] = [
    ['Worktree root', [worktree_root]],
    ['Folders for agents', safe_paths.filter((path) => path !== worktree_root)],
    ['Folders with repositories', repo_roots],
  ];
  return (
    <section aria-labelledby="node-folders" className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h3 id="node-folders" className="font-medium">
          Folders
        </h3>
        <Link
          to="/settings/$tab"
          params={{ tab: 'config' }}
          className="tap inline-flex items-center text-sm underline"
        >
          Change in settings
        </Link>
      </div>
      {lists.map(
        ([label, paths]) =>
          paths.length > 0 && (
            <div key={label}>
              <p className="text-muted text-sm">{label}</p>
              {paths.map((path) => (
                <FolderPath key={path} path={path} />
              ))}
            </div>
          ),
      )}
    </section>
  );
}

/** A link to the worktrees on the node that outlived their agents, if there are any. */
function KeptWorktrees({ node_id }: { node_id: string }) {
  const { data = [] } = useQuery(keptWorktreesQuery);
  const count = data.filter((worktree) => worktree.node_id === node_id).length;
  if (count === 0) return null;
  return (
    <Link to="/worktrees" search={{ node: node_id }} className={buttonClass('plain', 'self-start')}>
      <FolderGit2 aria-hidden />
      {count === 1 ? 'Show 1 kept worktree' : `Show ${count} kept worktrees`}
    </Link>
  );
}

function NodeActions({ node, onDeleted }: { node: NodeRecord; onDeleted: () => void }) {
  const [forgetting, setForgetting] = useState(false);
  return (
    <div className="flex flex-wrap items-center gap-2 border-line border-t pt-3">
      <DeleteNode node={node} onDeleted={onDeleted} />
      {node.status !== 'connected' && <Button onClick={() => setForgetting(true)}>Forget…</Button>}
      {forgetting && <ForgetNode node={node} onClose={() => setForgetting(false)} onForgotten={onDeleted} />}
    </div>
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
