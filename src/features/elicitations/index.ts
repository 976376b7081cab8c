/** Elicitations: input that agents request from people. */
import type { AgentsFeature } from '../agents/index.ts';
import type { Feature } from '../feature.ts';
import { elicitationHandlers } from './http.ts';
import { hasPendingElicitation } from './queries.ts';
import { Elicitations } from './service.ts';

export function openElicitations(agents: AgentsFeature): Feature & { elicitations: Elicitations } {
  const elicitations = new Elicitations(agents.core);
  return {
    name: 'elicitations',
    elicitations,
    routes: elicitationHandlers(elicitations),
    resources: {
      elicitation_id: (caller, _action, { elicitation_id }) => elicitations.get(caller, elicitation_id!),
    },
    timers: elicitations.timers(),
    session: {
      onStdinWritten: (session_id, length) => elicitations.written(session_id, length),
      awaitsAnswer: hasPendingElicitation,
    },
  };
}
