/** HTTP handlers for permission reviews: parse, call, shape the response. */
import type { Handlers } from '../../server/call.ts';
import { asCappedList } from '../../server/list.ts';
import type { Reviews } from './service.ts';

type ReviewOperations = 'listReviews' | 'getReview' | 'respondReview' | 'routeReview';

export function reviewHandlers(reviews: Reviews): Pick<Handlers, ReviewOperations> {
  return {
    listReviews: async (call) => asCappedList(call, await reviews.list(call.caller, call.query, call.query)),
    getReview: ({ caller, params }) => reviews.get(caller, params.review_id),
    respondReview: ({ caller, params, body: { message, ...answer }, idempotency_key }) =>
      reviews.respond(caller, params.review_id, answer, idempotency_key, message),
    routeReview: ({ caller, params, body }) => reviews.route(caller, params.review_id, body.to_actor_id),
  };
}
