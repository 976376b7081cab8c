import { once } from 'node:events';
import { connect } from 'node:net';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sleep } from '../base/async.ts';
import { Client } from '../client/client.ts';
import type { Scope } from '../core/grant.ts';
import { problems } from '../core/problem.ts';
import type { Caller } from '../features/accounts/rules.ts';
import { bytesOf, foreignHosts, foreignOrigins, unclearRequests } from '../testing/bad-requests.ts';
import { openFakeHttp, ROOT_TOKEN, rawRequest, USER_TOKEN } from '../testing/http.ts';
import { limits } from './limits.ts';
import type { HttpServer } from './server.ts';

let server: HttpServer;
let host: string;
let served: number;

beforeEach(async () => {
  served = 0;
  server = await openFakeHttp({
    getMe: (call) => {
      served++;
      const { user_id, username, role } = call.caller;
      return { id: user_id, username, role, created_at: '2026-01-02T03:04:05.678Z', passkeys: [] };
    },
    logout: () => {
      served++;
      return undefined;
    },
    createJoinChallenge: () => {
      served++;
      return { file: '/d/join.json', expires_at: '2026-01-02T03:04:05.678Z' };
    },
  });
  host = new URL(server.url).host;
});
afterEach(() => server.drain());

/** Sends lines and returns the whole response; requests that the connection is closed. */
function send(lines: string[]): Promise<string> {
  return rawRequest(server.url, (socket) => socket.write(`${lines.join('\r\n')}\r\n\r\n`));
}
const get = (headers: string[]) =>
  send(['GET /api/me HTTP/1.1', `Authorization: Bearer ${USER_TOKEN}`, 'Connection: close', ...headers]);
const status = (answer: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);
const error = (answer: string) => JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)).error;

describe('hosts', () => {
  test('accepts its own host names with its port', async () => {
    const { port } = server.address;
    for (const name of [`127.0.0.1:${port}`, `localhost:${port}`, `LOCALHOST:${port}`, `[::1]:${port}`]) {
      expect(status(await get([`Host: ${name}`]))).toBe(200);
    }
  });

  test('rejects any other host', async () => {
    const { port } = server.address;
    for (const name of foreignHosts(port)) {
      const answer = await get([`Host: ${name}`]);
      expect([name, status(answer), error(answer)]).toEqual([name, 421, 'unknown host']);
    }
    expect(served).toBe(0);
  });

  test('rejects a missing, empty or repeated host, and ends the connection', async () => {
    for (const headers of [
      [],
      ['Host:'],
      [`Host: ${host}`, `Host: ${host}`],
      [`Host: ${host}`, 'hOST: evil'],
    ]) {
      const answer = await send(['GET /api/me HTTP/1.1', `Authorization: Bearer ${USER_TOKEN}`, ...headers]);
      expect([status(answer), /connection: close/i.test(answer)]).toEqual([400, true]);
    }
    expect(served).toBe(0);
  });

  test('rejects a request target that names a host', async () => {
    const answer = await send([
      'GET http://evil.example/api/me HTTP/1.1',
      `Host: ${host}`,
      `Authorization: Bearer ${USER_TOKEN}`,
      'Connection: close',
    ]);
    expect([status(answer), error(answer)]).toEqual([400, 'request target must be a path']);
    expect(served).toBe(0);
  });

  test('bound to all addresses, accepts the local address of a connection but no other names', async () => {
    const wide = await openFakeHttp({}, { host: '0.0.0.0' });
    try {
      const { port } = wide.address;
      const at = (name: string) =>
        rawRequest(`http://127.0.0.1:${port}`, (socket) =>
          socket.write(`GET /healthz HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`),
        );
      expect(status(await at(`127.0.0.1:${port}`))).toBe(200);
      expect(status(await at(`127.0.0.2:${port}`))).toBe(421);
      expect(status(await at(`rebound.example:${port}`))).toBe(421);
    } finally {
      await wide.drain();
    }
  });

  test('the public origin adds its host and itself', async () => {
    const fronted = await openFakeHttp({}, { public_origin: 'https://svc.example', behind_proxy: true });
    try {
      const at = (headers: string) =>
        rawRequest(fronted.url, (socket) =>
          socket.write(`GET /healthz HTTP/1.1\r\n${headers}Connection: close\r\n\r\n`),
        );
      expect(status(await at('Host: svc.example\r\n'))).toBe(200);
      expect(status(await at('Host: svc.example:443\r\nOrigin: https://svc.example\r\n'))).toBe(200);
      expect(status(await at('Host: svc.example\r\nOrigin: http://svc.example\r\n'))).toBe(403);
      expect(status(await at('Host: svc.example.evil\r\n'))).toBe(421);
    } finally {
      await fronted.drain();
    }
  });
});

