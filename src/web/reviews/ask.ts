/** A permission review or an elicitation: a request that waits for a user's answer. */
import type { ElicitationRecord, ReviewRecord } from '../api/queries.ts';

export type Ask = ReviewRecord | ElicitationRecord;

export function isReview(ask: Ask): ask is ReviewRecord {
  return 'tool_call' in ask;
}
