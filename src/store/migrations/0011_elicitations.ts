/**
 * What agents ask people to enter in a form or to open in a browser. Rows are deleted with their agent, like reviews.
 * The answers are not stored; they go only to the agent.
 */
export const sql = `
CREATE TABLE elicitations (
  num INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  agent_num INTEGER NOT NULL REFERENCES agents(num) ON DELETE CASCADE,
  session_num INTEGER NOT NULL,
  request_id TEXT NOT NULL,
  acp_id TEXT,
  tool_call_id TEXT,
  mode TEXT NOT NULL CHECK (mode IN ('form', 'url')),
  message TEXT NOT NULL,
  form TEXT,
  url TEXT,
  status TEXT NOT NULL CHECK (status IN ('pending', 'accepted', 'declined', 'cancelled', 'expired')),
  answered_by TEXT,
  delivery TEXT CHECK (delivery IN ('queued', 'written', 'undeliverable')),
  stdin_end INTEGER,
  created_at INTEGER NOT NULL,
  answered_at INTEGER,
  completed_at INTEGER,
  expires_at INTEGER
);
CREATE INDEX elicitations_agent ON elicitations(agent_num, num);
CREATE INDEX elicitations_pending ON elicitations(agent_num) WHERE status = 'pending';
CREATE INDEX elicitations_queued ON elicitations(session_num) WHERE delivery = 'queued';
CREATE INDEX elicitations_incomplete ON elicitations(session_num, acp_id)
  WHERE acp_id IS NOT NULL AND completed_at IS NULL;
`;
