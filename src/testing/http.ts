/** An HTTP listener with fake handlers and two callers, for tests of the HTTP layer alone. */
import { createHash } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { silentLog } from '../base/log.ts';
import type { Idempotency, StoredAnswer } from '../core/idempotency.ts';
import { problems } from '../core/problem.ts';
import type { Caller } from '../features/accounts/rules.ts';
import type { Handlers } from '../server/call.ts';
import { type HttpOptions, type HttpServer, openHttp } from '../server/server.ts';
import { fakeHandlers } from './handlers.ts';

export const ROOT_TOKEN = 'root-token';
export const USER_TOKEN = 'user-token';
const callers: Record<string, Caller> = {
  [ROOT_TOKEN]: {
    user_id: 'usr_root',
    username: 'root',
    role: 'root',
    token_id: 'tok_root',
    grant: null,
    ip: null,
  },
  [USER_TOKEN]: {
    user_id: 'usr_ada',
    username: 'ada',
    role: 'user',
    token_id: 'tok_ada',
    grant: null,
    ip: null,
  },
};

export function openFakeHttp(
  handlers: Partial<Handlers>,
  options: Partial<HttpOptions> = {},
): Promise<HttpServer> {
  return openHttp({
    host: '127.0.0.1',
    port: 0,
    tls: null,
    public_origin: null,
    behind_proxy: false,
    log: silentLog,
    web: '/no/web/ui',
    resources: {},
    check_answers: true,
    ready: () => true,
    rate: () => ({ per_second: 10_000, burst: 10_000 }),
    body_bytes_max: () => 1024 * 1024,
    page_items_default: () => 100,
    metrics_open: () => false,
    authenticate(token, ip) {
      const caller = callers[token];
      if (!caller) throw problems.invalidToken();
      return { ...caller, ip };
    },
    idempotency: memoryIdempotency(),
    handlers: fakeHandlers(handlers),
    ...options,
  });
}

/** The default time limit for a response. */
const ANSWER_MS_MAX = 60_000;

interface RequestOptions {
  token?: string;
  key?: string;
  /** Rejects if there is no response by then. */
  within_ms?: number;
}

/** A function that sends requests with a token. The service need not run yet. Bodies are sent and read as JSON. */
export function requesterOf(service: () => { url: string; token: string }) {
  return async (
    method: string,
    path: string,
    body?: unknown,
    { token = service().token, key, within_ms = ANSWER_MS_MAX }: RequestOptions = {},
  ) => {
    const response = await fetch(service().url + path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(within_ms),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: text === '' ? null : JSON.parse(text),
    };
  };
}

/** Like `requesterOf`, for a listener and by default with this token. */
export function requesterWithToken(server: () => HttpServer, usual_token: string) {
  const request = requesterOf(() => ({ url: server().url, token: usual_token }));
  return async (...args: Parameters<typeof request>) => {
    const { status, headers, body } = await request(...args);
    return { status, location: headers.get('location'), body };
  };
}

/** Keeps responses in memory. Does not wait for a request in progress with the same key. */
export function memoryIdempotency(): Idempotency {
  const answers = new Map<string, { hash: string; answer: StoredAnswer }>();
  return {
    async begin(caller, key, request_hash) {
      const id = `${caller.user_id} ${key}`;
      const hash = createHash('sha256').update(request_hash).digest('hex');
      const known = answers.get(id);
      if (known) {
        if (known.hash !== hash) throw problems.idempotencyReused();
        return { stored: known.answer };
      }
      return {
        first: {
          keep: async (answer) => {
            answers.set(id, { hash, answer });
          },
          release: async () => {},
        },
      };
    },
  };
}

/** Writes raw bytes to the listener; returns everything that it sends until it closes the connection. */
export function rawRequest(url: string, write: (socket: Socket) => void): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let text = '';
    socket.setEncoding('latin1');
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
    });
    socket.on('close', () => resolve(text));
    socket.on('connect', () => write(socket));
  });
}
