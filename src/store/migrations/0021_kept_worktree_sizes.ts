/** The size of the changes in a kept worktree, when its agent was deleted, as JSON. Null for those that were kept before. */
export const sql = `
ALTER TABLE kept_worktrees ADD COLUMN diff TEXT;
`;
