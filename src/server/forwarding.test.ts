import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  Agent,
  type ClientRequest,
  type IncomingMessage,
  type RequestListener,
  request as sendRequest,
} from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { silentLog } from '../base/log.ts';
import { problems } from '../core/problem.ts';
import { openFakeHttp, USER_TOKEN } from '../testing/http.ts';
import { isPlane, openTestPeers, TestAuthority } from '../testing/planes.ts';
import { dropRest } from './body.ts';
import type { ActivePlane } from './forwarded-request.ts';
import { Forwarder, type ForwarderOptions } from './forwarding.ts';
import { clientAddress } from './guard.ts';
import { type Listener, openListener } from './listener.ts';
import { CALLER_HEADER, CLIENT_HEADER, type Peers, type PlaneIdentity } from './peers.ts';

let authority: TestAuthority;
let active: PlaneIdentity;
let standby: PlaneIdentity;
beforeAll(async () => {
  authority = await TestAuthority.create();
  [active, standby] = await Promise.all([authority.plane('p1'), authority.plane('p2')]);
});

let listener: Listener;
let forwarder: Forwarder;
let opened: (() => Promise<void>)[];

beforeEach(async () => {
  opened = [];
  listener = await openListener({
    host: '127.0.0.1',
    port: 0,
    tls: null,
    public_origin: null,
    timeouts: { cut_ms: 100 },
  });
  opened.push(() => listener.close());
  stand();
});
afterEach(async () => {
  for (const close of opened.reverse()) await close();
});

/** Lets a forwarder serve the public listener. Held requests wait as long as a test may take. */
function stand(options: Partial<ForwarderOptions> = {}): void {
  forwarder = new Forwarder({
    listener,
    behind_proxy: false,
    identity: () => standby,
    isPlane,
    log: silentLog,
    hold_ms: 60_000,
    grace_ms: 60_000,
    ...options,
  });
  listener.serve(forwarder.handle);
}

/** An active plane that answers with `handler`. */
async function openPlane(handler: RequestListener, identity = active): Promise<Peers> {
  const peers = await openTestPeers(identity);
  opened.push(() => peers.close());
  peers.serve(handler);
  return peers;
}
const at = (peers: Peers): ActivePlane => ({ host: '127.0.0.1', port: peers.address.port });

/** The address of a port that nothing listens on. */
async function nowhere(): Promise<ActivePlane> {
  const peers = await openTestPeers(active);
  const target = at(peers);
  await peers.close();
  return target;
}

interface Sent {
  method?: string;
  headers?: Record<string, string | string[]>;
  body?: string | Buffer;
}

/** Sends the head of a request to the standby, without its end. */
function begin(path: string, { method = 'GET', headers = {} }: Sent = {}): ClientRequest {
  const outgoing = sendRequest(listener.url + path, { method, headers, agent: false });
  outgoing.on('error', () => {});
  return outgoing;
}
async function responseTo(outgoing: ClientRequest): Promise<IncomingMessage> {
  const [incoming] = await once(outgoing, 'response');
  return incoming;
}
async function send(path: string, { body, ...sent }: Sent = {}) {
  const outgoing = begin(path, sent);
  outgoing.end(body);
  const incoming = await responseTo(outgoing);
  return { status: incoming.statusCode, headers: incoming.headers, body: await text(incoming) };
}
const refusal = ({
  status,
  headers,
}: {
  status: number | undefined;
  headers: IncomingMessage['headers'];
}) => [status, headers['x-error-code']];
/** Resolves with the first request that a plane gets, which is never answered. */
function silent(): { handler: RequestListener; first: Promise<IncomingMessage> } {
  const { promise: first, resolve } = Promise.withResolvers<IncomingMessage>();
  return { handler: (request) => resolve(request), first };
}
/** Resolves when the public listener has received this number of requests, which then wait or are on their way. */
function arrivals(count: number): Promise<void> {
  return new Promise((resolve) => {
    listener.server.on('request', () => {
      if (--count === 0) resolve();
    });
  });
}
/** Replaces the forwarder by one whose first failure to reach a plane can be awaited. */
function failure(): Promise<void> {
  return new Promise((resolve) => {
    stand({ log: Object.assign(Object.create(silentLog), { warn: () => resolve() }) });
  });
}
const answering =
  (body: string): RequestListener =>
  (request, response) => {
    request.resume();
    response.end(body);
  };
