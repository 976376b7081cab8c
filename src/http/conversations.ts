/** Conversations and permission reviews over HTTP: parse, call, shape the answer. */
import type { Prompting } from '../services/acp/prompting.ts';
import type { Reviews } from '../services/acp/reviews.ts';
import type { Handlers } from './call.ts';
import { asList } from './list.ts';

type ConversationOperations =
  | 'promptAgent'
  | 'listPrompts'
  | 'getPrompt'
  | 'editPrompt'
  | 'deletePrompt'
  | 'cancelTurn'
  | 'getAgentConfig'
  | 'setAgentConfig'
  | 'authenticateAgent';

export function conversationHandlers(prompting: Prompting): Pick<Handlers, ConversationOperations> {
  return {
    promptAgent: ({ caller, params, body, idempotency_key }) =>
      prompting.prompt(caller, params.agent_id, body, idempotency_key),
    listPrompts: ({ caller, params }) => prompting.list(caller, params.agent_id),
    getPrompt: ({ caller, params }) => prompting.get(caller, params.agent_id, params.prompt_id),
    editPrompt: ({ caller, params, body }) => prompting.edit(caller, params.agent_id, params.prompt_id, body),
    deletePrompt: async ({ caller, params }) => {
      await prompting.remove(caller, params.agent_id, params.prompt_id);
      return undefined;
    },
    cancelTurn: ({ caller, params }) => prompting.cancel(caller, params.agent_id),
    getAgentConfig: ({ caller, params }) => prompting.config(caller, params.agent_id),
    setAgentConfig: ({ caller, params, body }) => prompting.configure(caller, params.agent_id, body),
    authenticateAgent: ({ caller, params, body }) =>
      prompting.authenticate(caller, params.agent_id, body.method_id),
  };
}

type ReviewOperations = 'listReviews' | 'getReview' | 'respondReview' | 'routeReview';

export function reviewHandlers(reviews: Reviews): Pick<Handlers, ReviewOperations> {
  return {
    listReviews: async ({ caller, query }) => asList(query, await reviews.list(caller, query, query)),
    getReview: ({ caller, params }) => reviews.get(caller, params.review_id),
    respondReview: ({ caller, params, body, idempotency_key }) =>
      reviews.respond(caller, params.review_id, body, idempotency_key),
    routeReview: ({ caller, params, body }) => reviews.route(caller, params.review_id, body.to_actor_id),
  };
}