describe('origins', () => {
  test('accepts its own origin', async () => {
    for (const origin of [`http://${host}`, `http://localhost:${server.address.port}`]) {
      expect(status(await get([`Host: ${host}`, `Origin: ${origin}`]))).toBe(200);
    }
  });

  test('rejects any other origin, even with a valid token', async () => {
    const { port } = server.address;
    for (const origin of foreignOrigins(host, port)) {
      const answer = await get([`Host: ${host}`, `Origin: ${origin}`]);
      expect([origin, status(answer), error(answer)]).toEqual([origin, 403, 'origin not allowed']);
    }
    expect(served).toBe(0);
  });

  test('rejects a request that the browser marks as cross-site', async () => {
    expect(status(await get([`Host: ${host}`, 'Sec-Fetch-Site: cross-site']))).toBe(403);
    expect(
      status(await get([`Host: ${host}`, 'Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: navigate'])),
    ).toBe(403);
    expect(status(await get([`Host: ${host}`, 'Sec-Fetch-Site: same-origin']))).toBe(200);
  });

  test('allows links from other sites to a page, but not embedding', async () => {
    const page = (mode: string) =>
      send([
        'GET / HTTP/1.1',
        `Host: ${host}`,
        'Sec-Fetch-Site: cross-site',
        `Sec-Fetch-Mode: ${mode}`,
        'Connection: close',
      ]);
    // The page of a server whose web UI is not built.
    expect(status(await page('navigate'))).toBe(503);
    expect(status(await page('no-cors'))).toBe(403);
  });

  test('has no CORS: a preflight gets no permission', async () => {
    const answer = await send([
      'OPTIONS /api/me HTTP/1.1',
      `Host: ${host}`,
      'Origin: https://evil.example',
      'Access-Control-Request-Method: POST',
      'Connection: close',
    ]);
    expect(status(answer)).toBe(403);
    expect(answer.toLowerCase()).not.toContain('access-control-');
  });
});

