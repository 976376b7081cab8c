/**
 * The number of the last event of an agent that a user has seen. Rows are deleted with the user and with the agent. Everybody
 * has seen what there was before.
 */
export const sql = `
CREATE TABLE agents_seen (
  num INTEGER PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users(id) ON DELETE CASCADE,
  agent_num INTEGER NOT NULL REFERENCES agents(num) ON DELETE CASCADE,
  last_seen INTEGER NOT NULL,
  UNIQUE (user_id, agent_num)
);
CREATE INDEX agents_seen_agent ON agents_seen(agent_num);
INSERT INTO agents_seen (user_id, agent_num, last_seen)
  SELECT users.id, heads.agent_num, heads.last_seq FROM users, heads WHERE heads.last_seq > 0;
`;
