/** The event streams: an agent's log, and the changes of all records. */
import type { AgentsFeature } from '../agents/index.ts';
import type { Core, Feature } from '../feature.ts';
import type { TeamsFeature } from '../teams/index.ts';
import type { Tokens } from '../tokens/service.ts';
import { streamHandlers } from './http.ts';

export interface StreamsNeeds {
  agents: AgentsFeature;
  teams: TeamsFeature;
  tokens: Tokens;
}

export function openStreams({ events, feed, streams }: Core, needs: StreamsNeeds): Feature {
  const { agents } = needs.agents;
  const { membership } = needs.teams;
  const routes = streamHandlers({ agents, log: events, feed, membership, tokens: needs.tokens, streams });
  return { name: 'streams', routes };
}
