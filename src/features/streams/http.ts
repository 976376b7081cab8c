/** HTTP handlers of the two event streams: an agent's log, and the fleet's changes. */

import type { Feed } from '../../events/feed.ts';
import type { EventLog } from '../../events/log.ts';
import { parsePosition } from '../../events/position.ts';
import type { Handlers } from '../../server/call.ts';
import { lastEventId, type Streams } from '../../server/sse.ts';
import type { Agents } from '../agents/service.ts';
import type { Membership } from '../teams/membership.ts';
import type { Tokens } from '../tokens/service.ts';

export function streamHandlers(deps: {
  agents: Pick<Agents, 'authorizeRead'>;
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
      const audience = await agents.authorizeRead(caller, params.agent_id);
      const position = parsePosition({ last_event_id: lastEventId(call), ...query });
      // A human member may have left the team in the meantime.
      const isAuthorized = async () =>
        membership.sees(caller, audience) && (await tokens.isLive(caller.token_id));
      await streams.serve(
        call,
        (signal, write) => log.follow(params.agent_id, position, signal, write),
        isAuthorized,
      );
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
