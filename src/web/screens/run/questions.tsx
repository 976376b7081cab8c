/** What agents of the run ask, above everything else: they wait for an answer, which can be given here. */
import { useQuery } from '@tanstack/react-query';
import { agentsQuery, type ReviewRecord } from '../../api/queries.ts';
import { ReviewCard } from '../../reviews/card.tsx';
import { questionOf } from '../../reviews/question.ts';

/** Those beyond are answered once these are. */
const SHOWN = 20;

export function Questions({ reviews, team }: { reviews: readonly ReviewRecord[]; team: string | undefined }) {
  const { data: agents = [] } = useQuery(agentsQuery);
  if (reviews.length === 0) return null;
  return (
    <section aria-label="Questions that wait" className="flex flex-col gap-2">
      {reviews.slice(0, SHOWN).map((review) => (
        <ReviewCard
          key={review.id}
          question={questionOf(review)}
          agent={agents.find(({ id }) => id === review.agent_id)}
          team={team}
          named
        />
      ))}
      {reviews.length > SHOWN && <p className="text-muted">{reviews.length - SHOWN} more wait.</p>}
    </section>
  );
}
