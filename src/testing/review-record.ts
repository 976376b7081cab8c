/** A permission review record for tests of views. */
import type { Review } from '../features/reviews/rules.ts';
import { time } from './agent-record.ts';

export function reviewRecord(fields: Partial<Review> = {}): Review {
  return {
    id: 'rev_1',
    agent_id: 'agt_1',
    session_id: 'ses_1',
    team_id: null,
    run_id: null,
    origin_actor_id: null,
    route: 'human',
    routed_to: null,
    subagent: null,
    tool_call: { toolCallId: 'c1', title: 'npm publish', kind: 'execute' },
    options: [],
    status: 'pending',
    decision: null,
    option_id: null,
    answered_by: null,
    delivery: null,
    created_at: time,
    answered_at: null,
    expires_at: null,
    ...fields,
  };
}
