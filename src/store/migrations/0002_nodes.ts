/**
 * The registry of remote nodes, and their bootstrap tokens: only the ids are stored, because the text derives from the
 * plane's key. An operator deletes node rows; expired token rows are deleted when a new token is created.
 */
export const sql = `
CREATE TABLE nodes (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  grpc_target TEXT NOT NULL,
  tls_server_name TEXT,
  default_worktree_root TEXT,
  disk_id TEXT,
  epoch INTEGER NOT NULL,
  joined_at INTEGER,
  last_seen_at INTEGER,
  version TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE TABLE bootstrap_tokens (
  id TEXT PRIMARY KEY,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  spent_at INTEGER,
  spent_by TEXT
);
`;
