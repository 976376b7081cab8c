import { once } from 'node:events';
import { Agent, request as sendRequest } from 'node:http';
import { request as sendTlsRequest, Agent as TlsAgent } from 'node:https';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { openFakeHttp, ROOT_TOKEN, USER_TOKEN } from '../testing/http.ts';
import { testTls } from '../testing/tls.ts';
import { connectionBounds, type Listener, type ListenerOptions, openListener } from './listener.ts';
import type { HttpServer } from './server.ts';

const options: ListenerOptions = { host: '127.0.0.1', port: 0, tls: null, public_origin: null };
let listener: Listener;

beforeEach(async () => {
  listener = await openListener({ ...options, timeouts: { cut_ms: 100 } });
});
afterEach(() => listener.close());

const get = (path: string) => fetch(listener.url + path, { headers: { connection: 'close' } });

test('answers 503 until something serves its requests', async () => {
  const response = await get('/api/me');
  expect(response.status).toBe(503);
  expect(response.headers.get('x-error-code')).toBe('not_ready');
  expect(response.headers.get('x-request-id')).toMatch(/^req_/);
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(response.headers.get('cache-control')).toBe('no-store');
  expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(await response.json()).toEqual({ error: 'service is not ready' });
});

test('passes new requests to the handler that serves last', async () => {
  listener.serve((_request, response) => response.end('first'));
  expect(await (await get('/')).text()).toBe('first');
  listener.serve((_request, response) => response.end('second'));
  expect(await (await get('/')).text()).toBe('second');
});

test('serves a plane without closing its socket', async () => {
  const { port } = listener.address;
  listener.serve((_request, response) => response.end('standing by'));
  expect(await (await get('/healthz')).text()).toBe('standing by');
  const server = await openFakeHttp({}, { listener });
  expect(server.address.port).toBe(port);
  expect(await (await get('/healthz')).json()).toEqual({ status: 'ok' });
  await server.drain();
  await expect(get('/healthz')).rejects.toThrow();
});

test('waits for open requests when it closes', async () => {
  const patient = await openListener(options);
  const begun = once(patient.server, 'request');
  const finish = Promise.withResolvers<void>();
  patient.serve((_request, response) => void finish.promise.then(() => response.end('complete')));
  const response = fetch(patient.url);
  await begun;
  const closed = patient.close();
  finish.resolve();
  expect(await (await response).text()).toBe('complete');
  await closed;
});

test('closes the connections of requests that do not end in time', async () => {
  const begun = once(listener.server, 'request');
  listener.serve(() => {});
  const response = get('/').catch(() => 'closed');
  await begun;
  await listener.close();
  expect(await response).toBe('closed');
});

test('rejects with the errno error if the address is taken', async () => {
  await expect(openListener({ ...options, port: listener.address.port })).rejects.toMatchObject({
    code: 'EADDRINUSE',
  });
});

describe('connections', () => {
  const bounds = { anonymous_max: 4, owned_max: 4 };

  /** Requests over one connection. */
  function client({ url }: { url: string }, token: string | null = null) {
    const is_tls = url.startsWith('https:');
    const agent = new (is_tls ? TlsAgent : Agent)({ keepAlive: true, maxSockets: 1 });
    const sockets = new Set<Socket>();
    onTestFinished(() => agent.destroy());
    return {
      /** How many connections it has needed so far. */
      connections: () => sockets.size,
      get: (path: string) =>
        new Promise<number>((resolve, reject) => {
          const outgoing = (is_tls ? sendTlsRequest : sendRequest)(url + path, {
            ...{ agent, ca: testTls.cert },
            headers: token === null ? {} : { authorization: `Bearer ${token}` },
          });
          outgoing.on('socket', (socket) => sockets.add(socket));
          outgoing.on('error', reject);
          outgoing.on('response', (response) => {
            response.resume().on('end', () => resolve(response.statusCode!));
          });
          outgoing.end();
        }),
    };
  }

  /** Connections that send nothing. */
  async function openSilent({ port }: { port: number }, count: number): Promise<Socket[]> {
    const sockets = [];
    for (let i = 0; i < count; i++) {
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      onTestFinished(() => void socket.destroy());
      await once(socket, 'connect');
      sockets.push(socket.resume());
    }
    return sockets;
  }

  async function openBounded(options: Partial<ListenerOptions> = {}): Promise<HttpServer> {
    const getMe = ({
      caller: { user_id, username, role },
    }: {
      caller: { user_id: string; username: string; role: 'root' | 'user' };
    }) => ({
      ...{ id: user_id, username, role, created_at: '2026-01-02T03:04:05.678Z', passkeys: [] },
    });
    const server = await openFakeHttp({ getMe }, { bounds, ...options });
    onTestFinished(() => server.drain());
    return server;
  }

  test.each([
    ['plain', null],
    ['TLS', testTls],
  ])('a flood without a token closes no %s connection of a signed-in user', async (_, tls) => {
    const server = await openBounded({ tls });
    const user = client(server, USER_TOKEN);
    expect(await user.get('/api/me')).toBe(200);
    for (let i = 0; i < 10; i++) {
      await openSilent(server.address, 2);
      expect(await client(server).get('/healthz')).toBe(200);
    }
    expect(await user.get('/api/me')).toBe(200);
    expect(user.connections()).toBe(1);
    // A newcomer gets in.
    expect(await client(server, ROOT_TOKEN).get('/api/me')).toBe(200);
  });

  test('a flood keeps no more connections open than the bound', async () => {
    const server = await openBounded();
    const silent = await openSilent(server.address, 20);
    await expect.poll(() => silent.filter(({ closed }) => !closed).length).toBe(bounds.anonymous_max);
  });

  test('a user who opens too many connections loses their own', async () => {
    const server = await openBounded();
    const root = client(server, ROOT_TOKEN);
    await root.get('/api/me');
    for (let i = 0; i < 10; i++) expect(await client(server, USER_TOKEN).get('/api/me')).toBe(200);
    expect(await root.get('/api/me')).toBe(200);
    expect(root.connections()).toBe(1);
  });

  test('leaves descriptors to the service', () => {
    expect(connectionBounds(1_024)).toEqual({ anonymous_max: 153, owned_max: 461 });
    expect(connectionBounds(20_000)).toEqual({ anonymous_max: 3_000, owned_max: 9_000 });
  });
});
