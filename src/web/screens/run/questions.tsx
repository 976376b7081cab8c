/** What waits for the user in a run, at the top of its page. */
import { useQuery } from '@tanstack/react-query';
import { useRef } from 'react';
import { type AgentRecord, agentsQuery } from '../../api/queries.ts';
import { ElicitationCard } from '../../elicitations/card.tsx';
import { ReviewCard } from '../../reviews/card.tsx';
import { toReviewView } from '../../reviews/review-view.ts';
import { useHandheld } from '../../ui/media.ts';
import { CardKeysContext } from '../../waiting/card-frame.tsx';
import { useCardKeys } from '../../waiting/card-keys.ts';
import { CardLink } from '../../waiting/card-link.tsx';
import { LazyQuestionCard, LazySignInCard } from '../../waiting/lazy.tsx';
import { keyOf, type WaitingItem } from '../../waiting/queue.ts';

/** The most cards shown at once. */
const SHOWN = 20;

export function Questions({ items, team }: { items: readonly WaitingItem[]; team: string | undefined }) {
  const { data: agents = [] } = useQuery(agentsQuery);
  // On phones a request opens on the whole screen, with its answers within reach of the thumb.
  const is_handheld = useHandheld();
  const section = useRef<HTMLElement>(null);
  const cardKeys = useCardKeys(section);
  // The page itself says why the run waits, and resumes it.
  const shown = items.filter(({ kind }) => kind !== 'run');
  if (shown.length === 0) return null;
  return (
    <section ref={section} aria-label="Pending requests" className="flex flex-col gap-2">
      <CardKeysContext value={cardKeys}>
        {shown
          .slice(0, SHOWN)
          .map((item) =>
            is_handheld ? (
              <CardLink key={keyOf(item)} item={item} />
            ) : (
              <Card
                key={keyOf(item)}
                item={item}
                agent={agents.find(({ id }) => id === item.agent_id)}
                team={team}
              />
            ),
          )}
      </CardKeysContext>
      {shown.length > SHOWN && <p className="text-muted">{shown.length - SHOWN} more pending.</p>}
    </section>
  );
}

function Card({
  item,
  agent,
  team,
}: {
  item: WaitingItem;
  agent: AgentRecord | undefined;
  team: string | undefined;
}) {
  switch (item.kind) {
    case 'permission':
      return <ReviewCard review={toReviewView(item.review)} agent={agent} team={team} named />;
    case 'elicitation':
      return <ElicitationCard elicitation={item.elicitation} agent={agent} named />;
    case 'question':
      return <LazyQuestionCard step={item.step} open agent={agent} named />;
    case 'sign_in':
      return <LazySignInCard agent={agent ?? item.agent} open named />;
    case 'run':
      return null;
  }
}
