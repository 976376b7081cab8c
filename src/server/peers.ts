/**
 * The listener of the active plane for planes that stand by, which forward requests to it. Only a plane's certificate is admitted.
 * Requests from it name their client's address, and their Host and Origin have been checked.
 */
import { constants } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import { type AddressInfo, isIP } from 'node:net';
import type { PeerCertificate, SecureContextOptions, TLSSocket } from 'node:tls';
import { anonymousMax, Connections } from '../base/connections.ts';
import { invalid, problems } from '../core/problem.ts';
import { acceptForwarded, plainAddress } from './guard.ts';
import { limits } from './limits.ts';
import { closeServer, createHttpServer, default_timeouts, type Timeouts } from './listener.ts';
import { commonHeaders, requestIds, sendProblem } from './problem-response.ts';

/** A plane's certificate, its key, and the authorities whose certificates it accepts. PEM. */
export interface PlaneIdentity {
  ca: string;
  cert: string;
  key: string;
}

/** Whether a certificate is that of a plane. Its chain has been verified. Throws count as no. */
export type IsPlane = (certificate: PeerCertificate) => boolean;

/** Names the client of a forwarded request: an IP address, or `unknown`. Only believed if another plane sends it. */
export const CLIENT_HEADER = 'x-svc-client-address';

/** In a response to another plane: the id of the user whose token was valid. It does not reach the client. */
export const CALLER_HEADER = 'x-svc-caller';

export interface PeersOptions {
  /** Address to bind; port 0 uses a free port. */
  host: string;
  port: number;
  /** Null: TLS handshakes fail until `setIdentity` is called. */
  identity: PlaneIdentity | null;
  isPlane: IsPlane;
  /** Time limits for other planes; tests use shorter ones than `limits`. */
  timeouts?: Partial<Timeouts>;
  /** Connections that have not shown a certificate; tests use fewer than `anonymousMax`. */
  anonymous_max?: number;
}

export interface Peers {
  address: AddressInfo;
  /** Requests that arrive from now on are passed to `handler`, which is `HttpServer.handler`. Before the first call: 503. */
  serve(handler: RequestListener): void;
  /** New connections use this identity. Throws, and changes nothing, if it cannot be used. */
  setIdentity(identity: PlaneIdentity): void;
  /**
   * Accepts no more connections, waits for open requests up to `limits.requests_cut_ms`, and then closes their connections.
   * Idempotent. Drain the HTTP server at the same time, so that streams end.
   */
  close(): Promise<void>;
}

/** Opens the listener for other planes. Rejects with the errno error if the address cannot be bound. */
export async function openPeers(options: PeersOptions): Promise<Peers> {
  const timeouts = { ...default_timeouts, ...options.timeouts };
  const common = commonHeaders({ tls: null, public_origin: null });
  const newId = requestIds();
  let handler: RequestListener = (request, response) =>
    sendProblem({ request, response, request_id: newId() }, problems.notReady(), common);
  const server = createHttpServer(
    { ...(options.identity ? contextOf(options.identity) : {}), requestCert: true, rejectUnauthorized: true },
    timeouts,
    limits.peer_header_bytes_max,
  ) as TlsServer;
  const connections = new Connections(server, {
    anonymous_max: options.anonymous_max ?? anonymousMax(),
    owned_max: Number.POSITIVE_INFINITY,
  });
  // Before the HTTP server's own listener, so that it reads nothing from a connection that is refused.
  server.prependListener('secureConnection', (socket: TLSSocket) => {
    if (isPlaneSafely(options.isPlane, socket.getPeerCertificate())) connections.find(socket)?.release();
    else socket.destroy();
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const client = clientOf(request);
    if (client === undefined) {
      const problem = invalid(`${CLIENT_HEADER} is missing or not an address`, 'invalid_client_address');
      sendProblem({ request, response, request_id: newId() }, problem, common);
      return;
    }
    acceptForwarded(request, client);
    handler(request, response);
  });
  await once(server.listen({ host: options.host, port: options.port }), 'listening');
  let closed: Promise<void> | null = null;
  return {
    address: server.address() as AddressInfo,
    serve: (next) => {
      handler = next;
    },
    setIdentity: (identity) => server.setSecureContext(contextOf(identity)),
    close: () => {
      closed ??= closeServer(server, connections, timeouts.cut_ms);
      return closed;
    },
  };
}

function contextOf({ ca, cert, key }: PlaneIdentity): SecureContextOptions {
  // A resumed session would still be trusted after the authorities have changed.
  return { ca, cert, key, minVersion: 'TLSv1.3', secureOptions: constants.SSL_OP_NO_TICKET };
}

/** `isPlane`, for certificates that may be empty or malformed. */
export function isPlaneSafely(isPlane: IsPlane, certificate: PeerCertificate | undefined): boolean {
  try {
    return certificate?.raw !== undefined && isPlane(certificate);
  } catch {
    return false;
  }
}

/** The client that the header names; null: unknown to the other plane; undefined: the header is not valid. */
function clientOf({ headers }: IncomingMessage): string | null | undefined {
  const address = headers[CLIENT_HEADER];
  if (address === 'unknown') return null;
  return typeof address === 'string' && isIP(address) !== 0 ? plainAddress(address) : undefined;
}
