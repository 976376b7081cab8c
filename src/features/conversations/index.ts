/** Conversations with agents that speak ACP: prompts, turns and settings. */
import { idFrom, newId } from '../../base/ids.ts';
import type { AgentsFeature } from '../agents/index.ts';
import type { Core, Feature } from '../feature.ts';
import type { ReviewsFeature } from '../reviews/index.ts';
import { conversationHandlers } from './http.ts';
import { Prompting } from './prompting.ts';
import { queuePrompt } from './queries.ts';
import { Conversations } from './service.ts';

export interface ConversationsFeature extends Feature {
  prompting: Prompting;
}

export function openConversations(
  { settings, clock }: Core,
  { agents, reviews }: { agents: AgentsFeature; reviews: Pick<ReviewsFeature, 'routing'> },
): ConversationsFeature {
  const prompting = new Prompting(agents.core);
  const conversations = new Conversations(agents.core, {
    review_timeout_ms: () => {
      const timeout_s = settings.get('reviews.timeout_seconds');
      return timeout_s === null ? null : timeout_s * 1000;
    },
    acp_version: () => settings.get('agents.acp_version'),
    routing: reviews.routing,
    onResponse: (request_id, error) => prompting.onResponse(request_id, error),
    onNoResponse: (request_ids) => prompting.onNoResponse(request_ids),
  });
  return {
    name: 'conversations',
    prompting,
    routes: conversationHandlers(prompting),
    facts: { conversations: conversations.facts() },
    timers: conversations.timers(),
    session: {
      beforeStop: (tx, session_id) => conversations.beforeStop(tx, session_id),
      onFrames: (batch) => conversations.frames(batch),
    },
    extensions: {
      promptAgent: async (tx, caller, agent_id, text) => {
        await prompting.promptIn(tx, caller, agent_id, [{ type: 'text', text }], newId('prm'));
      },
      onAgentCreated: async (tx, { id, num }, { prompt, user_id }) => {
        if (prompt === null) return;
        const content = [{ type: 'text', text: prompt }];
        const created_at = clock.now();
        await queuePrompt(tx, num, { id: idFrom('prm', id), content, created_by: user_id, created_at });
      },
    },
  };
}
