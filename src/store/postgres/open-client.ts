/** Opens single connections to the host of a database that accepts writes. */
import pg from 'pg';
import { describeHost, type HostPort } from '../../core/database-url.ts';
import type { PostgresServer } from '../store.ts';
import { clientConfig } from './client-config.ts';
import { isServerUnreachable, mayBeStarting, NoPrimary, reasonOf } from './errors.ts';
import { isRejectedByPooler, POOLER } from './pooler.ts';
import type { Server } from './server.ts';

export interface ClientOptions {
  /** Settings of the server for the connection. */
  settings?: Record<string, string>;
  /** The longest time for each query, in milliseconds. Absent: no limit. */
  query_timeout?: number;
  /** How values are read. Absent: the driver's way. */
  types?: pg.CustomTypesConfig;
}

/**
 * Opens a connection to the only host, or to the first of several that is not a standby. The caller ends it. Throws
 * `NoPrimary` if none of several hosts can be used, or the driver's error.
 */
export async function openClient(
  database: PostgresServer,
  server: Server,
  options: ClientOptions = {},
): Promise<pg.Client> {
  const { hosts } = server;
  if (hosts.length === 1) return connect(database, hosts[0]!, options);
  const failures: string[] = [];
  let may_be_starting = false;
  for (const host of hosts) {
    try {
      const client = await connect(database, host, options);
      if (await isPrimary(client)) {
        server.found(host);
        return client;
      }
      failures.push(`${describeHost(host)} is a standby`);
      may_be_starting = true;
    } catch (error) {
      if (!isServerUnreachable(error)) throw error;
      failures.push(`${describeHost(host)}: ${reasonOf(error)}`);
      may_be_starting ||= mayBeStarting(error);
    }
  }
  throw new NoPrimary(failures.join('; '), may_be_starting);
}

async function connect(
  database: PostgresServer,
  host: HostPort,
  { settings, query_timeout, types }: ClientOptions,
): Promise<pg.Client> {
  const config = clientConfig(database, host, settings);
  const client = new pg.Client({
    ...config,
    ...(query_timeout !== undefined && { query_timeout }),
    ...(types && { types }),
  });
  // Queries report the loss of the connection. Without a listener, it would end the process too.
  client.on('error', () => {});
  try {
    await client.connect();
  } catch (error) {
    if (isRejectedByPooler(error)) throw new Error(POOLER, { cause: error });
    throw error;
  }
  return client;
}

/** Ends the connection unless it returns true. */
async function isPrimary(client: pg.Client): Promise<boolean> {
  let is_standby = true;
  try {
    const query = 'SELECT pg_is_in_recovery() AS is_standby';
    const { rows } = await client.query<{ is_standby: boolean }>(query);
    is_standby = rows[0]!.is_standby;
  } finally {
    if (is_standby) await client.end().catch(() => {});
  }
  return !is_standby;
}
