/** The lock of the plane that is active, which PostgreSQL releases when the plane's connection ends. */
import type pg from 'pg';

/** Any number that no other program uses for a lock in this database. */
export const LOCK = 7_782_115_202;

/** Whether this connection has the lock now. It keeps the lock until it ends. */
export async function tryLock(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ held: boolean }>(`SELECT pg_try_advisory_lock(${LOCK}) AS held`);
  return rows[0]!.held;
}

/** Ends the connection that has the lock. */
export async function breakLock(client: pg.Client): Promise<void> {
  await client.query(`
    SELECT pg_terminate_backend(pid) FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND classid = ${Math.floor(LOCK / 2 ** 32)} AND objid = ${LOCK % 2 ** 32} AND objsubid = 1`);
}
