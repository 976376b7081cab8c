/** The headers of a stored response, encrypted like its body; null for none. */
export const sql = `
ALTER TABLE idempotency ADD COLUMN headers TEXT;
`;
