/** The methods that agents and operators call over gRPC and MCP. Other features add their own methods. */
import type { Core, Feature } from '../feature.ts';
import type { ReviewsFeature } from '../reviews/index.ts';
import type { RunsFeature } from '../runs/index.ts';
import { teamMethods } from './team-methods.ts';

export interface ActorMethodsNeeds {
  reviews: ReviewsFeature;
  runs: RunsFeature;
}

export function openActorMethods({ store }: Core, needs: ActorMethodsNeeds): Feature {
  const { reviews } = needs.reviews;
  const { runs } = needs.runs;
  return { name: 'actors', actor_methods: teamMethods({ store, runs, reviews }) };
}
