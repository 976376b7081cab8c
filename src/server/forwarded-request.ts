/** Sends one request to another plane over mutual TLS, and passes bodies in both directions without keeping them. */
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { type Agent, type RequestOptions, request as sendRequest } from 'node:https';
import { dropRest } from './body.ts';
import { limits } from './limits.ts';
import { CALLER_HEADER, CLIENT_HEADER, type IsPlane, isPlaneSafely, type PlaneIdentity } from './peers.ts';

/** The address of the active plane's listener for other planes. */
export interface ActivePlane {
  readonly host: string;
  readonly port: number;
}

/** How to connect to other planes. */
export interface PeerAccess {
  agent: Agent;
  identity(): PlaneIdentity;
  isPlane: IsPlane;
}

/**
 * `answered`: the response has begun, and has ended since, or the client has disconnected. `not_sent`: no connection; nothing of
 * the body was read. `refused`: the plane answered that it is not active. `broken`: the connection ended after the request, or
 * a part of it, was sent, so it may have been carried out.
 */
type Outcome = 'answered' | 'not_sent' | 'refused' | 'broken';

export interface Attempt {
  readonly target: ActivePlane;
  /** Never rejects. `error`: why the request was not answered. */
  readonly ended: Promise<{ outcome: Outcome; error: Error | null }>;
  /** Ends the connection to the plane. */
  abandon(): void;
  /** Ends the response if it is an event stream. */
  endStream(): void;
}

interface ForwardedRequest {
  target: ActivePlane;
  request: IncomingMessage;
  response: ServerResponse;
  /** The client's address; null: unknown. */
  client: string | null;
  /** The value of the header `strict-transport-security` of this plane's listener; null: none. */
  strict_transport: string | null;
  /** Called if the request has a valid token. */
  onCaller(user_id: string): void;
}

/** Sends a request once. */
export function forwardOnce(access: PeerAccess, forwarded: ForwardedRequest): Attempt {
  const { target, request, response } = forwarded;
  const { promise: ended, resolve } = Promise.withResolvers<{ outcome: Outcome; error: Error | null }>();
  const outgoing = sendRequest({
    ...connectionOptions(access, target),
    method: request.method,
    path: request.url,
    headers: requestHeaders(request, forwarded.client),
  });
  let outcome: Outcome = 'not_sent';
  let error: Error | null = null;
  let endStream = () => {};
  const stop = () => {
    if (!response.writableFinished) outgoing.destroy();
  };
  response.once('close', stop);
  whenConnected(outgoing, () => {
    outcome = 'broken';
    if (hasBody(request)) request.pipe(outgoing);
    else outgoing.end();
  });
  outgoing.on('response', (incoming) => {
    if (isRefusal(incoming)) {
      outcome = 'refused';
      outgoing.destroy();
      return;
    }
    outcome = 'answered';
    const caller = incoming.headers[CALLER_HEADER];
    if (typeof caller === 'string') forwarded.onCaller(caller);
    endStream = passOn(incoming, outgoing, forwarded);
  });
  outgoing.on('error', (cause) => {
    error = cause;
  });
  outgoing.once('close', () => {
    request.unpipe(outgoing);
    response.off('close', stop);
    resolve({ outcome: response.destroyed ? 'answered' : outcome, error });
  });
  return { target, ended, abandon: () => outgoing.destroy(), endStream: () => endStream() };
}

function connectionOptions(access: PeerAccess, { host, port }: ActivePlane): RequestOptions {
  return {
    host,
    port,
    agent: access.agent,
    ...access.identity(),
    minVersion: 'TLSv1.3',
    maxHeaderSize: limits.peer_header_bytes_max,
    // A certificate names its plane; planes have no fixed addresses.
    checkServerIdentity: (_host, certificate) =>
      isPlaneSafely(access.isPlane, certificate)
        ? undefined
        : new Error('the certificate is not that of a plane'),
  };
}

/** Calls `connected` once the TLS handshake is complete. Ends the request if that takes too long. */
function whenConnected(outgoing: ClientRequest, connected: () => void): void {
  const timer = setTimeout(
    () => outgoing.destroy(new Error('the plane did not accept the connection in time')),
    limits.peer_connect_ms,
  );
  outgoing.once('close', () => clearTimeout(timer));
  outgoing.once('socket', (socket) => {
    const ready = () => {
      clearTimeout(timer);
      if (!outgoing.destroyed) connected();
    };
    // A connection from the pool has completed its handshake.
    if (outgoing.reusedSocket) ready();
    else socket.once('secureConnect', ready);
  });
}

