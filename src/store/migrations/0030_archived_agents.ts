/** When an agent was archived. */
export const sql = `
ALTER TABLE agents ADD COLUMN archived_at INTEGER;
`;
