/** The pending reviews and elicitations of a run's agents, and the questions of its steps, at the top of its page. */
import { useQuery } from '@tanstack/react-query';
import {
  agentsQuery,
  type ElicitationRecord,
  type ReviewRecord,
  type WaitingStepRecord,
} from '../../api/queries.ts';
import { ElicitationCard } from '../../elicitations/card.tsx';
import { ReviewCard } from '../../reviews/card.tsx';
import { toReviewView } from '../../reviews/review-view.ts';
import { LazyQuestionCard } from '../../waiting/lazy.tsx';

/** The most cards shown at once. */
const SHOWN = 20;

export function Questions({
  reviews,
  elicitations,
  steps,
  team,
}: {
  reviews: readonly ReviewRecord[];
  elicitations: readonly ElicitationRecord[];
  steps: readonly WaitingStepRecord[];
  team: string | undefined;
}) {
  const { data: agents = [] } = useQuery(agentsQuery);
  const kinds = [reviews, elicitations, steps];
  const left = kinds.reduce((sum, { length }) => sum + Math.max(0, length - SHOWN), 0);
  if (kinds.every(({ length }) => length === 0)) return null;
  return (
    <section aria-label="Pending requests" className="flex flex-col gap-2">
      {steps.slice(0, SHOWN).map((step) => (
        <LazyQuestionCard
          key={step.step_key}
          step={step}
          open
          agent={agents.find(({ id }) => id === step.agent_id)}
          named
        />
      ))}
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
