/** HTTP handlers for the marks of what a person has seen. */
import type { Handlers } from '../../../server/call.ts';
import { asList } from '../../../server/list.ts';
import type { SeenMarks } from '../seen.ts';

export function seenHandlers(seen: SeenMarks): Pick<Handlers, 'listSeen' | 'markSeen'> {
  return {
    listSeen: async ({ caller, query }) => asList(query, await seen.list(caller, query)),
    markSeen: ({ caller, params, body }) => seen.mark(caller, params.agent_id, body.seq),
  };
}
