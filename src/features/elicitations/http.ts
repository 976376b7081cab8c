/** Elicitations over HTTP: parse, call, format the response. */

import type { Handlers } from '../../server/call.ts';
import { asCappedList } from '../../server/list.ts';
import type { Elicitations } from './service.ts';

type ElicitationOperations = 'listElicitations' | 'getElicitation' | 'respondElicitation';

export function elicitationHandlers(elicitations: Elicitations): Pick<Handlers, ElicitationOperations> {
  return {
    listElicitations: async (call) =>
      asCappedList(call, await elicitations.list(call.caller, call.query, call.query)),
    getElicitation: ({ caller, params }) => elicitations.get(caller, params.elicitation_id),
    respondElicitation: ({ caller, params, body, idempotency_key }) =>
      elicitations.respond(caller, params.elicitation_id, body, idempotency_key),
  };
}
