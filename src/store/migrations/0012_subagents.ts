/** The sub-agent that asks, as JSON; null for the agent itself, as in all earlier reviews. */
export const sql = `
ALTER TABLE reviews ADD COLUMN subagent TEXT;
`;
