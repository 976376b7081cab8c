/**
 * Worktrees that outlived their agents because they have unsaved work. A row is deleted when its worktree is removed, when
 * another agent gets the folder, or when its node is deleted. It keeps the ids of its agent and run, which decide whether
 * the folder is still the same one.
 */
export const sql = `
CREATE TABLE kept_worktrees (
  num INTEGER PRIMARY KEY,
  agent_id TEXT NOT NULL UNIQUE,
  agent_name TEXT NOT NULL,
  owner_id TEXT NOT NULL,
  team_num INTEGER REFERENCES teams(num) ON DELETE SET NULL,
  run_id TEXT,
  member_id TEXT,
  node_id TEXT NOT NULL,
  workdir TEXT NOT NULL,
  repo TEXT,
  branch TEXT,
  base TEXT,
  reason TEXT NOT NULL,
  kept_at INTEGER NOT NULL,
  UNIQUE (node_id, workdir)
);
CREATE INDEX kept_worktrees_owner ON kept_worktrees(owner_id, num);
CREATE INDEX kept_worktrees_team ON kept_worktrees(team_num) WHERE team_num IS NOT NULL;
`;
