/**
 * The plane's gRPC listener for actors at `internal_grpc.listen`. It uses the plane's certificate and serves only
 * ActorService. Every call needs a token, except calls of an operator who presents the plane's own certificate in `mtls`. (A
 * node serves ActorService on its only listener.)
 */
import type { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import http2 from 'node:http2';
import type { AddressInfo } from 'node:net';
import { createContextValues } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { type ConnectionBounds, Connections } from '../../base/connections.ts';
import { closeWhenIdle } from '../../base/idle-session.ts';
import { KIB, limits as sharedLimits } from '../../base/limits.ts';
import { callerBounds, callerConnection } from '../../link/callers.ts';
import { GRPC_ONLY } from '../../link/wire.ts';
import { limits } from './limits.ts';
import { type ActorBackend, actorRoutes, callerAddress, isOperator } from './service.ts';

interface Certificate {
  cert: string;
  key: string;
}

export interface ActorListenerOptions extends ActorBackend {
  host: string;
  port: number;
  /** PEM; null: no TLS. */
  certificate: Certificate | null;
  /**
   * Decides whether a client certificate is the operator's. The handshake has proven that the caller has its key. Without
   * this function, the listener requests no client certificates.
   */
  isOperator?: (certificate: X509Certificate) => boolean;
  /** Bounds of connections; tests use smaller ones than `callerBounds`. */
  bounds?: ConnectionBounds;
}

export interface ActorListener {
  readonly port: number;
  /** Replaces the certificate for new connections. */
  certify(certificate: Certificate): void;
  close(): Promise<void>;
}

/** Resolves when the listener accepts connections. Rejects if the address cannot be bound. */
export async function openActorListener(options: ActorListenerOptions): Promise<ActorListener> {
  const { host, port, certificate, log } = options;
  const adapter = connectNodeAdapter({
    ...GRPC_ONLY,
    acceptCompression: [],
    readMaxBytes: limits.actor_params_bytes_max + 4 * KIB,
    routes: actorRoutes(options),
    contextValues: ({ socket }) => {
      const peer = 'getPeerX509Certificate' in socket ? socket.getPeerX509Certificate() : undefined;
      const is_operator = peer !== undefined && options.isOperator?.(peer) === true;
      const connection = connections.find(socket) ?? null;
      if (is_operator) connection?.release();
      return createContextValues()
        .set(callerConnection, connection)
        .set(callerAddress, socket.remoteAddress ?? null)
        .set(isOperator, is_operator);
    },
  });
  const settings = { maxConcurrentStreams: sharedLimits.actor_streams_max };
  const tls = {
    minVersion: 'TLSv1.3',
    handshakeTimeout: sharedLimits.link_connect_ms,
    // Agents have no certificate and must not be rejected for that.
    ...(options.isOperator && { requestCert: true, rejectUnauthorized: false }),
  } as const;
  const secure = certificate && http2.createSecureServer({ ...certificate, ...tls, settings }, adapter);
  const server = secure ?? http2.createServer({ settings }, adapter);
  const connections = new Connections(server, options.bounds ?? callerBounds());
  server.on('session', (session: http2.ServerHttp2Session) => {
    closeWhenIdle(session, sharedLimits.link_idle_ms);
    session.on('error', (error) => log.debug({ err: error }, 'a connection of an actor failed'));
  });
  server.on('sessionError', () => {});
  server.on('tlsClientError', (error: Error) => {
    log.debug({ err: error }, 'a call to the actor listener was rejected');
  });
  server.listen(port, host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    certify: (renewed) => secure?.setSecureContext({ ...renewed, minVersion: tls.minVersion }),
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      connections.destroyAll();
      await closed;
    },
  };
}
