/** An agent's log other than live: pages of events, raw output, search. */
import { limits } from '../base/limits.ts';
import type { EventLog } from '../events/log.ts';
import type { Agents } from '../services/agents/agents.ts';
import { page, readCursor } from '../services/page.ts';
import type { Handlers } from './call.ts';
import { asList } from './list.ts';

export function logHandlers(deps: { agents: Agents; log: EventLog }): Pick<Handlers, 'getLog'> {
  const { agents, log } = deps;
  return {
    getLog: async ({ caller, params, query }) => {
      await agents.mayRead(caller, params.agent_id);
      const limit = query.limit ?? limits.page_items_max;
      const [cursor] = readCursor(query.cursor, 'number') ?? [query.after];
      const { before, type: types } = query;
      const events = await log.page(params.agent_id, { after: cursor, before, limit: limit + 1, types });
      // The ones right before a number: what is too much stands at the beginning.
      const backwards = before !== undefined && cursor === undefined;
      const shown = backwards ? events.slice(-limit) : events;
      return asList(query, page(shown, limit, (event) => event, (event) => [event.seq]));
    },
  };
}
