/** This machine and the registered nodes: columns on wide screens, two lines on phones. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { cx } from '../../ui/cx.ts';
import { rowClass } from '../../ui/row-class.ts';
import { AgentNames } from './agents-found.tsx';
import { healthQuery } from './data.ts';
import { FreeDisk } from './disk.tsx';
import { failureText, type NodeRecord, unrecoveredText } from './health.ts';
import { Latency } from './latency.tsx';
import { type ListedNode, ROOT_ON_NODE } from './listed.ts';
import { NodeStatus } from './status.tsx';

/** How often a node without a link is tested while the list is open. */
const TEST_EVERY_MS = 30_000;

// Narrow lists lose the worktree root first, then the agents found, then the latency.
const columns = [
  'md:grid-cols-[7rem_minmax(0,1fr)_5rem_5rem]',
  '@min-[38rem]:grid-cols-[7rem_minmax(0,1fr)_5rem_7rem_5rem]',
  '@min-[50rem]:grid-cols-[7rem_minmax(0,1fr)_minmax(0,1fr)_9rem_7rem_5rem]',
  '@min-[62rem]:grid-cols-[7rem_minmax(0,1fr)_minmax(0,1.1fr)_9rem_7rem_minmax(0,1fr)_5rem]',
].join(' ');
const row = `grid grid-cols-[1.25rem_minmax(0,1fr)_auto] items-center gap-x-2 px-3 md:gap-x-3 md:px-4 ${columns}`;

export function NodeTable({ nodes, open_id }: { nodes: readonly ListedNode[]; open_id: string | undefined }) {
  return (
    <table aria-label="Nodes" className="@container block">
      <thead className="block max-md:sr-only">
        <tr className={`${row} h-7 border-line border-b text-muted text-xs *:text-left *:font-medium`}>
          <th scope="col">Status</th>
          <th scope="col">Node</th>
          <th scope="col" className="@max-[50rem]:hidden">
            Agents found
          </th>
          <th scope="col" className="text-right!">
            Agents
          </th>
          <th scope="col" className="text-right! @max-[38rem]:hidden">
            Latency
          </th>
          <th scope="col" className="@max-[62rem]:hidden">
            Worktree root
          </th>
          <th scope="col" className="text-right! max-md:hidden">
            Free disk
          </th>
        </tr>
      </thead>
      <tbody className="block">
        {nodes.map((node) => (
          <NodeRow key={node.id} node={node} is_open={node.id === open_id} />
        ))}
      </tbody>
    </table>
  );
}

function NodeRow({ node, is_open }: { node: ListedNode; is_open: boolean }) {
  const { id, name, status, record, worktree_root, disk, latencies_ms } = node;
  // Without a link there are no agents to show, so a failure gets their space.
  const is_wide = status !== 'connected';
  return (
    <tr data-row={id} className={cx(row, rowClass, is_open && 'bg-selected!')}>
      <td className="max-md:self-start max-md:pt-3.5">
        <NodeStatus status={status} labelClassName="max-md:sr-only" />
      </td>
      <th
        scope="row"
        colSpan={is_wide ? 2 : 1}
        className={cx('min-w-0 text-left font-normal', is_wide && '@min-[50rem]:col-span-2')}
      >
        <span className="flex min-w-0 items-baseline gap-2">
          <Link
            to="/nodes"
            search={{ node: id }}
            aria-current={is_open || undefined}
            className="shrink-0 truncate font-semibold after:absolute after:inset-0 hover:underline"
          >
            {id}
          </Link>
          {name !== id && <span className="min-w-0 truncate text-muted text-sm">{name}</span>}
        </span>
        <span className="flex min-w-0 items-baseline gap-1 text-muted text-sm">
          {record === null ? 'This machine' : <StatusLine record={record} />}
        </span>
      </th>
      {!is_wide && (
        <td className="min-w-0 @max-[50rem]:hidden">
          <AgentNames node_id={id} />
        </td>
      )}
      <td className="text-right tabular-nums max-md:text-muted max-md:text-sm">
        <Running agents={node.agents} />
        {disk && (
          <span className="block whitespace-nowrap md:hidden">
            <FreeDisk disk={disk} /> free
          </span>
        )}
      </td>
      <td className="text-right text-sm @max-[38rem]:hidden">
        <Latency latencies_ms={latencies_ms} />
      </td>
      <td
        className={cx('truncate text-muted text-sm @max-[62rem]:hidden', worktree_root && 'font-mono')}
        title={worktree_root ?? ROOT_ON_NODE}
      >
        {worktree_root ?? ROOT_ON_NODE}
      </td>
      <td className="text-right text-sm max-md:hidden">{disk && <FreeDisk disk={disk} />}</td>
    </tr>
  );
}

function Running({ agents: { running, total } }: Pick<ListedNode, 'agents'>) {
  return (
    <span>
      <span className="whitespace-nowrap">{running} running</span>
      {total > 0 && (
        <span className="text-muted max-md:hidden">
          {' · '}
          <span className="whitespace-nowrap">
            {total} {total === 1 ? 'agent' : 'agents'}
          </span>
        </span>
      )}
    </span>
  );
}

/** The problem of the node, if it has one; else its address. */
function StatusLine({ record }: { record: NodeRecord }) {
  const { id, status, grpc_target, worktree_root_problem, unrecovered_sessions } = record;
  const is_linked = status === 'connected';
  const test = useQuery({ ...healthQuery(id), enabled: !is_linked, refetchInterval: TEST_EVERY_MS });
  const failure = !is_linked && test.data ? failureText(test.data, record) : null;
  if (failure !== null) {
    return (
      <>
        <span className="truncate text-failed" title={failure}>
          {failure}
        </span>
        <span aria-hidden>·</span>
        <button
          type="button"
          disabled={test.isFetching}
          onClick={() => void test.refetch()}
          className="relative z-1 -my-2 shrink-0 py-2 pr-2 text-text underline disabled:opacity-50"
        >
          {test.isFetching ? 'Testing…' : 'Test'}
        </button>
      </>
    );
  }
  if (worktree_root_problem !== null) {
    const text = `Worktree root: ${worktree_root_problem}`;
    return (
      <span className="truncate text-warning" title={text}>
        {text}
      </span>
    );
  }
  if (unrecovered_sessions > 0) {
    const text = unrecoveredText(unrecovered_sessions);
    return (
      <span className="truncate text-warning" title={text}>
        {text}
      </span>
    );
  }
  return <span className="truncate font-mono">{grpc_target.replace('https://', '')}</span>;
}
