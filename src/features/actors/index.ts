/** The methods that agents and operators call over gRPC and MCP. */
import type { Core, Feature } from '../feature.ts';
import type { MailboxFeature } from '../mailbox/index.ts';
import type { ReviewsFeature } from '../reviews/index.ts';
import type { RunsFeature } from '../runs/index.ts';
import { teamMethods } from './team-methods.ts';

export interface ActorMethodsNeeds {
  reviews: ReviewsFeature;
  runs: RunsFeature;
  mailbox: MailboxFeature;
}

export function openActorMethods({ store }: Core, needs: ActorMethodsNeeds): Feature {
  const { mailbox, triggers } = needs.mailbox;
  const { reviews } = needs.reviews;
  const { runs } = needs.runs;
  const actor_methods = teamMethods({ store, runs, reviews, mailbox, triggers });
  return { name: 'actors', actor_methods };
}
