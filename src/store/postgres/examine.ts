/** Examines a database for `svc doctor`. Changes nothing. */
import { silentLog } from '../../base/log.ts';
import type { PostgresServer } from '../store.ts';
import { connect } from './connect.ts';
import { reasonOf } from './errors.ts';
import { LOCK } from './lock.ts';
import { checkSupported } from './migrate.ts';
import { Server } from './server.ts';

/** What is at the URL of a database. */
export type Examined = { version: string; holder: string | null } | { problem: string };

/** Tries to connect. `holder` describes the plane that is using the database, if any. */
export async function examinePostgres(database: PostgresServer): Promise<Examined> {
  let client: Awaited<ReturnType<typeof connect>> | undefined;
  try {
    client = await connect(database, new Server({ url: database.url, log: silentLog }));
    await checkSupported(client);
    const { rows } = await client.query<{ version: string; is_held: boolean; has_claims: boolean }>(STATE);
    const { version, is_held, has_claims } = rows[0]!;
    if (!is_held || !has_claims) return { version, holder: null };
    const claims = await client.query<{ holder: string }>('SELECT holder FROM plane_claim');
    return { version, holder: claims.rows[0]?.holder ?? null };
  } catch (error) {
    return { problem: reasonOf(error) };
  } finally {
    await client?.end().catch(() => {});
  }
}

const STATE = `
  SELECT current_setting('server_version') AS version, to_regclass('plane_claim') IS NOT NULL AS has_claims,
    EXISTS (
      SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database
      WHERE locktype = 'advisory' AND granted AND datname = current_database()
        AND (classid::bigint << 32) + objid::bigint = ${LOCK}
    ) AS is_held`;
