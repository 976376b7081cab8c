/** HTTP handlers for conversations: parse, call, shape the response. */
import type { Handlers } from '../../server/call.ts';
import { asShortList } from '../../server/list.ts';
import type { Prompting } from './prompting.ts';

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
    listPrompts: async ({ caller, params, query }) =>
      asShortList(query, await prompting.list(caller, params.agent_id)),
    getPrompt: ({ caller, params }) => prompting.get(caller, params.agent_id, params.prompt_id),
    editPrompt: ({ caller, params, body }) => prompting.edit(caller, params.agent_id, params.prompt_id, body),
    deletePrompt: async ({ caller, params }) => {
      await prompting.remove(caller, params.agent_id, params.prompt_id);
      return undefined;
    },
    cancelTurn: ({ caller, params, body }) => prompting.cancel(caller, params.agent_id, body.prompt_id),
    getAgentConfig: ({ caller, params }) => prompting.config(caller, params.agent_id),
    setAgentConfig: ({ caller, params, body }) => prompting.configure(caller, params.agent_id, body),
    authenticateAgent: ({ caller, params, body }) =>
      prompting.authenticate(caller, params.agent_id, body.method_id),
  };
}
