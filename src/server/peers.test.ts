import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request as sendRequest } from 'node:https';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { openFakeHttp, ROOT_TOKEN, USER_TOKEN } from '../testing/http.ts';
import { openTestPeers, TestAuthority } from '../testing/planes.ts';
import { clientAddress, isForwarded, isFromLoopback } from './guard.ts';
import { limits } from './limits.ts';
import { CALLER_HEADER, CLIENT_HEADER, type Peers, type PlaneIdentity } from './peers.ts';
import type { HttpServer } from './server.ts';

let authority: TestAuthority;
let active: PlaneIdentity;
let standby: PlaneIdentity;
let plane: HttpServer;
let peers: Peers;

beforeAll(async () => {
  authority = await TestAuthority.create();
  [active, standby] = await Promise.all([authority.plane('p1'), authority.plane('p2')]);
  plane = await openFakeHttp(
    {
      getMe: ({ caller }) => ({
        id: caller.user_id,
        username: caller.ip ?? 'unknown',
        role: caller.role,
        created_at: '2026-01-02T03:04:05.678Z',
        passkeys: [],
      }),
      createJoinChallenge: () => ({ file: '/d/join.json', expires_at: '2026-01-02T03:04:05.678Z' }),
    },
    { rate: () => ({ per_second: 0.001, burst: 2 }), behind_proxy: true },
  );
});
afterAll(() => plane.drain());
beforeEach(async () => {
  peers = await openTestPeers(active);
});
afterEach(() => peers.close());

interface Sent {
  identity?: Partial<PlaneIdentity>;
  method?: string;
  headers?: Record<string, string>;
}

async function send(path: string, { identity = standby, method = 'GET', headers = {} }: Sent = {}) {
  const outgoing = sendRequest({
    host: '127.0.0.1',
    port: peers.address.port,
    path,
    method,
    agent: false,
    ca: active.ca,
    ...identity,
    checkServerIdentity: () => undefined,
    headers: { [CLIENT_HEADER]: '203.0.113.7', host: 'anything.example', ...headers },
  });
  outgoing.end();
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
  return { status: incoming.statusCode, headers: incoming.headers, body: await text(incoming) };
}
const user = { authorization: `Bearer ${USER_TOKEN}` };

test('answers 503 until it serves a handler', async () => {
  const { status, headers } = await send('/api/me');
  expect([status, headers['x-error-code'], headers['x-frame-options']]).toEqual([503, 'not_ready', 'DENY']);
});

test('is bound before it has an identity, and accepts connections with the one that it gets', async () => {
  await peers.close();
  peers = await openTestPeers(null);
  await expect(send('/api/me')).rejects.toThrow();
  peers.setIdentity(active);
  expect((await send('/api/me')).status).toBe(503);
});

test('passes requests of planes to the handler, whatever their host', async () => {
  peers.serve(plane.handler);
  const { status, body } = await send('/api/me', { headers: user });
  expect([status, JSON.parse(body).username]).toEqual([200, '203.0.113.7']);
});

test('tells the other plane whose valid token a request has', async () => {
  peers.serve(plane.handler);
  const from = { [CLIENT_HEADER]: '198.51.100.9' };
  const valid = { ...from, authorization: `Bearer ${ROOT_TOKEN}` };
  expect((await send('/api/me', { headers: valid })).headers[CALLER_HEADER]).toBe('usr_root');
  const invalid = { ...from, authorization: 'Bearer invalid', [CALLER_HEADER]: 'usr_root' };
  for (const headers of [from, invalid]) {
    expect((await send('/api/me', { headers })).headers[CALLER_HEADER]).toBe(undefined);
  }
});

test('connections without a certificate keep out no plane', async () => {
  await peers.close();
  peers = await openTestPeers(active, { anonymous_max: 4 });
  peers.serve((_request, response) => response.end());
  const sockets: Socket[] = [];
  for (let i = 0; i < 12; i++) {
    const silent = connect(peers.address.port, '127.0.0.1').on('error', () => {});
    onTestFinished(() => void silent.destroy());
    await once(silent, 'connect');
    sockets.push(silent.resume());
  }
  expect((await send('/')).status).toBe(200);
  await expect.poll(() => sockets.filter(({ closed }) => !closed).length).toBeLessThanOrEqual(4);
});