/** Whether a response says that the plane is not active, or no longer. Such a request was not carried out. */
function isRefusal({ statusCode, headers }: IncomingMessage): boolean {
  const code = headers['x-error-code'];
  return statusCode === 503 && (code === 'draining' || code === 'not_ready' || code === 'no_active_plane');
}

/** Passes a response on as it arrives. Returns what ends an event stream. */
function passOn(
  incoming: IncomingMessage,
  outgoing: ClientRequest,
  { request, response, strict_transport }: ForwardedRequest,
): () => void {
  const { headers, statusCode = 502 } = incoming;
  const streams = headers['content-type']?.startsWith('text/event-stream') === true;
  if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) {
    // The end of the connection ends the body, as in `sse.ts`.
    response.useChunkedEncodingByDefault = false;
    response.shouldKeepAlive = false;
  }
  response.writeHead(statusCode, incoming.statusMessage, responseHeaders(incoming, strict_transport));
  if (streams) response.flushHeaders();
  // The plane has rejected the request and reads no more of its body.
  if (statusCode >= 400 && !request.complete) {
    request.unpipe(outgoing);
    dropRest(request);
  }
  incoming.pipe(response);
  const finish = () => {
    if (streams) response.end();
    else response.destroy();
  };
  incoming.once('error', () => {});
  incoming.once('close', () => {
    if (!incoming.readableEnded) finish();
    // Not reusable if the plane has not read the whole request.
    if (!outgoing.writableFinished) outgoing.destroy();
  });
  return () => {
    if (!streams) return;
    incoming.unpipe(response);
    response.end();
    outgoing.destroy();
  };
}

/** Headers that concern one connection only (RFC 9110, 7.6.1). */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** The headers, as alternating names and values, without those of the connection and without `dropped`. */
function endToEnd({ rawHeaders, headers }: IncomingMessage, dropped: readonly string[]): string[] {
  const named = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase());
  const without = new Set([...HOP_BY_HOP, ...named, ...dropped]);
  const kept: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (!without.has(name.toLowerCase())) kept.push(name, rawHeaders[i + 1]!);
  }
  return kept;
}

function requestHeaders(request: IncomingMessage, client: string | null): string[] {
  // Node has already answered `Expect: 100-continue`.
  const kept = endToEnd(request, ['expect', 'content-length', CLIENT_HEADER]);
  kept.push(CLIENT_HEADER, client ?? 'unknown');
  if (hasBody(request)) {
    const { 'content-length': length } = request.headers;
    if (length === undefined) kept.push('transfer-encoding', 'chunked');
    else kept.push('content-length', length);
  } else if (request.method !== 'GET' && request.method !== 'HEAD') kept.push('content-length', '0');
  return kept;
}

function responseHeaders(incoming: IncomingMessage, strict_transport: string | null): string[] {
  // Whether browsers must use https depends on the listener that they use.
  const kept = endToEnd(incoming, ['strict-transport-security', CALLER_HEADER]);
  if (strict_transport !== null) kept.push('strict-transport-security', strict_transport);
  return kept;
}

/** Whether a request has a body that must be passed on. No operation reads the body of a GET. */
export function hasBody({ method, headers }: IncomingMessage): boolean {
  if (method === 'GET' || method === 'HEAD') return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Whether a plane answers in time that it is ready. Never rejects. */
export function isReady(access: PeerAccess, target: ActivePlane): Promise<boolean> {
  return new Promise((resolve) => {
    const outgoing = sendRequest({
      ...connectionOptions(access, target),
      path: '/readyz',
      headers: { [CLIENT_HEADER]: 'unknown' },
    });
    const timer = setTimeout(() => outgoing.destroy(), limits.peer_probe_ms);
    outgoing.on('response', (incoming) => {
      incoming.resume();
      resolve(incoming.statusCode === 200);
    });
    outgoing.on('error', () => {});
    outgoing.once('close', () => {
      clearTimeout(timer);
      resolve(false);
    });
    outgoing.end();
  });
}
