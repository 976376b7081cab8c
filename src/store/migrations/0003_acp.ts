/**
 * Agents that speak ACP: the state of each session, pending and sent prompts, and permission reviews. Prompts and
 * reviews are kept as long as their agent, like its log, and deleted with it.
 */
export const sql = `
ALTER TABLE agents ADD COLUMN acp_session_id TEXT;
ALTER TABLE sessions ADD COLUMN protocol TEXT NOT NULL DEFAULT 'plain' CHECK (protocol IN ('plain', 'acp'));
ALTER TABLE sessions ADD COLUMN stdin_lost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spools ADD COLUMN output INTEGER;
CREATE TABLE acp_states (
  session_num INTEGER PRIMARY KEY REFERENCES sessions(num) ON DELETE CASCADE,
  state TEXT NOT NULL
);
CREATE TABLE prompts (
  num INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  agent_num INTEGER NOT NULL REFERENCES agents(num) ON DELETE CASCADE,
  session_num INTEGER,
  state TEXT NOT NULL CHECK (state IN ('queued', 'sent', 'ended', 'lost')),
  content TEXT NOT NULL,
  stop_reason TEXT,
  created_by TEXT,
  created_at INTEGER NOT NULL,
  sent_at INTEGER,
  ended_at INTEGER
);
CREATE INDEX prompts_open ON prompts(agent_num, num) WHERE state IN ('queued', 'sent');
CREATE TABLE reviews (
  num INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  agent_num INTEGER NOT NULL REFERENCES agents(num) ON DELETE CASCADE,
  session_num INTEGER NOT NULL,
  request_id TEXT NOT NULL,
  tool_call TEXT NOT NULL,
  options TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'answered', 'cancelled', 'expired')),
  decision TEXT,
  option_id TEXT,
  answered_by TEXT,
  delivery TEXT CHECK (delivery IN ('queued', 'written', 'undeliverable')),
  stdin_end INTEGER,
  origin_actor_id TEXT,
  route TEXT NOT NULL,
  routed_to TEXT,
  created_at INTEGER NOT NULL,
  answered_at INTEGER,
  expires_at INTEGER
);
CREATE INDEX reviews_agent ON reviews(agent_num, num);
CREATE INDEX reviews_pending ON reviews(agent_num) WHERE status = 'pending';
CREATE INDEX reviews_queued ON reviews(session_num) WHERE delivery = 'queued';
`;
