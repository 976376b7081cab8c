/**
 * The status with which a run ended, for the sessions that its end stopped. In earlier runs, these are the cancelled ones that
 * ended after the run.
 */
export const sql = `
ALTER TABLE sessions ADD COLUMN stopped_by_run TEXT;
UPDATE sessions SET stopped_by_run = runs.status
FROM agents JOIN runs ON runs.num = agents.run_num
WHERE agents.session_id = sessions.id AND agents.status = 'cancelled'
  AND runs.status IN ('completed', 'failed', 'cancelled') AND sessions.ended_at >= runs.ended_at;
`;
