/** The pending reviews and elicitations of a run's agents, at the top of its page. */
import { useQuery } from '@tanstack/react-query';
import { agentsQuery, type ElicitationRecord, type ReviewRecord } from '../../api/queries.ts';
import { ElicitationCard } from '../../elicitations/card.tsx';
import { ReviewCard } from '../../reviews/card.tsx';
import { toReviewView } from '../../reviews/review-view.ts';

/** The most cards shown at once. */
const SHOWN = 20;

export function Questions({
  reviews,
  elicitations,
  team,
}: {
  reviews: readonly ReviewRecord[];
  elicitations: readonly ElicitationRecord[];
  team: string | undefined;
}) {
  const { data: agents = [] } = useQuery(agentsQuery);
  const left = Math.max(0, reviews.length - SHOWN) + Math.max(0, elicitations.length - SHOWN);
  if (reviews.length + elicitations.length === 0) return null;
  return (
    <section aria-label="Pending requests" className="flex flex-col gap-2">
      {reviews.slice(0, SHOWN).map((review) => (
        <ReviewCard
          key={review.id}
          review={toReviewView(review)}
          agent={agents.find(({ id }) => id === review.agent_id)}
          team={team}
          named
        />
      ))}
      {elicitations.slice(0, SHOWN).map((elicitation) => (
        <ElicitationCard
          key={elicitation.id}
          elicitation={elicitation}
          agent={agents.find(({ id }) => id === elicitation.agent_id)}
          named
        />
      ))}
      {left > 0 && <p className="text-muted">{left} more pending.</p>}
    </section>
  );
}
