/** Permission reviews: the requests that agents make before they act, and their answers. */
import type { AgentsFeature } from '../agents/index.ts';
import type { Core, Feature } from '../feature.ts';
import { reviewHandlers } from './http.ts';
import { hasPendingReview, renameInReviews } from './queries.ts';
import type { ReviewRouting } from './routing.ts';
import { Reviews } from './service.ts';

export interface ReviewsFeature extends Feature {
  reviews: Reviews;
  routing: ReviewRouting;
}

/** Histogram buckets of the waiting time, from a second to a day. */
const WAITS_S = [1, 3, 10, 30, 100, 300, 1_000, 3_600, 14_400, 86_400];

export function openReviews({ settings, extensions, metrics }: Core, agents: AgentsFeature): ReviewsFeature {
  const routing: ReviewRouting = {
    participants: (reader, agent) => extensions.participantsOf(reader, agent),
    leader_timeout_ms: () => settings.get('reviews.leader_timeout_seconds') * 1000,
    notify: (tx, notice) => extensions.notifyLeader(tx, notice),
  };
  const help = 'Time that agents waited for an answer.';
  const waited = metrics.times('svc_permission_wait_seconds', help, WAITS_S);
  const onAnswered = (waited_ms: number) => waited(waited_ms / 1000);
  const reviews = new Reviews(agents.core, { routing, onAnswered });
  return {
    name: 'reviews',
    ...{ reviews, routing },
    routes: reviewHandlers(reviews),
    resources: { review_id: (caller, _action, { review_id }) => reviews.get(caller, review_id!) },
    timers: reviews.timers(),
    extensions: { onUserRenamed: renameInReviews },
    session: {
      onStdinWritten: (session_id, length) => reviews.written(session_id, length),
      awaitsAnswer: hasPendingReview,
    },
  };
}