describe('malformed HTTP', () => {
  const auth = `Authorization: Bearer ${USER_TOKEN}`;
  const smuggled = `GET /api/me HTTP/1.1\r\nHost: x\r\n\r\n`;

  test.each(unclearRequests(USER_TOKEN))('$name: 400, and the connection ends', async (request) => {
    const answer = await rawRequest(server.url, (socket) => socket.write(bytesOf(request, host, smuggled)));
    expect(status(answer)).toBe(400);
    expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1);
    expect(answer).toMatch(/connection: close/i);
    expect(typeof error(answer)).toBe('string');
    expect(served).toBe(0);
  });

  test('rejects headers above 16 KiB with 431, and ends the connection', async () => {
    const answer = await get([`Host: ${host}`, `X-A: ${'a'.repeat(17 * 1024)}`]);
    expect([status(answer), error(answer)]).toEqual([431, 'request headers are too large']);
  });

  test('rejects a header named __proto__', async () => {
    expect(status(await get([`Host: ${host}`, '__proto__: x']))).toBe(400);
    expect(status(await get([`Host: ${host}`, 'constructor: x', 'toString: y']))).toBe(200);
  });

  test.each(['/api/%', '/api/%zz', '/api/me%00', '/api/agents/%00', '/api/agents/a%00b/start'])(
    'rejects the path %s without an unexpected error',
    async (path) => {
      const answer = await send([`GET ${path} HTTP/1.1`, `Host: ${host}`, auth, 'Connection: close']);
      expect([400, 404, 405]).toContain(status(answer));
    },
  );

  test('accepts or rejects any body without an unexpected error', async () => {
    const body = fc.oneof(
      fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
      fc.json({ maxDepth: 5 }).map((text) => Buffer.from(text)),
      fc.tuple(fc.json(), fc.nat(), fc.integer({ min: 0, max: 255 })).map(([text, at, byte]) => {
        const bytes = Buffer.from(text);
        bytes[at % bytes.length] = byte;
        return bytes;
      }),
    );
    await fc.assert(
      fc.asyncProperty(body, async (bytes) => {
        const response = await fetch(`${server.url}/api/logout`, {
          method: 'POST',
          headers: { authorization: `Bearer ${USER_TOKEN}`, 'content-type': 'application/json' },
          body: bytes,
        });
        await response.text();
        expect([204, 400]).toContain(response.status);
      }),
      { numRuns: 300 },
    );
  });

  test('keeps serving after all of these requests', async () => {
    expect(status(await get([`Host: ${host}`]))).toBe(200);
    expect(served).toBe(1);
  });
});

describe('slow clients', () => {
  const quick = { headers_ms: 300, request_ms: 600, check_ms: 100 };

  test.each([
    ['headers that never end', `GET /api/me HTTP/1.1\r\nHost: `],
    [
      'a body that never ends',
      `POST /api/logout HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer ${USER_TOKEN}\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{`,
    ],
  ])('%s: 408, and the connection ends', async (_name, text) => {
    const strict = await openFakeHttp({ logout: () => undefined }, { timeouts: quick });
    try {
      const answer = await rawRequest(strict.url, (socket) =>
        socket.write(text.replace('HOST', new URL(strict.url).host)),
      );
      expect([status(answer), error(answer)]).toEqual([408, 'request took too long']);
    } finally {
      await strict.drain();
    }
  });

  test('disconnects a client that does not read its response, however slow the response is', async () => {
    const me = { id: 'usr_ada', role: 'user' as const, created_at: '2026-01-02T03:04:05.678Z', passkeys: [] };
    const strict = await openFakeHttp(
      {
        getMe: () => ({ ...me, username: 'x'.repeat(32 * 1024 * 1024) }),
        listNodes: async () => {
          await sleep(1_000);
          return [];
        },
      },
      { timeouts: { stall_ms: 200 } },
    );
    const socket = connect(strict.address.port, '127.0.0.1');
    socket.on('error', () => {});
    try {
      const { host } = new URL(strict.url);
      socket.write(`GET /api/me HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${USER_TOKEN}\r\n\r\n`);
      while (strict.requests_open() === 0) await sleep(10);
      while (strict.requests_open() > 0) await sleep(10);
      expect(await new Client({ url: strict.url, token: USER_TOKEN }).call('listNodes')).toEqual([]);
    } finally {
      socket.destroy();
      await strict.drain();
    }
  });

  test('keeps serving others during hundreds of half-sent requests', async () => {
    const crowd = await Promise.all(
      Array.from({ length: 500 }, async () => {
        const socket = connect(server.address.port, '127.0.0.1');
        socket.on('error', () => {});
        await once(socket, 'connect');
        socket.write('GET /api/me HTTP/1.1\r\nX-A: ');
        return socket;
      }),
    );
    try {
      for (let i = 0; i < 20; i++) expect(status(await get([`Host: ${host}`]))).toBe(200);
      expect(server.requests_open()).toBe(0);
    } finally {
      for (const socket of crowd) socket.destroy();
    }
  });

  test('a stream may last longer than a request', async () => {
    const strict = await openFakeHttp(
      {
        followAgent: (call) => {
          const response = call.hijack();
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          response.write('retry: 1000\n\n');
          setTimeout(() => response.end('id: 1\n\n'), 1_500);
          return undefined;
        },
      },
      { timeouts: quick },
    );
    try {
      const response = await fetch(`${strict.url}/api/agents/agt_1/events`, {
        headers: { authorization: `Bearer ${USER_TOKEN}` },
      });
      expect(await response.text()).toBe('retry: 1000\n\nid: 1\n\n');
    } finally {
      await strict.drain();
    }
  });
});

