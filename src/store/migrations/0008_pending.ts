/**
 * Requests for agents whose node does not answer, kept in the agent's row and gone with it; and what was forgotten while its
 * node was away. A row is an agent's (`id` is `agent_id`) or a single session's. A session's goes once its node shows that it does not
 * have it; an agent's stays, because its machine may come back after any time: one row for each agent that root gave up.
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
