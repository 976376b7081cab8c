/** Connections outside the pools, of the plane's claim. */
import pg from 'pg';
import type { PostgresServer } from '../store.ts';
import { clientConfig } from './client-config.ts';
import { limits } from './limits.ts';

/** Server settings for the connection that holds the lock, so that the server notices when the plane's machine is gone. */
const NOTICE_LOSS = {
  tcp_keepalives_idle: '4',
  tcp_keepalives_interval: '2',
  tcp_keepalives_count: '3',
  tcp_user_timeout: String(limits.claim_unreachable_ms_max),
};

/** Opens a connection of its own. The caller ends it. Throws the driver's error. */
export async function connect(server: PostgresServer): Promise<pg.Client> {
  const client = new pg.Client({
    ...clientConfig(server, NOTICE_LOSS),
    query_timeout: limits.claim_answer_ms_max,
  });
  // Queries report the loss of the connection. Without a listener, it would end the process too.
  client.on('error', () => {});
  await client.connect();
  return client;
}
