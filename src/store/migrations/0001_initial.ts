/** The initial schema, for a single machine. Rowid tables with a unique key were twice as fast as WITHOUT ROWID. */
export const sql = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE users (
  id TEXT PRIMARY KEY,
  username TEXT NOT NULL UNIQUE,
  role TEXT NOT NULL CHECK (role IN ('root', 'user')),
  password_hash TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE TABLE tokens (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users(id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('session', 'api')),
  hash BLOB NOT NULL UNIQUE,
  name TEXT,
  user_agent TEXT,
  ip TEXT,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER NOT NULL,
  idle_expires_at INTEGER,
  expires_at INTEGER
);
CREATE INDEX tokens_user ON tokens(user_id);
CREATE TABLE join_challenges (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  token_hash BLOB NOT NULL,
  pin_hash BLOB NOT NULL,
  tries_left INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  used INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE login_throttle (
  key TEXT PRIMARY KEY,
  failures INTEGER NOT NULL,
  window_started_at INTEGER NOT NULL,
  blocked_until INTEGER NOT NULL
);
CREATE TABLE audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  ts INTEGER NOT NULL,
  level TEXT NOT NULL,
  event TEXT NOT NULL,
  agent_id TEXT,
  user_id TEXT,
  ip TEXT,
  workdir TEXT,
  details TEXT NOT NULL,
  hash BLOB NOT NULL
);
CREATE INDEX audit_event ON audit(event, id);
CREATE INDEX audit_user ON audit(user_id, id);
CREATE INDEX audit_agent ON audit(agent_id, id);
CREATE TRIGGER audit_append_only_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;
CREATE TRIGGER audit_append_only_delete BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;
CREATE TABLE idempotency (
  user_id TEXT NOT NULL,
  key TEXT NOT NULL,
  request_hash BLOB NOT NULL,
  status INTEGER,
  body TEXT,
  location TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (user_id, key)
);
CREATE INDEX idempotency_age ON idempotency(created_at);
CREATE TABLE settings (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  updated_by TEXT
);

CREATE TABLE agents (
  num INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  owner_id TEXT NOT NULL,
  node_id TEXT NOT NULL,
  workdir TEXT NOT NULL,
  command TEXT NOT NULL,
  argv TEXT,
  protocol TEXT NOT NULL,
  preset TEXT,
  worktree_mode TEXT NOT NULL,
  worktree_repo TEXT,
  worktree_ref TEXT,
  worktree_branch TEXT,
  worktree_base TEXT,
  env TEXT NOT NULL,
  labels TEXT NOT NULL,
  restart_policy TEXT NOT NULL,
  stdin INTEGER NOT NULL,
  on_exit TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('created', 'running', 'completed', 'failed', 'cancelled')),
  activity TEXT,
  exit_code INTEGER,
  exit_signal TEXT,
  reason TEXT,
  cleanup TEXT,
  leftovers TEXT NOT NULL DEFAULT '[]',
  session_id TEXT,
  session_count INTEGER NOT NULL DEFAULT 0,
  restart_count INTEGER NOT NULL DEFAULT 0,
  pending TEXT,
  stale_since INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER
);
CREATE INDEX agents_owner ON agents(owner_id, num);
CREATE INDEX agents_node ON agents(node_id);
CREATE TABLE sessions (
  num INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  agent_num INTEGER NOT NULL REFERENCES agents(num) ON DELETE CASCADE,
  node_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('starting', 'running', 'ended')),
  stopping INTEGER NOT NULL DEFAULT 0,
  pid INTEGER,
  exit_code INTEGER,
  exit_signal TEXT,
  reason TEXT,
  cleanup TEXT,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  first_seq INTEGER NOT NULL,
  fact INTEGER NOT NULL DEFAULT 0,
  stdin_bytes INTEGER NOT NULL DEFAULT 0,
  UNIQUE (agent_num, number)
);
CREATE INDEX sessions_live ON sessions(node_id) WHERE state <> 'ended';
CREATE TABLE spools (
  session_num INTEGER NOT NULL REFERENCES sessions(num) ON DELETE CASCADE,
  stream INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  base INTEGER NOT NULL DEFAULT 0,
  tail BLOB NOT NULL,
  PRIMARY KEY (session_num, stream)
);
CREATE TABLE heads (
  agent_num INTEGER PRIMARY KEY REFERENCES agents(num) ON DELETE CASCADE,
  last_seq INTEGER NOT NULL,
  first_seq INTEGER NOT NULL,
  bytes INTEGER NOT NULL
);
CREATE TABLE events (
  id INTEGER PRIMARY KEY,
  agent_num INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  ts INTEGER NOT NULL,
  type INTEGER NOT NULL,
  session_num INTEGER,
  stream INTEGER,
  offset INTEGER,
  flags INTEGER,
  data BLOB NOT NULL
);
CREATE UNIQUE INDEX events_agent_seq ON events(agent_num, seq);
CREATE TABLE segments (
  id INTEGER PRIMARY KEY,
  agent_num INTEGER NOT NULL,
  first_seq INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  first_ts INTEGER NOT NULL,
  last_ts INTEGER NOT NULL,
  path TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  blocks BLOB NOT NULL,
  swept INTEGER NOT NULL DEFAULT 0,
  UNIQUE (agent_num, first_seq)
);
CREATE INDEX segments_age ON segments(last_ts);
CREATE TABLE log_drops (agent_num INTEGER PRIMARY KEY);
CREATE TABLE feed (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  ts INTEGER NOT NULL,
  kind TEXT NOT NULL,
  owner_id TEXT NOT NULL,
  record TEXT NOT NULL
);
CREATE INDEX feed_age ON feed(ts);

CREATE TABLE facts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  ts INTEGER NOT NULL,
  kind TEXT NOT NULL,
  ref TEXT NOT NULL,
  payload TEXT NOT NULL
);
CREATE TABLE fact_cursors (consumer TEXT PRIMARY KEY, fact_id INTEGER NOT NULL);
CREATE TABLE outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  node_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  payload TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER NOT NULL
);
CREATE INDEX outbox_session ON outbox(session_id, id);
CREATE TABLE timers (
  kind TEXT NOT NULL,
  ref TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  payload TEXT NOT NULL,
  PRIMARY KEY (kind, ref)
);
CREATE INDEX timers_due ON timers(due_at);
`;