describe('draining', () => {
  test('rejects a request during the shutdown and ends its connection', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const ending = await openFakeHttp({
      logout: async () => {
        await held;
        return undefined;
      },
    });
    const at = new URL(ending.url).host;
    const auth = `Host: ${at}\r\nAuthorization: Bearer ${USER_TOKEN}\r\n`;
    let finish = () => {};
    const late = rawRequest(ending.url, (socket) => {
      socket.write('GET /api/me HTTP/1.1\r\n');
      finish = () => socket.write(`${auth}\r\n`);
    });
    const early = fetch(`${ending.url}/api/logout`, {
      method: 'POST',
      headers: { authorization: `Bearer ${USER_TOKEN}` },
    });
    await expect.poll(() => ending.requests_open()).toBe(1);
    const drained = ending.drain();
    finish();
    const answer = await late;
    expect([status(answer), error(answer)]).toEqual([503, 'service is shutting down']);
    expect(answer).toMatch(/connection: close/i);
    release();
    expect((await early).status).toBe(204);
    await drained;
  });
});

describe('local callers', () => {
  const challenge = (extra: string[]) =>
    send(['POST /api/admin/join-challenge HTTP/1.1', `Host: ${host}`, 'Connection: close', ...extra]);

  test('a loopback route answers this machine, but no client behind a proxy on it', async () => {
    expect(status(await challenge([]))).toBe(202);
    for (const header of [
      'X-Forwarded-For: 127.0.0.1',
      'Forwarded: for=127.0.0.1',
      'X-Real-IP: ::1',
      'Via: 1.1 x',
    ]) {
      const answer = await challenge([header]);
      expect([status(answer), error(answer)]).toEqual([403, 'not allowed']);
    }
    expect(served).toBe(1);
  });

  test('a loopback route rejects a client behind a proxy that only forwards the public host name', async () => {
    const fronted = await openFakeHttp(
      {
        createJoinChallenge: () => ({ file: '/d/join.json', expires_at: '2026-01-02T03:04:05.678Z' }),
      },
      { public_origin: 'https://svc.example' },
    );
    try {
      const ask = (line: string, name: string) =>
        rawRequest(fronted.url, (socket) =>
          socket.write(`${line} HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`),
        );
      const { port } = fronted.address;
      for (const name of [`127.0.0.1:${port}`, `LocalHost:${port}`, `[::1]:${port}`]) {
        expect(status(await ask('POST /api/admin/join-challenge', name))).toBe(202);
      }
      expect(status(await ask('POST /api/admin/join-challenge', 'svc.example'))).toBe(403);
      expect(status(await ask('GET /metrics', 'svc.example'))).toBe(401);
    } finally {
      await fronted.drain();
    }
  });

  test('metrics need a token of root, even on this machine', async () => {
    const metrics = (extra: string[]) =>
      send(['GET /metrics HTTP/1.1', `Host: ${host}`, 'Connection: close', ...extra]);
    const anybody = await metrics([]);
    expect([status(anybody), error(anybody)]).toEqual([401, 'missing authorization token']);
    const root = await metrics([`Authorization: Bearer ${ROOT_TOKEN}`]);
    expect(status(root)).toBe(200);
    expect(root).toContain('svc_http_requests_total');
    const user = await metrics([`Authorization: Bearer ${USER_TOKEN}`]);
    expect([status(user), error(user)]).toEqual([401, 'root required']);
    expect(status(await metrics(['Authorization: Bearer nope']))).toBe(401);
  });

  test('metrics need the scope `metrics`, and no other', async () => {
    const granted = (given: Scope[]): Caller => {
      const grant = { scopes: given, limits: null };
      return { user_id: 'usr_root', username: 'root', role: 'root', token_id: 'tok_api', grant, ip: null };
    };
    const scoped = await openFakeHttp({}, { authenticate: (token) => granted(token.split(',') as Scope[]) });
    const ask = async (token: string) => {
      const response = await fetch(`${scoped.url}/metrics`, {
        headers: { authorization: `Bearer ${token}` },
      });
      return response.ok ? 'ok' : ((await response.json()) as { error: string }).error;
    };
    try {
      expect(await ask('metrics')).toBe('ok');
      expect(await ask('read,operate,manage,admin')).toBe('token lacks scope metrics');
    } finally {
      await scoped.drain();
    }
  });

  test('metrics need no token while `metrics.open` is set', async () => {
    let open = true;
    const watched = await openFakeHttp({}, { metrics_open: () => open, behind_proxy: true });
    try {
      expect((await fetch(`${watched.url}/metrics`)).status).toBe(200);
      open = false;
      expect((await fetch(`${watched.url}/metrics`)).status).toBe(401);
    } finally {
      await watched.drain();
    }
  });

  test('behind a proxy, the client is the last address that the proxy names', async () => {
    const ips: (string | null)[] = [];
    const fronted = await openFakeHttp(
      {
        logout: (call) => {
          ips.push(call.ip);
          return undefined;
        },
      },
      { behind_proxy: true },
    );
    try {
      const at = new URL(fronted.url).host;
      const ask = (line: string, extra: string) =>
        rawRequest(fronted.url, (socket) =>
          socket.write(`${line} HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\n${extra}\r\n`),
        );
      const token = `Authorization: Bearer ${USER_TOKEN}\r\n`;
      await ask('POST /api/logout', `${token}X-Forwarded-For: 6.6.6.6, 203.0.113.9\r\n`);
      await ask(
        'POST /api/logout',
        `${token}X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: ::ffff:198.51.100.7\r\n`,
      );
      await ask('POST /api/logout', `${token}X-Forwarded-For: nonsense\r\n`);
      expect(ips).toEqual(['203.0.113.9', '198.51.100.7', '127.0.0.1']);
    } finally {
      await fronted.drain();
    }
  });

  test('without a proxy, forwarding headers are ignored', async () => {
    const seen: (string | null)[] = [];
    const plain = await openFakeHttp({
      logout: (call) => {
        seen.push(call.ip);
        return undefined;
      },
    });
    try {
      await fetch(`${plain.url}/api/logout`, {
        method: 'POST',
        headers: { authorization: `Bearer ${USER_TOKEN}`, 'x-forwarded-for': '6.6.6.6' },
      });
      expect(seen).toEqual(['127.0.0.1']);
    } finally {
      await plain.drain();
    }
  });
});

