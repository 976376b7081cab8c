/**
 * The rows of agents: columns on wide screens, two lines on phones. Every row is in the document, so that the browser finds
 * its text, but the browser lays out only those in view. It checks in each frame which ones these are, so they are in blocks
 * that it skips as a whole.
 */
import { Link } from '@tanstack/react-router';
import { type CSSProperties, memo } from 'react';
import type { AgentRecord } from '../../api/queries.ts';
import type { RunNames } from '../../api/run-names.ts';
import { agentState } from '../../ui/agent-state.ts';
import { ActsOnItsOwn } from '../../ui/permission-mode.tsx';
import { rowClass } from '../../ui/row-class.ts';
import { AgentStatus } from '../../ui/status.tsx';
import { useTint } from '../../ui/tint.ts';
import { UnreadDot } from '../../ui/unread.tsx';
import type { WaitingItem } from '../../waiting/queue.ts';
import { blocksOf } from './blocks.ts';
import {
  Branch,
  Context,
  Cost,
  DiffSize,
  Folder,
  LastActivity,
  NodeName,
  Progress,
  RowActions,
  RunLink,
  StatusLine,
} from './facts.tsx';
import { getProgram } from './order.ts';

/** The height of a block that was not in view yet: that of its rows, as in `rowClass`. */
const blockClass =
  'block [contain-intrinsic-height:auto_calc(var(--rows)*4rem)] [content-visibility:auto] md:[contain-intrinsic-height:auto_calc(var(--rows)*2.75rem)]';

// The columns in view, from left to right. Narrow lists lose the cost first, then the context, then the progress.
const columns = [
  'md:grid-cols-[7rem_minmax(0,2fr)_minmax(0,1fr)_5.25rem_4rem_7rem]',
  '@min-[53rem]:grid-cols-[7rem_minmax(0,2fr)_minmax(0,1fr)_5rem_5.25rem_4rem_7rem]',
  '@min-[58rem]:grid-cols-[7rem_minmax(0,2fr)_minmax(0,1fr)_5rem_5.25rem_2.75rem_4rem_7rem]',
  '@min-[66rem]:grid-cols-[7rem_minmax(0,2fr)_minmax(13.75rem,1fr)_5rem_5.25rem_2.75rem_4rem_7rem]',
  '@min-[70rem]:grid-cols-[7rem_minmax(0,2fr)_minmax(13.75rem,1fr)_5rem_5.25rem_2.75rem_3.5rem_4rem_7rem]',
].join(' ');
const row = `grid grid-cols-[1.25rem_minmax(0,1fr)_auto_auto] items-center gap-x-2 px-3 md:gap-x-3 md:px-4 ${columns}`;

export function AgentRows({
  label,
  agents,
  waiting,
  unread,
  run_names,
  headed,
}: {
  label: string;
  agents: AgentRecord[];
  /** What has waited longest for the user, by agent. */
  waiting: ReadonlyMap<string, WaitingItem>;
  /** The ids of agents with unread events. */
  unread: ReadonlySet<string>;
  run_names: RunNames;
  /** Whether the names of the columns are in view; screen readers always have them. */
  headed: boolean;
}) {
  return (
    <table aria-label={label} className="@container block">
      <thead className={headed ? 'block max-md:sr-only' : 'sr-only'}>
        <tr className={`${row} h-7 text-muted text-xs *:text-left *:font-normal`}>
          <th scope="col">Status</th>
          <th scope="col">Agent</th>
          <th scope="col">Repository</th>
          <th scope="col" className="@max-[53rem]:hidden">
            Plan
          </th>
          <th scope="col" className="text-right!">
            Changes
          </th>
          <th scope="col" className="text-right! @max-[58rem]:hidden" title="Context of the model">
            Ctx
          </th>
          <th scope="col" className="text-right! @max-[70rem]:hidden">
            Cost
          </th>
          <th scope="col" className="text-right!" title="Last activity, or how long it has waited">
            Active
          </th>
          <th scope="col">
            <span className="sr-only">Actions</span>
          </th>
        </tr>
      </thead>
      {blocksOf(agents).map((block, at) => (
        // The first block begins with any agent, and stays when another one comes on top.
        <tbody
          key={at === 0 ? '' : block[0]!.id}
          className={blockClass}
          style={{ '--rows': block.length } as CSSProperties}
        >
          {block.map((agent) => (
            <AgentRow
              key={agent.id}
              agent={agent}
              item={waiting.get(agent.id)}
              unread={unread.has(agent.id)}
              run_name={agent.run_id === null ? undefined : run_names.get(agent.run_id)}
            />
          ))}
        </tbody>
      ))}
    </table>
  );
}

