/** The driver's configuration for a connection to a database. */
import { userInfo } from 'node:os';
import type pg from 'pg';
import { isLoopback } from '../../core/config.ts';
import { type DatabaseAddress, type HostPort, parseDatabaseUrl } from '../../core/database-url.ts';
import type { PostgresServer } from '../store.ts';
import { limits } from './limits.ts';

/** `to` is one of the database's hosts, and `settings` are settings of the server for the connection. Throws if the URL is not valid. */
export function clientConfig(
  { url, ca }: PostgresServer,
  to: HostPort,
  settings: Record<string, string> = {},
): pg.ClientConfig {
  const address = parseDatabaseUrl(url);
  if (typeof address === 'string') throw new Error(`the URL of the database ${address}`);
  const { user, password, database, tls } = address;
  const { host, port } = to;
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`);
  return {
    ...{ host, port, database, user: user ?? userInfo().username },
    ...(password !== null && { password }),
    ssl: tlsOptions(host, tls, ca),
    application_name: 'svc',
    keepAlive: true,
    keepAliveInitialDelayMillis: limits.keepalive_ms,
    connectionTimeoutMillis: limits.connect_ms_max,
    ...(options.length > 0 && { options: options.join(' ') }),
  };
}

function tlsOptions(
  host: string,
  tls: DatabaseAddress['tls'],
  ca: string | undefined,
): pg.ClientConfig['ssl'] {
  // The server is a process on this machine, so the connection does not use the network.
  const is_local = host.startsWith('/') || isLoopback(host);
  const mode = tls ?? (is_local && ca === undefined ? 'off' : 'verified');
  if (mode === 'off' || host.startsWith('/')) return false;
  return { minVersion: 'TLSv1.2', rejectUnauthorized: mode === 'verified', ...(ca !== undefined && { ca }) };
}
