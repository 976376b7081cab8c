/** The actor methods in a team. The caller is authenticated, and each change is one transaction. */
import type { Reader, Store } from '../../store/store.ts';
import { findUser } from '../../store/users.ts';
import type { ActorMethods } from '../feature.ts';
import type { Reviews } from '../reviews/service.ts';
import type { Runs } from '../runs/service.ts';
import { listHumans } from '../teams/queries.ts';
import { type ActorRequestContext, actAs, actInRun, getSpec, listPeers } from './acting.ts';
import { type ReviewMethods, reviewMethods } from './review-methods.ts';
import { type ActorCaller, humanActorId } from './rules/actor.ts';
import { type StepMethods, stepMethods } from './step-methods.ts';
import { ActorTransactions } from './transactions.ts';

export type TeamMethods = Pick<ActorMethods, 'team-members' | 'run-members'> & StepMethods & ReviewMethods;

export interface TeamMethodsOptions {
  store: Store;
  runs: Pick<Runs, 'commands' | 'membersOf'>;
  reviews: Pick<Reviews, 'list' | 'listFor' | 'respond' | 'respondAs'>;
}

export function teamMethods({ store, runs, reviews }: TeamMethodsOptions): TeamMethods {
  const transactions = new ActorTransactions(store);
  return {
    'team-members': (caller, context) =>
      store.read(async (reader) => {
        const { team, run } = await inTeam(reader, caller, context);
        const names = (await listHumans(reader, team.num)).map(({ username }) => username);
        const creator = (await findUser(reader, team.created_by))?.username;
        const people = [...new Set([...(creator === undefined ? [] : [creator]), ...names])].map(
          humanActorId,
        );
        return { members: listPeers(team, getSpec(team, run), people) };
      }),
    'run-members': (caller, context) =>
      store.read(async (reader) => {
        const { team, run } = await actInRun(reader, caller, context);
        return runs.membersOf(reader, team, run);
      }),
    ...stepMethods(store, transactions, runs),
    ...reviewMethods(store, reviews),
  };
}

async function inTeam(reader: Reader, caller: ActorCaller, context: ActorRequestContext) {
  const acting = await actAs(reader, caller, context);
  const { team, run } = acting.team === null ? await actInRun(reader, caller, context) : acting;
  return { team: team!, run };
}