const refusing =
  (code: string): RequestListener =>
  (request, response) => {
    request.resume();
    response.writeHead(503, { 'x-error-code': code }).end('{"error":"no"}');
  };

describe('forwarding', () => {
  test('passes method, path, headers and body on, and the response back', async () => {
    let seen: unknown;
    const peers = await openPlane(async (request, response) => {
      const { method, url, headers } = request;
      seen = { method, url, headers, body: await text(request) };
      response.writeHead(201, 'Made', [
        ...['location', '/x', 'x-two', '1', 'x-two', '2', 'connection', 'x-secret', 'x-secret', 'a'],
        ...['x-request-id', 'req_1', 'keep-alive', 'timeout=1'],
      ]);
      response.end('{"ok":true}');
    });
    forwarder.setTarget(at(peers));
    const { status, headers, body } = await send('/api/x?y=%20z', {
      method: 'PUT',
      headers: { 'x-own': 'a', te: 'trailers', connection: 'x-hop', 'x-hop': '1', expect: '100-continue' },
      body: Buffer.from('{}'),
    });
    expect(seen).toEqual({
      method: 'PUT',
      url: '/api/x?y=%20z',
      headers: {
        'x-own': 'a',
        host: new URL(listener.url).host,
        connection: 'keep-alive',
        [CLIENT_HEADER]: '127.0.0.1',
        'transfer-encoding': 'chunked',
      },
      body: '{}',
    });
    expect([status, body]).toEqual([201, '{"ok":true}']);
    expect(headers).toMatchObject({ location: '/x', 'x-two': '1, 2', 'x-request-id': 'req_1' });
    // This plane's listener says how long it keeps the connection.
    expect([headers['x-secret'], headers['keep-alive']]).toEqual([undefined, 'timeout=72']);
  });

  test('passes bytes of headers on unchanged', async () => {
    const seen: unknown[] = [];
    const peers = await openPlane((request, response) => {
      seen.push(request.headers['x-own']);
      request.pipe(response);
    });
    forwarder.setTarget(at(peers));
    const headers = { 'x-own': 'ä' };
    await send('/', { headers });
    await send('/', { method: 'POST', headers, body: Buffer.from('{}') });
    expect(seen).toEqual(['ä', 'ä']);
  });

  test('frames requests without a body as they came', async () => {
    const seen: unknown[] = [];
    const peers = await openPlane((request, response) => {
      const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
      seen.push([request.method, length, encoding]);
      response.end();
    });
    forwarder.setTarget(at(peers));
    for (const method of ['GET', 'HEAD', 'POST', 'DELETE']) await send('/', { method });
    await send('/', { method: 'DELETE', body: '{}', headers: { 'content-length': '2' } });
    await send('/', { body: 'ignored', headers: { 'content-length': '7' } });
    expect(seen).toEqual([
      ['GET', undefined, undefined],
      ['HEAD', undefined, undefined],
      ['POST', '0', undefined],
      ['DELETE', '0', undefined],
      ['DELETE', '2', undefined],
      ['GET', undefined, undefined],
    ]);
  });

  test('passes a body of 5 MiB in both directions', async () => {
    const peers = await openPlane((request, response) => request.pipe(response));
    forwarder.setTarget(at(peers));
    const body = randomBytes(5 * 1024 * 1024);
    const outgoing = begin('/', { method: 'POST' });
    outgoing.end(body);
    const hash = createHash('sha256');
    for await (const chunk of await responseTo(outgoing)) hash.update(chunk);
    expect(hash.digest('hex')).toBe(createHash('sha256').update(body).digest('hex'));
  });

  test('passes on a response that comes before the end of the body', async () => {
    const { promise: disconnected, resolve } = Promise.withResolvers<void>();
    const peers = await openPlane((request, response) => {
      dropRest(request);
      response.writeHead(413, { 'x-error-code': 'body_too_large' }).end('{"error":"too large"}');
      request.socket.once('close', () => resolve());
    });
    forwarder.setTarget(at(peers));
    const outgoing = begin('/', { method: 'POST' });
    outgoing.write(Buffer.alloc(200_000));
    const incoming = await responseTo(outgoing);
    expect([incoming.statusCode, await text(incoming)]).toEqual([413, '{"error":"too large"}']);
    await disconnected;
    outgoing.destroy();
  });

  test('passes events on one by one, until the plane ends the stream', async () => {
    const { promise: begun, resolve } = Promise.withResolvers<(event: string | null) => void>();
    const peers = await openPlane((_request, response) => {
      response.useChunkedEncodingByDefault = false;
      response.shouldKeepAlive = false;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.flushHeaders();
      resolve((event) => void (event === null ? response.end() : response.write(event)));
    });
    forwarder.setTarget(at(peers));
    const outgoing = begin('/api/events', { headers: { 'last-event-id': '7' } });
    outgoing.end();
    const incoming = await responseTo(outgoing);
    expect(incoming.headers['transfer-encoding']).toBe(undefined);
    const write = await begun;
    for (const event of ['id: 8\n\n', 'id: 9\n\n']) {
      write(event);
      expect(String((await once(incoming, 'data'))[0])).toBe(event);
    }
    write(null);
    await once(incoming, 'end');
  });

  test('ends an event stream whose plane dies, and breaks any other response', async () => {
    const kill = async (type: string) => {
      const peers = await openPlane((_request, response) => {
        response.writeHead(200, { 'content-type': type });
        response.write('half');
      });
      forwarder.setTarget(at(peers));
      const outgoing = begin('/');
      outgoing.end();
      const incoming = await responseTo(outgoing);
      const ended = new Promise((resolve) => {
        incoming.once('end', () => resolve('ended'));
        incoming.once('error', () => resolve('broken'));
      });
      expect(String((await once(incoming, 'data'))[0])).toBe('half');
      await peers.close();
      return ended;
    };
    expect(await kill('text/event-stream')).toBe('ended');
    expect(await kill('application/json')).toBe('broken');
  });

  test('ends the forwarded request when the client disconnects', async () => {
    const { handler, first } = silent();
    forwarder.setTarget(at(await openPlane(handler)));
    const outgoing = begin('/');
    outgoing.end();
    const request = await first;
    outgoing.destroy();
    await once(request.socket, 'close');
  });

  test('sends the header about strict transport security of its own listener only', async () => {
    const hsts = { 'strict-transport-security': 'max-age=1' };
    const peers = await openPlane((_request, response) => response.writeHead(200, hsts).end());
    forwarder.setTarget(at(peers));
    expect((await send('/')).headers['strict-transport-security']).toBe(undefined);
    const headers = { ...listener.headers, 'strict-transport-security': 'max-age=2' };
    const { guard, connections } = listener;
    stand({ listener: { guard, connections, headers } });
    forwarder.setTarget(at(peers));
    expect((await send('/')).headers['strict-transport-security']).toBe('max-age=2');
  });
});