test("refuses a node's certificate, no certificate, and a plane of another authority", async () => {
  let served = 0;
  peers.serve((_request, response) => {
    served++;
    response.end();
  });
  const stranger = await (await TestAuthority.create()).plane('p2');
  const refused = [await authority.node('web-1'), {}, { cert: stranger.cert, key: stranger.key }];
  for (const identity of refused) await expect(send('/', { identity })).rejects.toThrow();
  expect(served).toBe(0);
  expect((await send('/')).status).toBe(200);
});

test('refuses a certificate that cannot be examined', async () => {
  await peers.close();
  peers = await openTestPeers(active, {
    isPlane: () => {
      throw new Error('malformed');
    },
  });
  await expect(send('/')).rejects.toThrow();
});

test('refuses TLS before 1.3', async () => {
  const { port } = peers.address;
  const socket = connectTls({ port, host: '127.0.0.1', ...standby, maxVersion: 'TLSv1.2' });
  const [error] = await once(socket, 'error');
  expect(error.code).toBe('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION');
});

test('uses a new identity for new connections', async () => {
  peers.serve(plane.handler);
  const next = await TestAuthority.create();
  const [next_active, next_standby] = await Promise.all([next.plane('p1'), next.plane('p2')]);
  peers.setIdentity(next_active);
  expect((await send('/healthz', { identity: next_standby })).status).toBe(200);
  await expect(send('/healthz')).rejects.toThrow();
  await expect(send('/healthz', { identity: { ...standby, ca: next_active.ca } })).rejects.toThrow();
  expect(() => peers.setIdentity({ ...active, key: standby.key })).toThrow();
  expect((await send('/healthz', { identity: next_standby })).status).toBe(200);
});

test('the client is the one that the other plane names, and no other header counts', async () => {
  const seen: unknown[] = [];
  peers.serve((request, response) => {
    seen.push([clientAddress(request, true), isForwarded(request), isFromLoopback(request)]);
    response.end();
  });
  await send('/', { headers: { 'x-forwarded-for': '198.51.100.1' } });
  await send('/', { headers: { [CLIENT_HEADER]: 'unknown', host: 'localhost' } });
  await send('/', { headers: { [CLIENT_HEADER]: '::ffff:127.0.0.1', host: 'localhost' } });
  expect(seen).toEqual([
    ['203.0.113.7', true, false],
    [null, true, false],
    ['127.0.0.1', true, false],
  ]);
});

test('rejects a request without a valid client address', async () => {
  peers.serve(plane.handler);
  for (const value of ['', 'evil', '1.2.3.4, 5.6.7.8']) {
    const { status, headers } = await send('/healthz', { headers: { [CLIENT_HEADER]: value } });
    expect([status, headers['x-error-code']]).toEqual([400, 'invalid_client_address']);
  }
});

test('limits the rate of each client', async () => {
  peers.serve(plane.handler);
  const as = async (address: string) =>
    (await send('/api/me', { headers: { [CLIENT_HEADER]: address } })).status;
  expect([await as('192.0.2.1'), await as('192.0.2.1'), await as('192.0.2.1')]).toEqual([401, 401, 429]);
  expect(await as('192.0.2.2')).toBe(401);
});

test('does not serve what only processes on this machine may use', async () => {
  peers.serve(plane.handler);
  const headers = { [CLIENT_HEADER]: '127.0.0.1', host: `localhost:${plane.address.port}` };
  const { status } = await send('/api/admin/join-challenge', { method: 'POST', headers });
  expect(status).toBe(403);
});

test('accepts all headers that the public listener accepts', async () => {
  peers.serve(plane.handler);
  const header = 'x'.repeat(limits.header_bytes_max - 100);
  expect((await send('/healthz', { headers: { 'x-long': header } })).status).toBe(200);
});

test('does not end an event stream that is silent', async () => {
  const ticks = Promise.withResolvers<void>();
  peers.serve((request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
    // The server emits the event `timeout` of the socket each time that it would end an idle connection.
    let left = 3;
    request.socket.setTimeout(20);
    request.socket.on('timeout', () => {
      if (--left > 0) request.socket.setTimeout(20);
      else ticks.resolve();
    });
    void ticks.promise.then(() => response.end('data: late\n\n'));
  });
  expect((await send('/')).body).toBe('data: late\n\n');
});

test('rejects with the errno error if the address is taken', async () => {
  await expect(openTestPeers(active, { port: peers.address.port })).rejects.toMatchObject({
    code: 'EADDRINUSE',
  });
});
