/** One row of a conversation, by what it is. */
import { useQuery } from '@tanstack/react-query';
import { Link2 } from 'lucide-react';
import { memo, useMemo, useState } from 'react';
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
import { Contained } from '../../../ui/contained.tsx';
import { cx } from '../../../ui/cx.ts';
import { TimeOfDay } from '../../../ui/time.tsx';
import { CardOrLink } from '../../../waiting/card-link.tsx';
import { Message, PrintedLines, RelayedMessage, Thought, UserPrompt } from './messages.tsx';
import { NoticeLine, StatusLine, StopLine, UnknownRow } from './notices.tsx';
import { getItem, holds, listOwn, type Row, sameRow } from './rows.ts';
import { SubagentBlock } from './subagent.tsx';
import { type Folder, ReadsLine, ToolLine } from './tool.tsx';

interface RowProps {
  row: Row;
  folder: Folder;
  agent: AgentRecord;
  /** The key of the item in the page's URL, if it is in this row. */
  marked: string | null;
}

/** A row with its link and its time in the gutters; the rows inside a row have their own. */
export const RowBlock = memo(
  function RowBlock({
    row,
    folder,
    agent,
    marked,
    after_pause = false,
  }: RowProps & { after_pause?: boolean }) {
    const own = listOwn(row);
    const [first] = own;
    const is_marked = marked !== null && own.some(({ key }) => key === marked);
    const [is_pointed, setPointed] = useState(false);
    return (
      <div
        data-row={first ? '' : undefined}
        data-item={first?.key}
        onPointerEnter={is_pointed ? undefined : () => setPointed(true)}
        className={cx(
          'relative isolate min-w-0 rounded',
          row.type !== 'subagent' && first && 'group/row',
          is_marked && 'bg-marked outline-2 outline-accent outline-offset-2',
        )}
      >
        {own.slice(1).map((item) => (
          <span key={item.key} data-item={item.key} />
        ))}
        {after_pause && (
          <p className="py-1 text-center text-muted text-xs md:hidden">
            <TimeOfDay ts={getItem(row).ts} />
          </p>
        )}
        <Contained retryOn={row}>
          <RowView row={row} folder={folder} agent={agent} marked={marked} />
        </Contained>
        {first && is_pointed && (
          <a
            href={`#e${first.seq}`}
            tabIndex={-1}
            title={`Link to event ${first.seq}`}
            aria-label={`Link to event ${first.seq}`}
            className="absolute top-0 right-full mr-1 inline-flex h-7 items-center rounded px-1 text-muted opacity-0 hover:text-text group-hover/row:opacity-100 max-md:hidden"
          >
            <Link2 aria-hidden className="size-3.5" />
          </a>
        )}
        {first && (is_pointed || after_pause) && (
          <TimeOfDay
            ts={first.ts}
            className={cx(
              'absolute top-0 left-full ml-2 text-muted text-xs leading-7 max-md:hidden',
              !after_pause && 'opacity-0 group-hover/row:opacity-100',
            )}
          />
        )}
      </div>
    );
  },
  (a, b) =>
    sameRow(a.row, b.row) &&
    a.folder === b.folder &&
    a.marked === b.marked &&
    a.after_pause === b.after_pause &&
    // Only permission cards show more of the agent than its folder and what never changes.
    (a.agent === b.agent || !asks(a.row)),
);

function asks(row: Row): boolean {
  if (row.type === 'subagent' || row.type === 'tools') return row.rows.some(asks);
  return row.type === 'item' && request_kinds.includes(row.item.kind);
}

const request_kinds: readonly Item['kind'][] = ['permission', 'elicitation'];

function RowView({ row, folder, agent, marked }: RowProps) {
  const view = (rows: readonly Row[]) =>
    rows.map((inner) => (
      <RowBlock
        key={inner.key}
        row={inner}
        folder={folder}
        agent={agent}
        marked={marked !== null && holds(inner, marked) ? marked : null}
      />
    ));
  switch (row.type) {
    case 'reads':
      return <ReadsLine reads={row.reads} folder={folder} />;
    case 'tool':
      return <ToolLine row={row} folder={folder} />;
    case 'tools':
      return (
        <div className="divide-y divide-line rounded-lg border border-line">
          {row.rows.map((inner) => (
            <div key={inner.key} className={innerPadding(inner)}>
              {view([inner])}
            </div>
          ))}
        </div>
      );
    case 'subagent':
      return <SubagentBlock row={row} marked={marked} view={view} />;
    case 'item':
      return <ItemView item={row.item} agent={agent} />;
  }
}

/** The lines of tool calls reach the border of their group. */
function innerPadding(row: Row): string | undefined {
  if (row.type !== 'item') return undefined;
  return row.item.kind === 'permission' ? 'p-2' : 'px-2';
}

function ItemView({ item, agent }: { item: Item; agent: AgentRecord }) {
  switch (item.kind) {
    case 'user_message':
      return <UserPrompt item={item} of_run={agent.run_id !== null} />;
    case 'agent_message':
      return <Message item={item} />;
    case 'thought':
      return <Thought item={item} />;
    case 'permission':
      return <PermissionRow item={item} agent={agent} />;
    case 'elicitation':
      return <ElicitedRow item={item} agent={agent} />;
    case 'stop':
      return <StopLine item={item} agent_id={agent.id} />;
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
    // They have rows of another type.
    case 'tool':
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
  return (
    <CardOrLink id={item.review_id}>
      <ReviewCard review={view} agent={agent} team={team} />
    </CardOrLink>
  );
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
  if (!elicitation) return null;
  return (
    <CardOrLink id={elicitation_id}>
      <LazyElicitationCard elicitation={elicitation} agent={agent} />
    </CardOrLink>
  );
}