/** Not rendered again when another agent changes. */
const AgentRow = memo(function AgentRow({
  agent,
  item,
  unread,
  run_name,
}: {
  agent: AgentRecord;
  item: WaitingItem | undefined;
  unread: boolean;
  /** Undefined if it has no run. */
  run_name: string | undefined;
}) {
  const tinted = useTint<HTMLTableRowElement>(agentState(agent));
  return (
    <tr
      ref={tinted}
      data-row={agent.id}
      className={`${row} ${rowClass} group [contain-intrinsic-height:auto_44px] [content-visibility:auto]`}
    >
      <td className="max-md:self-start max-md:pt-3">
        <AgentStatus agent={agent} labelClassName="max-md:sr-only" />
      </td>
      <th scope="row" className="min-w-0 text-left font-normal">
        <span className="flex min-w-0 items-center gap-2">
          {unread && <UnreadDot />}
          <Link
            to="/agents/$agent_id"
            params={{ agent_id: agent.id }}
            dir="auto"
            className="truncate text-left font-semibold after:absolute after:inset-0 hover:underline"
            title={agent.name}
          >
            {agent.name}
          </Link>
          <span className="shrink-0 font-mono text-muted text-sm">{getProgram(agent)}</span>
          <ActsOnItsOwn agent={agent} />
          {run_name !== undefined && (
            <span className="truncate text-muted text-sm md:hidden">{run_name}</span>
          )}
        </span>
        <span dir="auto" className="block truncate text-left text-muted text-sm">
          <StatusLine agent={agent} item={item} />
        </span>
      </th>
      <td className="min-w-0 text-muted text-sm max-md:hidden">
        <Where agent={agent} run_name={run_name} />
      </td>
      <td className="text-muted text-sm @max-[53rem]:hidden">
        <Progress agent={agent} />
      </td>
      <td className="text-right text-sm max-md:hidden">
        <DiffSize agent={agent} />
      </td>
      <td className="text-right text-muted text-sm @max-[58rem]:hidden">
        <Context agent={agent} />
      </td>
      <td className="text-right text-muted text-sm @max-[70rem]:hidden">
        <Cost agent={agent} />
      </td>
      <td className="text-right text-sm max-md:self-start max-md:pt-2.5">
        <LastActivity agent={agent} item={item} />
      </td>
      <td className="relative z-1 flex justify-end">
        <RowActions agent={agent} item={item} />
      </td>
    </tr>
  );
});

/** Its repository and branch, and below them its run and its node. */
function Where({ agent, run_name }: { agent: AgentRecord; run_name: string | undefined }) {
  return (
    <>
      <span className="flex min-w-0 items-center gap-1.5">
        <span className="shrink-0 truncate not-last:max-w-3/5 last:max-w-full">
          <Folder agent={agent} />
        </span>
        <Branch agent={agent} />
      </span>
      <span className="flex min-w-0 gap-1.5 empty:hidden">
        {run_name !== undefined && <RunLink agent={agent} name={run_name} />}
        {agent.node_id !== 'main' && (
          <span className="truncate">
            <NodeName agent={agent} />
          </span>
        )}
      </span>
    </>
  );
}
