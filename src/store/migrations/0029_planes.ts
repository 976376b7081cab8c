/**
 * The planes that share a database, and the certificates and secrets of their links to nodes. Both are empty unless several
 * planes share a PostgreSQL database.
 */
export const sql = `
CREATE TABLE planes (
  id TEXT PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  address TEXT,
  version TEXT NOT NULL,
  claim INTEGER,
  started_at INTEGER NOT NULL,
  beat_at INTEGER NOT NULL
);
CREATE TABLE trust_files (
  name TEXT PRIMARY KEY NOT NULL,
  sealed BLOB NOT NULL
);
`;
