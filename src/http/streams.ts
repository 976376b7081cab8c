/** The two event streams: one agent's log, and the fleet's changes. */

import type { Feed } from '../events/feed.ts';
import type { EventLog } from '../events/log.ts';
import { parsePosition } from '../events/position.ts';
import type { Agents } from '../services/agents/agents.ts';
import type { Membership } from '../services/teams/membership.ts';
import type { Tokens } from '../services/tokens.ts';
import type { Handlers } from './call.ts';
import type { Streams } from './sse.ts';

export function streamHandlers(deps: {
  agents: Pick<Agents, 'mayRead'>;
  log: Pick<EventLog, 'follow'>;
  feed: Pick<Feed, 'follow'>;
  membership: Pick<Membership, 'sees'>;
  tokens: Pick<Tokens, 'isLive'>;
  streams: Streams;
}): Pick<Handlers, 'followAgent' | 'followAll'> {
  const { agents, log, feed, membership, tokens, streams } = deps;
  return {
    followAgent: async (call) => {
      const { caller, params, query } = call;
      const audience = await agents.mayRead(caller, params.agent_id);
      const position = parsePosition({ last_event_id: lastEventId(call), ...query });
      const open = (signal: AbortSignal) => log.follow(params.agent_id, position, signal);
      // A team's human may be one no longer.
      const holds = async () => membership.sees(caller, audience) && (await tokens.isLive(caller.token_id));
      await streams.serve(call, open, holds);
    },
    followAll: async (call) => {
      const { caller, query } = call;
      const position = parsePosition({ last_event_id: lastEventId(call), ...query });
      await streams.serve(
        call,
        (signal) => feed.follow((audience) => membership.sees(caller, audience), position, signal),
        () => tokens.isLive(caller.token_id),
      );
    },
  };
}

/** An empty header is what an `EventSource` sends before its first event: no position. */
export function lastEventId(call: {
  headers: { [name: string]: string | string[] | undefined };
}): string | undefined {
  const header = call.headers['last-event-id'];
  return header === undefined || header === '' ? undefined : String(header);
}
