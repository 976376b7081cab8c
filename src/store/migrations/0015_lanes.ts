/**
 * Renames a column of the outbox to `lane`: it was named after sessions, but also holds ids of agents, subscriptions
 * and owners. Renames `run_steps.upstream_failed` as in the API. Drops columns that nothing reads.
 */
export const sql = `
ALTER TABLE outbox RENAME COLUMN session_id TO lane;
ALTER TABLE outbox DROP COLUMN attempts;
ALTER TABLE outbox DROP COLUMN next_at;
DROP INDEX outbox_session;
CREATE INDEX outbox_lane ON outbox(lane, id);
ALTER TABLE run_steps RENAME COLUMN spoiled TO upstream_failed;
ALTER TABLE segments DROP COLUMN first_ts;
ALTER TABLE settings DROP COLUMN updated_at;
ALTER TABLE settings DROP COLUMN updated_by;
ALTER TABLE bootstrap_tokens DROP COLUMN spent_at;
`;