test('learns from the active plane whose connection it is, and keeps that from the client', async () => {
  const options = { host: '127.0.0.1', port: 0, tls: null, public_origin: null };
  listener = await openListener({ ...options, bounds: { anonymous_max: 2, owned_max: 2 } });
  opened.push(() => listener.close());
  stand();
  const peers = await openPlane((_request, response) => {
    response.writeHead(200, { [CALLER_HEADER]: 'usr_ada' }).end('ok');
  });
  forwarder.setTarget(at(peers));
  const agent = new Agent({ keepAlive: true });
  opened.push(async () => agent.destroy());
  const ask = async () => {
    const outgoing = sendRequest(listener.url, { agent }).end();
    const incoming = await responseTo(outgoing);
    await text(incoming);
    return { reused: outgoing.reusedSocket, caller: incoming.headers[CALLER_HEADER] };
  };
  expect(await ask()).toEqual({ reused: false, caller: undefined });
  for (let i = 0; i < 4; i++) {
    const silent = connect(listener.address.port, '127.0.0.1').on('error', () => {});
    opened.push(async () => void silent.destroy());
    await once(silent, 'connect');
  }
  expect(await ask()).toEqual({ reused: true, caller: undefined });
});

describe('identities', () => {
  test('sends nothing to a server that is not a plane', async () => {
    let served = 0;
    const node = await openPlane(
      (_request, response) => {
        served++;
        response.end();
      },
      await authority.node('web-1'),
    );
    const failed = failure();
    forwarder.setTarget(at(node));
    const response = send('/', { method: 'POST', body: 'secret' });
    await failed;
    forwarder.setTarget(at(await openPlane(answering('plane'))));
    expect((await response).body).toBe('plane');
    expect(served).toBe(0);
  });

  test('uses a new identity when there is one', async () => {
    const next = await TestAuthority.create();
    let own = standby;
    stand({ identity: () => own });
    const peers = await openPlane(answering('plane'));
    forwarder.setTarget(at(peers));
    expect((await send('/')).body).toBe('plane');
    peers.setIdentity(await next.plane('p1'));
    own = await next.plane('p2');
    expect((await send('/')).body).toBe('plane');
  });
});

