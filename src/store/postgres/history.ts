/** Queries for what identifies a server's history and a database's place in it. */

/**
 * Identifies the history of a server's transactions. It differs after a failover to a standby, which may lack the last
 * commits, and whose transaction ids say nothing about those of the old server.
 */
const history = "system_identifier || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)";

export const HISTORY = `SELECT ${history} AS history FROM pg_control_system()`;

/**
 * Like the history, and also differs in a copy of the database, and after a dump was restored, even into the same
 * database. In all these cases, commits of the original may be missing.
 */
export const PLACE = `
  SELECT ${history} AS history, ${history} || '/' || pg_database.oid || '/' || 'plane_claim'::regclass::oid AS place
  FROM pg_control_system(), pg_database WHERE datname = current_database()`;

/** Whether a place is what became of another one by failovers alone. */
export function hasOnlyFailedOver(from: string, to: string): boolean {
  const withoutTimeline = (place: string) => place.split('/').toSpliced(1, 1).join('/');
  return from !== to && withoutTimeline(from) === withoutTimeline(to);
}
