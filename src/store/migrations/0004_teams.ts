/**
 * Teams: definitions, tasks with their threads, runs with their steps, mail and triggers. All of it is deleted with the
 * team, which only its creator and root can delete, and not during a run. The agents of members remain as records (with
 * their logs) after the run; their reference to it becomes null. Rows that are deleted with their task or run have the
 * team's number without a foreign key, because the foreign key would be checked in all of them.
 */
export const sql = `
CREATE TABLE teams (
  num INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL UNIQUE,
  description TEXT NOT NULL,
  spec TEXT NOT NULL,
  version INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE TABLE team_humans (
  team_num INTEGER NOT NULL REFERENCES teams(num) ON DELETE CASCADE,
  user_id TEXT NOT NULL REFERENCES users(id) ON DELETE CASCADE,
  PRIMARY KEY (team_num, user_id)
);
CREATE INDEX team_humans_user ON team_humans(user_id);
CREATE TABLE tasks (
  num INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  team_num INTEGER NOT NULL REFERENCES teams(num) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  title TEXT NOT NULL,
  description TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('open', 'in_progress', 'in_review', 'completed', 'cancelled')),
  assignee_member_id TEXT,
  conversation_id TEXT NOT NULL UNIQUE,
  version INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (team_num, number)
);
CREATE TABLE runs (
  num INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  team_num INTEGER NOT NULL REFERENCES teams(num) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  task_num INTEGER NOT NULL REFERENCES tasks(num) ON DELETE CASCADE,
  status TEXT NOT NULL CHECK (status IN ('pending', 'running', 'input_required', 'completed', 'failed', 'cancelled')),
  error TEXT,
  attempt INTEGER NOT NULL,
  version INTEGER NOT NULL,
  mode TEXT NOT NULL,
  leader TEXT NOT NULL,
  rounds INTEGER NOT NULL,
  rounds_before INTEGER NOT NULL DEFAULT 0,
  steps_seen INTEGER NOT NULL,
  attention_at INTEGER,
  attention TEXT,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  input TEXT NOT NULL,
  output TEXT,
  UNIQUE (team_num, number)
);
-- Apart from what changes with every step: a row is written whole.
CREATE TABLE run_specs (
  run_num INTEGER PRIMARY KEY REFERENCES runs(num) ON DELETE CASCADE,
  spec TEXT NOT NULL
);
CREATE INDEX runs_task ON runs(task_num, num);
CREATE INDEX runs_open ON runs(team_num) WHERE status IN ('pending', 'running', 'input_required');
CREATE TABLE run_steps (
  num INTEGER PRIMARY KEY AUTOINCREMENT,
  run_num INTEGER NOT NULL REFERENCES runs(num) ON DELETE CASCADE,
  step_key TEXT NOT NULL,
  member_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('plain', 'acp', 'outside')),
  depends_on TEXT NOT NULL,
  "when" TEXT NOT NULL,
  prompt TEXT NOT NULL,
  input TEXT,
  answer TEXT,
  timeout_seconds INTEGER,
  max_attempts INTEGER NOT NULL,
  added INTEGER NOT NULL,
  status TEXT NOT NULL CHECK
    (status IN ('pending', 'ready', 'running', 'input_required', 'completed', 'failed', 'cancelled', 'skipped')),
  waits_for INTEGER NOT NULL,
  spoiled INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  tries INTEGER NOT NULL,
  launched INTEGER NOT NULL,
  output TEXT,
  error_text TEXT,
  started_at INTEGER,
  ended_at INTEGER,
  UNIQUE (run_num, step_key)
);
CREATE INDEX run_steps_waiting_members ON run_steps(run_num, kind, member_id, num) WHERE status = 'ready' AND launched = 0;
CREATE INDEX run_steps_waiting ON run_steps(run_num, kind, num) WHERE status = 'ready' AND launched = 0;
CREATE INDEX run_steps_launched ON run_steps(run_num, launched, kind, member_id);
CREATE INDEX run_steps_status ON run_steps(run_num, status);
CREATE TABLE run_edges (
  run_num INTEGER NOT NULL REFERENCES runs(num) ON DELETE CASCADE,
  step_num INTEGER NOT NULL,
  needs_num INTEGER NOT NULL,
  PRIMARY KEY (needs_num, step_num)
) WITHOUT ROWID;
CREATE INDEX run_edges_step ON run_edges(step_num);
CREATE INDEX run_edges_run ON run_edges(run_num);
CREATE TABLE run_attempts (
  num INTEGER PRIMARY KEY AUTOINCREMENT,
  run_num INTEGER NOT NULL REFERENCES runs(num) ON DELETE CASCADE,
  step_key TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  run_attempt INTEGER NOT NULL,
  member_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  session_id TEXT,
  prompt_id TEXT,
  over INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  UNIQUE (run_num, run_attempt, step_key, attempt)
);
CREATE INDEX run_attempts_prompt ON run_attempts(prompt_id) WHERE prompt_id IS NOT NULL;
CREATE INDEX run_attempts_session ON run_attempts(session_id);
CREATE INDEX run_attempts_agent ON run_attempts(agent_id);
CREATE TABLE run_events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run_num INTEGER NOT NULL REFERENCES runs(num) ON DELETE CASCADE,
  ts INTEGER NOT NULL,
  type TEXT NOT NULL,
  data TEXT NOT NULL
);
CREATE INDEX run_events_run ON run_events(run_num, id);
CREATE TABLE messages (
  num INTEGER PRIMARY KEY AUTOINCREMENT,
  team_num INTEGER NOT NULL,
  task_num INTEGER NOT NULL REFERENCES tasks(num) ON DELETE CASCADE,
  run_num INTEGER,
  from_actor_id TEXT NOT NULL,
  route TEXT NOT NULL CHECK (route IN ('broadcast', 'to_leader', 'to_member')),
  to_actor_id TEXT,
  payload TEXT NOT NULL,
  text TEXT NOT NULL,
  reply_to INTEGER,
  thread INTEGER,
  created_at INTEGER NOT NULL
);
CREATE INDEX messages_task ON messages(task_num, num);
CREATE INDEX messages_thread ON messages(thread) WHERE thread IS NOT NULL;
CREATE INDEX messages_waiting ON messages(task_num, num) WHERE run_num IS NULL;
CREATE VIRTUAL TABLE messages_words USING fts5
  (text, content = 'messages', content_rowid = 'num', tokenize = 'unicode61 remove_diacritics 2');
CREATE TRIGGER messages_worded AFTER INSERT ON messages BEGIN
  INSERT INTO messages_words(rowid, text) VALUES (new.num, new.text);
END;
CREATE TRIGGER messages_unworded AFTER DELETE ON messages BEGIN
  INSERT INTO messages_words(messages_words, rowid, text) VALUES ('delete', old.num, old.text);
END;
CREATE TABLE mail (
  num INTEGER PRIMARY KEY AUTOINCREMENT,
  team_num INTEGER NOT NULL,
  run_num INTEGER NOT NULL REFERENCES runs(num) ON DELETE CASCADE,
  run_attempt INTEGER NOT NULL,
  from_actor_id TEXT NOT NULL,
  to_actor_id TEXT NOT NULL,
  payload TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'acknowledged', 'dead_letter')),
  reason TEXT,
  idempotency_key TEXT,
  request_hash BLOB,
  message_num INTEGER,
  hops INTEGER NOT NULL,
  prompt_id TEXT,
  reminded INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  delivered_at INTEGER,
  acknowledged_at INTEGER,
  UNIQUE (from_actor_id, idempotency_key)
);
CREATE INDEX mail_inbox ON mail(to_actor_id, num) WHERE status IN ('pending', 'delivered');
CREATE INDEX mail_run ON mail(run_num, num);
CREATE INDEX mail_told ON mail(to_actor_id, run_num, delivered_at, hops, from_actor_id);
CREATE TABLE triggers (
  num INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  team_num INTEGER NOT NULL,
  run_num INTEGER NOT NULL REFERENCES runs(num) ON DELETE CASCADE,
  run_attempt INTEGER NOT NULL,
  actor_id TEXT NOT NULL,
  at INTEGER,
  every_seconds INTEGER,
  cron TEXT,
  timezone TEXT,
  payload TEXT NOT NULL,
  hops INTEGER NOT NULL,
  next_at INTEGER NOT NULL,
  last_at INTEGER,
  fired INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX triggers_actor ON triggers(actor_id);
CREATE INDEX triggers_run ON triggers(run_num);
ALTER TABLE agents ADD COLUMN team_num INTEGER REFERENCES teams(num) ON DELETE SET NULL;
ALTER TABLE agents ADD COLUMN run_num INTEGER REFERENCES runs(num) ON DELETE SET NULL;
ALTER TABLE agents ADD COLUMN member_id TEXT;
CREATE INDEX agents_run ON agents(run_num) WHERE run_num IS NOT NULL;
CREATE INDEX agents_team ON agents(team_num) WHERE team_num IS NOT NULL;
ALTER TABLE feed ADD COLUMN team_num INTEGER;
`;