describe('clients', () => {
  test('checks Host and Origin itself', async () => {
    let served = 0;
    const peers = await openPlane((_request, response) => {
      served++;
      response.end();
    });
    forwarder.setTarget(at(peers));
    expect(refusal(await send('/api/me', { headers: { host: 'evil.example' } }))).toEqual([
      421,
      'unknown_host',
    ]);
    const foreign = await send('/api/me', { headers: { origin: 'https://evil.example' } });
    expect(refusal(foreign)).toEqual([403, 'origin_not_allowed']);
    expect(foreign.headers).toMatchObject({ 'x-frame-options': 'DENY', 'cache-control': 'no-store' });
    expect(foreign.headers['x-request-id']).toMatch(/^req_/);
    expect(JSON.parse(foreign.body)).toEqual({ error: 'origin not allowed' });
    const page = await send('/', { headers: { host: 'evil.example', accept: 'text/html' } });
    expect([page.status, page.headers['content-type']]).toEqual([421, 'text/html; charset=utf-8']);
    expect(served).toBe(0);
  });

  test('names the address of the client, and believes no header about it', async () => {
    const seen: unknown[] = [];
    const peers = await openPlane((request, response) => {
      seen.push(clientAddress(request, true));
      response.end();
    });
    const spoofed = { [CLIENT_HEADER]: '203.0.113.9', 'x-forwarded-for': '203.0.113.8', connection: 'close' };
    forwarder.setTarget(at(peers));
    await send('/', { headers: spoofed });
    await send('/', { headers: { ...spoofed, connection: CLIENT_HEADER } });
    stand({ behind_proxy: true });
    forwarder.setTarget(at(peers));
    await send('/', { headers: spoofed });
    expect(seen).toEqual(['127.0.0.1', '127.0.0.1', '203.0.113.8']);
  });

  test('the public listener of a plane ignores headers about forwarding', async () => {
    const seen: unknown[] = [];
    const plane = await openFakeHttp({
      getMe: ({ caller }) => {
        seen.push(caller.ip);
        return {
          id: 'usr_1',
          username: 'ada',
          role: 'user',
          created_at: '2026-01-02T03:04:05.678Z',
          passkeys: [],
        };
      },
    });
    opened.push(() => plane.drain());
    const headers = { authorization: `Bearer ${USER_TOKEN}`, [CLIENT_HEADER]: '203.0.113.9' };
    const { status } = await fetch(`${plane.url}/api/me`, { headers });
    expect([status, seen]).toEqual([200, ['127.0.0.1']]);
    const outgoing = sendRequest(plane.url, { headers: { ...headers, host: 'evil.example' } });
    outgoing.end();
    const foreign = await responseTo(outgoing);
    foreign.resume();
    expect(foreign.statusCode).toBe(421);
  });

  test('does not forward a request again', async () => {
    const other = await openPlane(answering('other'));
    forwarder.setTarget(at(other));
    const peers = await openPlane(forwarder.handle);
    const first = await openListener({ host: '127.0.0.1', port: 0, tls: null, public_origin: null });
    opened.push(() => first.close());
    const second = new Forwarder({
      listener: first,
      behind_proxy: false,
      identity: () => standby,
      isPlane,
      log: silentLog,
      hold_ms: 0,
    });
    first.serve(second.handle);
    second.setTarget(at(peers));
    const response = await fetch(first.url);
    expect([response.status, response.headers.get('x-error-code')]).toEqual([503, 'no_active_plane']);
  });
});