describe('health', () => {
  test('healthz and readyz return yes or no, without a token', async () => {
    let ready = false;
    const young = await openFakeHttp({}, { ready: () => ready });
    try {
      expect((await fetch(`${young.url}/healthz`)).status).toBe(200);
      expect((await fetch(`${young.url}/readyz`)).status).toBe(503);
      ready = true;
      const answer = await fetch(`${young.url}/readyz`);
      expect([answer.status, await answer.text()]).toEqual([200, '{"status":"ok"}']);
    } finally {
      await young.drain();
    }
  });

  test('readyz says whether PostgreSQL answers, and stays ready', async () => {
    let up = true;
    const http = await openFakeHttp({}, { database_up: () => up });
    try {
      const readyz = async () => {
        const answer = await fetch(`${http.url}/readyz`);
        return [answer.status, await answer.json()];
      };
      expect(await readyz()).toEqual([200, { status: 'ok', database: 'ok' }]);
      up = false;
      expect(await readyz()).toEqual([200, { status: 'ok', database: 'unreachable' }]);
    } finally {
      await http.drain();
    }
  });
});

describe('rates', () => {
  test('a caller above the rate gets 429 with a retry time, and others are not delayed', async () => {
    const strict = await openFakeHttp(
      { logout: () => undefined },
      { rate: () => ({ per_second: 0.001, burst: 3 }) },
    );
    try {
      const logout = (token: string) =>
        fetch(`${strict.url}/api/logout`, { method: 'POST', headers: { authorization: `Bearer ${token}` } });
      for (let i = 0; i < 3; i++) expect((await logout(USER_TOKEN)).status).toBe(204);
      const refused = await logout(USER_TOKEN);
      expect([refused.status, await refused.text()]).toEqual([429, '{"error":"too many requests"}']);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      expect((await logout(ROOT_TOKEN)).status).toBe(204);
    } finally {
      await strict.drain();
    }
  });

  test("a user's tokens share a limit of four times that of one token", async () => {
    const caller = { username: 'ada', role: 'user', grant: null } as const;
    const strict = await openFakeHttp(
      { logout: () => undefined },
      {
        rate: () => ({ per_second: 0.001, burst: 2 }),
        authenticate: (token, ip) => ({ ...caller, user_id: token.split('-')[0]!, token_id: token, ip }),
      },
    );
    try {
      const statuses = async (token: string) => {
        const headers = { authorization: `Bearer ${token}` };
        const responses = ['first', 'second'].map(() =>
          fetch(`${strict.url}/api/logout`, { method: 'POST', headers }),
        );
        return (await Promise.all(responses)).map(({ status }) => status);
      };
      for (let n = 1; n <= 4; n++) expect(await statuses(`ada-${n}`)).toEqual([204, 204]);
      expect(await statuses('ada-5')).toEqual([429, 429]);
      expect(await statuses('ben-1')).toEqual([204, 204]);
    } finally {
      await strict.drain();
    }
  });

  test('requests without a valid token share the limit of their address', async () => {
    const strict = await openFakeHttp({}, { rate: () => ({ per_second: 0.001, burst: 3 }) });
    try {
      const statuses = [];
      for (const authorization of ['Bearer a', 'Bearer b', 'Bearer c', 'Bearer d']) {
        statuses.push((await fetch(`${strict.url}/api/me`, { headers: { authorization } })).status);
      }
      expect(statuses).toEqual([401, 401, 401, 429]);
    } finally {
      await strict.drain();
    }
  });

  test('a flood without a token, or of one public route, does not delay the others', async () => {
    const challenge = { file: '/d/join.json', expires_at: '2026-01-02T03:04:05.678Z' };
    const strict = await openFakeHttp(
      {
        createJoinChallenge: () => challenge,
        checkJoinPin: () => undefined,
        login: () => Promise.reject(problems.invalidLogin()),
      },
      { rate: () => ({ per_second: 0.001, burst: 3 }) },
    );
    try {
      const post = async (path: string, body?: unknown) => {
        const headers = { 'content-type': 'application/json' };
        return (
          await fetch(strict.url + path, {
            method: 'POST',
            ...(body ? { headers, body: JSON.stringify(body) } : {}),
          })
        ).status;
      };
      for (let i = 0; i < 5; i++) await fetch(`${strict.url}/api/me`);
      const challenges = [];
      for (let i = 0; i < 4; i++) challenges.push(await post('/api/admin/join-challenge'));
      expect(challenges).toEqual([202, 202, 202, 429]);
      // The service limits sign-ins, because it knows whose attempts they are.
      for (let i = 0; i < 5; i++)
        expect(await post('/api/login', { username: 'ada', password: 'x' })).toBe(401);
    } finally {
      await strict.drain();
    }
  });

  test('accepts a large body only with a token', async () => {
    const body = JSON.stringify({ username: 'ada', password: 'x'.repeat(limits.public_body_bytes_max) });
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${server.url}/api/login`, { method: 'POST', headers, body });
    expect([response.status, await response.json()]).toEqual([413, { error: 'request body is too large' }]);
  });
});
