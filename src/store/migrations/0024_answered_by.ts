/** Who answered the last question of a step. It is not known for earlier answers. */
export const sql = `
ALTER TABLE run_steps ADD COLUMN answered_by TEXT;
`;
