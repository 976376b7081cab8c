/** What the actor surface has of teams' services. */
import { Problem } from '../domain/problem.ts';
import type { ActorDeps } from '../services/actors/deps.ts';

/** Stands where no team is served. */
export function absentTeams(): ActorDeps {
  const absent = (): never => {
    throw new Problem('unavailable', 'teams_unavailable', 'teams are not available');
  };
  return {
    runs: {
      members: absent,
      steps: absent,
      addStep: absent,
      completeStep: absent,
      failStep: absent,
      completeRun: absent,
      failRun: absent,
    },
    mailbox: { send: absent, inbox: absent, ack: absent, mailed: absent },
    triggers: { list: absent, set: absent, cancel: absent },
  };
}
