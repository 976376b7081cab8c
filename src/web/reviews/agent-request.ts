/** A permission review or an elicitation: an agent's request that a user answers. */
import type { ElicitationRecord, ReviewRecord } from '../api/queries.ts';

export type AgentRequest = ReviewRecord | ElicitationRecord;

export function isReview(request: AgentRequest): request is ReviewRecord {
  return 'tool_call' in request;
}
