/** One row of a conversation, by what it is. */
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { type AgentRecord, reviewsQuery, teamsQuery } from '../../../api/queries.ts';
import { ReviewCard } from '../../../reviews/card.tsx';
import { questionIn } from '../../../reviews/question.ts';
import type { Item, Permission } from '../../../transcript/items.ts';
import { Message, PrintedLines, Said, Thought } from './messages.tsx';
import { NoticeLine, StatusLine, StopLine, UnknownRow } from './notices.tsx';
import type { Row } from './rows.ts';
import { type Folder, ReadsRow, ToolRow } from './tool.tsx';

export function RowView({ row, folder, agent }: { row: Row; folder: Folder; agent: AgentRecord }) {
  if (row.type === 'reads') return <ReadsRow reads={row.reads} folder={folder} />;
  return <ItemView item={row.item} folder={folder} agent={agent} />;
}

function ItemView({ item, folder, agent }: { item: Item; folder: Folder; agent: AgentRecord }) {
  switch (item.kind) {
    case 'user_message':
      return <Said item={item} />;
    case 'agent_message':
      return <Message item={item} />;
    case 'thought':
      return <Thought item={item} />;
    case 'tool':
      return <ToolRow item={item} folder={folder} />;
    case 'permission':
      return <PermissionRow item={item} agent={agent} />;
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
  const question = useMemo(() => questionIn(item, agent.id, review), [item, agent.id, review]);
  return <ReviewCard question={question} agent={agent} team={team} />;
}
