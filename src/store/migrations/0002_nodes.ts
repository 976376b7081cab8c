/**
 * The registry of remote nodes, and the tokens that they join with: of those only ids, the text follows from the
 * plane's key. Node rows go when an operator deletes them, token rows when a new one is made after their end.
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