describe('without an active plane', () => {
  test('holds requests until there is one', async () => {
    const arrived = arrivals(2);
    const responses = [send('/a'), send('/b', { method: 'POST', body: '{"b":1}' })];
    await arrived;
    const peers = await openPlane((request, response) => request.pipe(response));
    forwarder.setTarget(at(peers));
    expect((await Promise.all(responses)).map(({ status, body }) => [status, body])).toEqual([
      [200, ''],
      [200, '{"b":1}'],
    ]);
  });

  test('forgets a request whose client disconnects', async () => {
    const arrived = once(listener.server, 'request');
    const outgoing = begin('/gone');
    outgoing.end();
    const [, response] = await arrived;
    outgoing.destroy();
    await once(response, 'close');
    const seen: unknown[] = [];
    const peers = await openPlane((request, response) => {
      seen.push(request.url);
      response.end();
    });
    forwarder.setTarget(at(peers));
    await send('/next');
    expect(seen).toEqual(['/next']);
  });

  test('rejects requests that waited too long', async () => {
    stand({ hold_ms: 1 });
    for (const method of ['GET', 'POST']) {
      const response = await send('/', { method });
      expect(refusal(response)).toEqual([503, 'no_active_plane']);
      expect(response.headers['retry-after']).toBe('1');
      expect(JSON.parse(response.body)).toEqual({ error: 'no control plane is active; try again later' });
    }
    forwarder.setTarget(await nowhere());
    expect(refusal(await send('/'))).toEqual([503, 'no_active_plane']);
  });

  test('sends requests to the next plane if one refuses connections', async () => {
    const failed = failure();
    forwarder.setTarget(await nowhere());
    const responses = [send('/'), send('/', { method: 'POST', body: '{}' })];
    await failed;
    forwarder.setTarget(at(await openPlane(answering('second'))));
    expect((await Promise.all(responses)).map(({ body }) => body)).toEqual(['second', 'second']);
  });

  test('tries the same plane again while a request waits', async () => {
    let starting = true;
    const peers = await openPlane((request, response) => {
      (starting ? refusing('not_ready') : answering('ready'))(request, response);
      starting = false;
    });
    forwarder.setTarget(at(peers));
    expect((await send('/')).body).toBe('ready');
  });

  test.each(['draining', 'not_ready', 'no_active_plane'])(
    'a plane that answers %s is not active',
    async (code) => {
      const { promise: refused, resolve } = Promise.withResolvers<void>();
      const peers = await openPlane((request, response) => {
        refusing(code)(request, response);
        resolve();
      });
      forwarder.setTarget(at(peers));
      const rejected = await send('/', { method: 'POST', body: '{}' });
      expect(refusal(rejected)).toEqual([503, 'no_active_plane']);
      const responses = [send('/'), send('/', { method: 'DELETE' })];
      await refused;
      forwarder.setTarget(at(await openPlane(answering('second'))));
      expect((await Promise.all(responses)).map(({ body }) => body)).toEqual(['second', 'second']);
    },
  );

  test.each(['too_many_streams', problems.shutdownInterrupted().code])('passes on a 503 %s', async (code) => {
    forwarder.setTarget(at(await openPlane(refusing(code))));
    expect(refusal(await send('/', { method: 'POST' }))).toEqual([503, code]);
  });

  test('answers health checks itself', async () => {
    const health = async (path: string) => {
      const { status, body } = await send(path);
      return [status, JSON.parse(body)];
    };
    const down = [503, { error: 'service is not ready' }];
    expect(await health('/healthz')).toEqual([200, { status: 'ok' }]);
    expect(await health('/readyz')).toEqual(down);
    forwarder.setTarget(await nowhere());
    expect(await health('/readyz')).toEqual(down);
    const plane = await openFakeHttp({});
    opened.push(() => plane.drain());
    forwarder.setTarget(at(await openPlane(plane.handler)));
    expect(await health('/readyz?x')).toEqual([200, { status: 'ok' }]);
    forwarder.setTarget(at(await openPlane(refusing('not_ready'))));
    expect(await health('/readyz')).toEqual(down);
    expect((await send('/healthz', { method: 'HEAD' })).status).toBe(200);
  });
});

