/** Recognizes connection poolers, which break locks and settings of a connection. */
import type pg from 'pg';

/** What is wrong, and what to do about it. */
export const POOLER =
  'svc needs a direct connection to PostgreSQL, not a connection pooler such as PgBouncer: use the address of the server itself';

/**
 * Whether statements reach the server's process that answered when the connection was opened. A pooler may send each
 * transaction to another process, and tells its clients numbers of its own.
 */
export async function isDirect(client: Pick<pg.Client, 'query'>): Promise<boolean> {
  const { processID } = client as unknown as { processID: number };
  for (let statement = 0; statement < 2; statement++) {
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    if (rows[0]!.pid !== processID) return false;
  }
  return true;
}

/** PgBouncer rejects settings that it does not know. PostgreSQL rejects them with other words. */
export function isRejectedByPooler(error: unknown): boolean {
  return (error as Error).message.startsWith('unsupported startup parameter');
}
