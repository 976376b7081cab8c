/**
 * Requests for agents whose node does not answer, stored in the agent's row and deleted with it. Also agents and
 * sessions that were forgotten while their node was away: a row is for an agent (`id` is `agent_id`) or a single
 * session. A session's row is deleted once its node reports that it does not have the session. An agent's row stays,
 * because its machine may return at any time.
 */
export const sql = `
ALTER TABLE agents ADD COLUMN pending_request TEXT;
CREATE TABLE forgotten (
  id TEXT PRIMARY KEY,
  agent_id TEXT NOT NULL,
  node_id TEXT NOT NULL,
  created_at INTEGER NOT NULL
);
`;
