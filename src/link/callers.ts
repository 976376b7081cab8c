/** The connections of a gRPC listener that serves actors, on a plane and on a node. */
import { createContextKey } from '@connectrpc/connect';
import { anonymousMax, type Connection, type ConnectionBounds } from '../base/connections.ts';
import { limits } from '../base/limits.ts';

/** Agents of the same machine can connect without a certificate, so nobody is known before a call with a valid token. */
export function callerBounds(): ConnectionBounds {
  return {
    anonymous_max: anonymousMax(),
    owned_max: limits.actor_connections_max,
    per_owner_max: limits.actor_connections_per_token,
    anonymous_ms: limits.anonymous_connection_ms,
  };
}

/** The connection of a call. */
export const callerConnection = createContextKey<Connection | null>(null);
