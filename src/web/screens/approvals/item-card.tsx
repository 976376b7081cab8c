/** The card of an item, with the names and views that the cards of the page share. */
import { useQuery } from '@tanstack/react-query';
import { useMemo, useRef } from 'react';
import { type AgentRecord, agentsQuery, type ReviewRecord, teamsQuery } from '../../api/queries.ts';
import { ElicitationCard } from '../../elicitations/card.tsx';
import { ReviewCard } from '../../reviews/card.tsx';
import { type ReviewView, toReviewView } from '../../reviews/review-view.ts';
import { Contained } from '../../ui/contained.tsx';
import { QuestionCard } from '../../waiting/question-card.tsx';
import type { WaitingItem } from '../../waiting/queue.ts';
import { RunCard } from '../../waiting/run-card.tsx';
import { SignInCard } from '../../waiting/sign-in-card.tsx';

const NO_AGENTS: AgentRecord[] = [];

export interface Names {
  agents: AgentRecord[];
  /** The names of teams by id. */
  teams: ReadonlyMap<string, string>;
}

export function useNames(): Names {
  const { data: agents = NO_AGENTS } = useQuery(agentsQuery);
  const { data: teamList } = useQuery(teamsQuery);
  const teams = useMemo(() => new Map((teamList ?? []).map(({ id, name }) => [id, name])), [teamList]);
  return { agents, teams };
}

/** The card of each item fails alone. */
export function ItemCard(props: ItemCardProps) {
  return (
    <Contained retryOn={props.item}>
      <CardOfKind {...props} />
    </Contained>
  );
}

interface ItemCardProps {
  item: WaitingItem;
  names: Names;
  viewFor: (item: WaitingItem) => ReviewView;
  /** Shows the agent's name. */
  named?: boolean;
  className?: string;
}

function CardOfKind({ item, names, viewFor, named = true, className }: ItemCardProps) {
  const agent = names.agents.find(({ id }) => id === item.agent_id);
  const rest = { named, ...(className && { className }) };
  switch (item.kind) {
    case 'permission': {
      const team = item.team_id === null ? undefined : names.teams.get(item.team_id);
      return <ReviewCard review={viewFor(item)} agent={agent} team={team} {...rest} />;
    }
    case 'elicitation':
      return <ElicitationCard elicitation={item.elicitation} agent={agent} {...rest} />;
    case 'question':
      return <QuestionCard step={item.step} open={item.open} agent={agent} {...rest} />;
    case 'run':
      return <RunCard run={item.run} open={item.open} {...(className && { className })} />;
    case 'sign_in':
      return <SignInCard agent={agent ?? item.agent} open={item.open} {...rest} />;
  }
}

/** Returns the same view for the same review record. */
export function useReviewViews(): (item: WaitingItem) => ReviewView {
  const known = useRef(new WeakMap<ReviewRecord, ReviewView>()).current;
  return (item) => {
    if (item.kind !== 'permission') throw new Error(`no review: ${item.kind}`);
    const view = known.get(item.review) ?? toReviewView(item.review);
    known.set(item.review, view);
    return view;
  };
}
