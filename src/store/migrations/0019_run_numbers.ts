/** The highest number of a deleted run. Without it, the next run of the team would get that number again. */
export const sql = `
ALTER TABLE teams ADD COLUMN deleted_run_number INTEGER NOT NULL DEFAULT 0;
`;
