/** Connections of the plane's claim, outside of the pools. */
import type pg from 'pg';
import type { PostgresServer } from '../store.ts';
import { limits } from './limits.ts';
import { openClient } from './open-client.ts';
import type { Server } from './server.ts';

/** Server settings for the connection that holds the lock, so that the server notices when the plane's machine is gone. */
const NOTICE_LOSS = {
  tcp_keepalives_idle: '4',
  tcp_keepalives_interval: '2',
  tcp_keepalives_count: '3',
  tcp_user_timeout: String(limits.claim_unreachable_ms_max),
};

/** Opens a connection of its own. The caller ends it. Throws the driver's error. */
export function connect(database: PostgresServer, server: Server): Promise<pg.Client> {
  const options = { settings: NOTICE_LOSS, query_timeout: limits.claim_answer_ms_max };
  return openClient(database, server, options);
}
