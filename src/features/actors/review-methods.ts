/** Actor methods about permission reviews. */
import { invalid } from '../../core/problem.ts';
import type { Store } from '../../store/store.ts';
import type { ActorMethods } from '../feature.ts';
import type { MemberAnswerer, Reviews } from '../reviews/service.ts';
import { type Acting, actAsOperator, commanderOf, getInbox } from './acting.ts';
import type { ActorCaller } from './rules/actor.ts';

export type ReviewMethods = Pick<ActorMethods, 'permission-review-list' | 'permission-review-respond'>;

export function reviewMethods(
  store: Store,
  reviews: Pick<Reviews, 'list' | 'listFor' | 'respond' | 'respondAs'>,
): ReviewMethods {
  return {
    'permission-review-list': async (caller, context) => {
      const acting = await store.read((reader) => actAsOperator(reader, caller, context));
      if (acting.kind === 'member') return { reviews: await reviews.listFor(toAnswerer(caller, acting)) };
      return { reviews: (await reviews.list(acting.caller, { status: 'pending' }, {})).items };
    },
    'permission-review-respond': async (caller, { review_id, decision, option_id, outcome, ...context }) => {
      if ((outcome === undefined) === (decision === undefined && option_id === undefined))
        throw invalid('decision must be one of decision, option_id and outcome');
      const acting = await store.read((reader) => actAsOperator(reader, caller, context));
      const answer = { decision, option_id, outcome };
      if (acting.kind === 'member') return reviews.respondAs(toAnswerer(caller, acting), review_id, answer);
      return reviews.respond(acting.caller, review_id, answer, null);
    },
  };
}

function toAnswerer(caller: ActorCaller, acting: Extract<Acting, { kind: 'member' }>): MemberAnswerer {
  const { ip, operator } = commanderOf(caller, acting);
  return { ...getInbox(acting), member_id: acting.member.member_id, team_num: acting.team.num, ip, operator };
}