describe('when the active plane dies', () => {
  test('sends a GET without a response to the next plane', async () => {
    const { handler, first } = silent();
    const dying = await openPlane(handler);
    forwarder.setTarget(at(dying));
    const response = send('/');
    await first;
    await dying.close();
    forwarder.setTarget(at(await openPlane(answering('second'))));
    expect((await response).body).toBe('second');
  });

  test('does not repeat a request that may have been carried out', async () => {
    for (const body of ['{}', undefined]) {
      const { handler, first } = silent();
      const dying = await openPlane(handler);
      forwarder.setTarget(at(dying));
      const response = send('/', { method: 'POST', ...(body && { body }) });
      await first;
      await dying.close();
      const { status, headers, body: message } = await response;
      expect([status, headers['x-error-code']]).toEqual([502, 'forward_failed']);
      expect(JSON.parse(message).error).toContain('Idempotency-Key');
    }
  });

  test('gives up requests to a plane that is no longer active and does not answer', async () => {
    stand({ grace_ms: 1 });
    const requests: IncomingMessage[] = [];
    const { promise: complete, resolve } = Promise.withResolvers<void>();
    const frozen = await openPlane((request, response) => {
      requests.push(request);
      if (request.url === '/stream') {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write('id: 1\n\n');
      }
      if (requests.length === 3) resolve();
    });
    forwarder.setTarget(at(frozen));
    const responses = [send('/'), send('/', { method: 'POST' }), send('/stream')];
    await complete;
    forwarder.setTarget(at(await openPlane(answering('second'))));
    const [read, write, stream] = await Promise.all(responses);
    expect([read!.body, refusal(write!)]).toEqual(['second', [502, 'forward_failed']]);
    // The beginning of the stream may not have arrived: the other plane answers then.
    expect(['', 'id: 1\n\n', 'second']).toContain(stream!.body);
  });
});

describe('takeover', () => {
  test('passes held and later requests to the own handler, on the same socket', async () => {
    const failed = failure();
    forwarder.setTarget(await nowhere());
    const held = [send('/'), send('/', { method: 'POST', body: 'held' })];
    await failed;
    const echo: RequestListener = (request, response) => request.pipe(response);
    forwarder.takeOver(echo);
    expect((await Promise.all(held)).map(({ status, body }) => [status, body])).toEqual([
      [200, ''],
      [200, 'held'],
    ]);
    expect((await send('/', { method: 'POST', body: 'later' })).body).toBe('later');
  });

  test('a plane that becomes active answers held requests', async () => {
    const arrived = arrivals(1);
    const held = send('/api/me', { headers: { authorization: `Bearer ${USER_TOKEN}` } });
    const me = {
      username: 'ada',
      role: 'user' as const,
      created_at: '2026-01-02T03:04:05.678Z',
      passkeys: [],
    };
    await arrived;
    const plane = await openFakeHttp({ getMe: () => ({ id: 'usr_1', ...me }) }, { listener });
    forwarder.takeOver(plane.handler);
    const { status, body } = await held;
    expect([status, JSON.parse(body).username]).toEqual([200, 'ada']);
    expect((await send('/healthz')).status).toBe(200);
    await plane.drain();
  });
});

describe('shutdown', () => {
  test('rejects held and new requests, and ends event streams', async () => {
    const { promise: refused, resolve } = Promise.withResolvers<void>();
    const peers = await openPlane((request, response) => {
      if (request.url === '/held') {
        refusing('not_ready')(request, response);
        resolve();
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.flushHeaders();
    });
    forwarder.setTarget(at(peers));
    const held = send('/held');
    await refused;
    const streaming = begin('/stream');
    streaming.end();
    const stream = await responseTo(streaming);
    forwarder.drain();
    expect(await text(stream)).toBe('');
    for (const rejected of [await held, await send('/new')]) {
      expect([...refusal(rejected), rejected.headers.connection]).toEqual([503, 'draining', 'close']);
    }
  });
});
