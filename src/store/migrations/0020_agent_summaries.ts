/**
 * What the record of an agent says about its work. `progress`: what an ACP session reported, or why the last session failed.
 * `diff`: the size of its changes. Both are JSON, are deleted with the agent, and may be a moment out of date.
 */
export const sql = `
ALTER TABLE agents ADD COLUMN progress TEXT;
ALTER TABLE agents ADD COLUMN diff TEXT;
`;
