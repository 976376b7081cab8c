/** One row of a conversation, by what it is. */
import { useQuery } from '@tanstack/react-query';
import { memo, useMemo } from 'react';
import type { ElicitationItem, Item, Permission } from '../../../../acp/transcript/items.ts';
import {
  type AgentRecord,
  elicitationQuery,
  elicitationsQuery,
  reviewsQuery,
  teamsQuery,
} from '../../../api/queries.ts';
import { LazyElicitationCard } from '../../../elicitations/lazy.tsx';
import { ReviewCard } from '../../../reviews/card.tsx';
import { viewOfItem } from '../../../reviews/review-view.ts';
import { cx } from '../../../ui/cx.ts';
import { Message, PrintedLines, RelayedMessage, Thought, UserPrompt } from './messages.tsx';
import { NoticeLine, StatusLine, StopLine, UnknownRow } from './notices.tsx';
import { getItem, holds, type Row, sameRow } from './rows.ts';
import { SubagentBlock } from './subagent.tsx';
import { type Folder, ReadsRow, ToolRow } from './tool.tsx';

interface RowProps {
  row: Row;
  folder: Folder;
  agent: AgentRecord;
  /** The event in the page's URL, if it is in this row. */
  marked: number | null;
}

/** A row with its link; rows of a sub-agent are inside the sub-agent's row. */
export const RowBlock = memo(
  function RowBlock({ row, folder, agent, marked }: RowProps) {
    const item = getItem(row);
    return (
      <div
        id={item.key === String(item.seq) ? `e${item.seq}` : undefined}
        data-row
        className={cx(
          'relative min-w-0 rounded',
          // The rows inside it have their own links.
          row.type !== 'subagent' && 'group/row',
          isMarked(row, marked) && 'bg-marked outline-2 outline-accent outline-offset-4',
        )}
      >
        <RowView row={row} folder={folder} agent={agent} marked={marked} />
        <a
          href={`#e${item.seq}`}
          title={new Date(item.ts * 1000).toLocaleString()}
          aria-label={`Link to event ${item.seq}`}
          className="absolute top-0 right-0 rounded bg-ground px-1 text-muted text-sm opacity-0 focus:opacity-100 group-hover/row:opacity-100 max-md:hidden"
        >
          #{item.seq}
        </a>
      </div>
    );
  },
  (a, b) =>
    sameRow(a.row, b.row) &&
    a.folder === b.folder &&
    a.marked === b.marked &&
    // Only permission cards show more of the agent than its folder.
    (a.agent === b.agent || !asks(a.row)),
);

/** Rows inside a sub-agent's row are marked there. */
function isMarked(row: Row, seq: number | null): boolean {
  return row.type === 'subagent' ? row.head.seq === seq : seq !== null;
}

function asks(row: Row): boolean {
  return row.type === 'subagent'
    ? row.rows.some(asks)
    : row.type === 'item' && request_kinds.includes(row.item.kind);
}

const request_kinds: readonly Item['kind'][] = ['permission', 'elicitation'];

function RowView({ row, folder, agent, marked }: RowProps) {
  if (row.type === 'reads') return <ReadsRow reads={row.reads} folder={folder} />;
  if (row.type === 'subagent') {
    const view = (rows: readonly Row[]) =>
      rows.map((row) => (
        <RowBlock
          key={row.key}
          row={row}
          folder={folder}
          agent={agent}
          marked={marked !== null && holds(row, marked) ? marked : null}
        />
      ));
    return <SubagentBlock row={row} marked={marked} view={view} />;
  }
  return <ItemView item={row.item} folder={folder} agent={agent} />;
}

function ItemView({ item, folder, agent }: { item: Item; folder: Folder; agent: AgentRecord }) {
  switch (item.kind) {
    case 'user_message':
      return <UserPrompt item={item} />;
    case 'agent_message':
      return <Message item={item} />;
    case 'thought':
      return <Thought item={item} />;
    case 'tool':
      return <ToolRow item={item} folder={folder} />;
    case 'permission':
      return <PermissionRow item={item} agent={agent} />;
    case 'elicitation':
      return <ElicitedRow item={item} agent={agent} />;
    case 'stop':
      return <StopLine item={item} />;
    case 'status':
      return <StatusLine item={item} />;
    case 'notice':
      return <NoticeLine item={item} />;
    case 'output':
      return <PrintedLines item={item} />;
    case 'unknown':
      return <UnknownRow item={item} />;
    case 'relayed':
      return <RelayedMessage item={item} />;
    // It is the head of its sub-agent's rows.
    case 'delegation':
      return null;
  }
}

function PermissionRow({ item, agent }: { item: Permission; agent: AgentRecord }) {
  const { data: review } = useQuery({
    ...reviewsQuery,
    select: (reviews) => reviews.find(({ id }) => id === item.review_id),
  });
  const { data: team } = useQuery({
    ...teamsQuery,
    enabled: Boolean(agent.team_id),
    select: (teams) => teams.find(({ id }) => id === agent.team_id)?.name,
  });
  const view = useMemo(() => viewOfItem(item, agent.id, review), [item, agent.id, review]);
  return <ReviewCard review={view} agent={agent} team={team} />;
}

function ElicitedRow({ item: { elicitation_id }, agent }: { item: ElicitationItem; agent: AgentRecord }) {
  const { data: listed, isSuccess } = useQuery({
    ...elicitationsQuery,
    select: (all) => all.find(({ id }) => id === elicitation_id),
  });
  // The list has the pending ones and the newest of the rest.
  const { data: old } = useQuery({
    ...elicitationQuery(elicitation_id),
    enabled: isSuccess && listed === undefined,
  });
  const elicitation = listed ?? old;
  return elicitation ? <LazyElicitationCard elicitation={elicitation} agent={agent} /> : null;
}
