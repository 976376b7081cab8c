import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isPublic, isRootOnly, type Route } from '../api/route.ts';
import { operationIds, routes } from '../api/routes.ts';
import { invalid, problems } from '../core/problem.ts';
import type { Caller } from '../features/accounts/rules.ts';
import type { Forgetting } from '../features/agents/forgetting.ts';
import { agentHandlers } from '../features/agents/http/agents.ts';
import type { Agents } from '../features/agents/service.ts';
import { openFakeHttp, ROOT_TOKEN, rawRequest, USER_TOKEN } from '../testing/http.ts';
import type { HttpServer } from './server.ts';

let server: HttpServer;
let served: string[];

beforeEach(async () => {
  served = [];
  server = await openFakeHttp({
    getMe: (call) => {
      served.push('getMe');
      return { ...me(call.caller.username), role: call.caller.role };
    },
    createUser: (call) => {
      served.push(call.body.username);
      return {
        location: '/api/admin/users/usr_1',
        body: { id: 'usr_1', username: call.body.username, role: call.body.role, created_at: AT },
      };
    },
    listUsers: (call) => (call.query.limit ? { items: [], next_cursor: String(call.query.limit) } : []),
    ...agentHandlers(
      {
        list: async () => ({ items: [], next_cursor: 'rest' }),
        create: async (_caller: Caller, { workdir }: { workdir: string }) => {
          throw workdir === '/repo' ? problems.repoNotSafe() : problems.workdirNotSafe();
        },
      } as unknown as Agents,
      { until: () => Promise.reject(new Error('nobody waits here')) },
      {} as Forgetting,
      () => ({ worktree_root: '/trees', safe_paths: ['/a b,c', '/ü'], repo_roots: ['/src', '/ü'] }),
    ),
    startAgent: () => {
      throw problems.agentAlreadyRunning();
    },
    stopAgent: () => {
      throw problems.agentNotRunning();
    },
    updateAgent: () => {
      throw problems.agentNotFound();
    },
    getAgent: () => {
      throw new Error('secret detail');
    },
    deleteAgent: (call) =>
      call.query.force
        ? { id: call.params.agent_id, worktree_kept: { workdir: '/w', reason: 'uncommitted changes' } }
        : undefined,
    getChange: (call) => {
      throw invalid(`path ${call.params.path}`);
    },
    join: {
      before: () => {
        throw problems.rootAlreadyInitialized();
      },
      handle: () => {
        throw new Error('not reached');
      },
    },
    createJoinChallenge: () => ({ file: '/d/join.json', expires_at: AT }),
    followAgent: (call) => {
      const response = call.hijack();
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      if (call.method === 'HEAD') response.end();
      else {
        response.write('retry: 1000\n\n');
        call.signal.addEventListener('abort', () => response.end());
      }
      return undefined;
    },
  });
});
afterEach(() => server.drain());

const AT = '2026-01-02T03:04:05.678Z';
const me = (username: string) => ({
  id: 'usr_1',
  username,
  role: 'user' as const,
  created_at: AT,
  passkeys: [],
});
const root = { authorization: `Bearer ${ROOT_TOKEN}` };
const user = { authorization: `Bearer ${USER_TOKEN}` };
const json = { 'content-type': 'application/json' };

async function request(path: string, init: RequestInit = {}) {
  const response = await fetch(`${server.url}${path}`, init);
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: text === '' ? null : JSON.parse(text),
  };
}
const post = (path: string, body: string, headers: Record<string, string> = {}) =>
  request(path, { method: 'POST', headers: { ...root, ...json, ...headers }, body });

describe('every route', () => {
  const filled = (route: Route) => route.path.replace(/\{[a-z_]+\*?\}/g, 'x');

  test.each(operationIds.filter((operation) => !isPublic(routes[operation])))(
    '%s rejects a request without a token or with an invalid one',
    async (operation) => {
      const route: Route = routes[operation];
      const none = await request(filled(route), { method: route.method });
      expect([none.status, none.body]).toEqual([401, { error: 'missing authorization token' }]);
      const bad = await request(filled(route), {
        method: route.method,
        headers: { authorization: 'Bearer nope' },
      });
      expect([bad.status, bad.body]).toEqual([401, { error: 'invalid token' }]);
    },
  );

  test.each(operationIds.filter((operation) => isRootOnly(routes[operation])))(
    '%s rejects a user who is not root, whatever the body',
    async (operation) => {
      const route: Route = routes[operation];
      const init = route.method === 'GET' ? {} : { body: '{', headers: { ...user, ...json } };
      const answer = await request(filled(route), { method: route.method, headers: user, ...init });
      expect([answer.status, answer.body]).toEqual([401, { error: 'root required' }]);
    },
  );

  test('only routes that lead to a sign-in need no token', () => {
    expect(operationIds.filter((operation) => isPublic(routes[operation]))).toEqual([
      'join',
      'checkJoinPin',
      'login',
      'getRelyingParty',
      'startPasskeyLogin',
      'finishPasskeyLogin',
      'createJoinChallenge',
    ]);
  });
});

describe('order of checks', () => {
  test('an unknown path below /api requires the token first', async () => {
    for (const path of ['/api/nothing', '/api', '/%61pi/nothing', '//api/x']) {
      expect((await request(path)).body).toEqual({ error: 'missing authorization token' });
      const known = await request(path, { headers: user });
      expect([known.status, known.body, known.headers.get('x-error-code')]).toEqual([
        404,
        { error: 'not found' },
        'not_found',
      ]);
    }
  });

  test('a known path with another method lists the allowed methods', async () => {
    const answer = await request('/api/me', { method: 'PUT', headers: user });
    expect([answer.status, answer.headers.get('allow'), answer.body]).toEqual([
      405,
      'GET, HEAD',
      { error: 'method not allowed' },
    ]);
    expect((await request('/api/me', { method: 'PUT' })).status).toBe(401);
    expect((await request('/api/me', { method: 'OPTIONS', headers: user })).status).toBe(405);
  });

  test('checks that do not depend on the body come first, whatever the body', async () => {
    for (const body of ['{', '', '{"token":1}', '[]']) {
      const answer = await request('/api/join', { method: 'POST', headers: json, body });
      expect([answer.status, answer.body]).toEqual([401, { error: 'root already initialized' }]);
    }
  });

  test('accepts the scheme Bearer in any case', async () => {
    expect((await request('/api/me', { headers: { authorization: `bearer ${USER_TOKEN}` } })).status).toBe(
      200,
    );
    for (const authorization of [`Basic ${USER_TOKEN}`, USER_TOKEN, 'Bearer', 'Bearer a b', '']) {
      expect((await request('/api/me', { headers: { authorization } })).body).toEqual({
        error: 'invalid token',
      });
    }
  });

  test('does not accept a token in the URL', async () => {
    for (const query of ['token', 'access_token', 'authorization']) {
      expect((await request(`/api/me?${query}=${USER_TOKEN}`)).body).toEqual({
        error: 'missing authorization token',
      });
    }
  });
});

describe('responses', () => {
  test('returns 201 with its location for a creation', async () => {
    const answer = await post('/api/admin/users', '{"username":"bob","password":"x"}');
    expect([answer.status, answer.headers.get('location')]).toEqual([201, '/api/admin/users/usr_1']);
    expect(answer.body).toEqual({ id: 'usr_1', username: 'bob', role: 'user', created_at: AT });
  });

  test('a plain list that is incomplete has the cursor of the rest', async () => {
    const list = await request('/api/agents', { headers: user });
    expect([list.body, list.headers.get('x-next-cursor')]).toEqual([[], 'rest']);
  });

  test('returns 204 for a deletion unless there is a result', async () => {
    const plain = await request('/api/agents/agt_1', { method: 'DELETE', headers: user });
    expect([plain.status, plain.text]).toEqual([204, '']);
    const kept = await request('/api/agents/agt_1?force=true', { method: 'DELETE', headers: user });
    expect([kept.status, kept.body.worktree_kept.reason]).toEqual([200, 'uncommitted changes']);
  });

  test('HEAD answers like GET, without the body', async () => {
    const head = await request('/api/me', { method: 'HEAD', headers: user });
    expect([head.status, head.text]).toEqual([200, '']);
    expect((await request('/api/me', { method: 'HEAD' })).status).toBe(401);
    const stream = await request('/api/agents/agt_1/events', { method: 'HEAD', headers: user });
    expect([stream.status, stream.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  });

  test('every response has the security headers and a unique request id', async () => {
    const ids = new Set<string>();
    for (const answer of [
      await request('/api/me', { headers: user }),
      await request('/api/me'),
      await request('/nothing'),
      await request('/healthz'),
      await request('/api/agents/agt_1/events', { method: 'HEAD', headers: user }),
    ]) {
      expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
      expect(answer.headers.get('cache-control')).toBe('no-store');
      expect(answer.headers.get('access-control-allow-origin')).toBeNull();
      expect(answer.headers.get('set-cookie')).toBeNull();
      ids.add(answer.headers.get('x-request-id')!);
    }
    expect(ids.size).toBe(5);
  });

  test('a rest-of-path parameter keeps its slashes, encoded or not', async () => {
    for (const path of ['a/b%20c.txt', 'a%2Fb%20c.txt']) {
      const answer = await request(`/api/agents/agt_1/changes/${path}`, { headers: user });
      expect(answer.body).toEqual({ error: 'path a/b c.txt' });
    }
  });
});

describe('errors', () => {
  test('returns the message and code of a Problem', async () => {
    const answer = await post('/api/agents/agt_1/start', '');
    expect([answer.status, answer.text]).toEqual([409, '{"error":"agent is already running"}']);
    expect(answer.headers.get('x-error-code')).toBe('agent_already_running');
  });

  test('a rejected path on the main node lists the allowed paths', async () => {
    const refused = async (more: object) => {
      const body = JSON.stringify({ name: 'a', command: 'true', ...more });
      const { status, headers } = await post('/api/agents', body);
      return [
        status,
        ...['x-error-code', 'x-allowed-paths', 'x-refused-path'].map((name) => headers.get(name)),
      ];
    };
    expect(await refused({ workdir: '/x y' })).toEqual([
      ...[400, 'workdir_not_safe', '/a%20b%2Cc, /%C3%BC', '/x%20y'],
    ]);
    // Not valid Unicode: half of a surrogate pair.
    expect((await refused({ workdir: '/x/\ud800' })).at(-1)).toBe('/x/%EF%BF%BD');
    expect(await refused({ workdir: '/repo' })).toEqual([
      ...[400, 'worktree_repo_not_safe', '/a%20b%2Cc, /%C3%BC, /src', null],
    ]);
    expect(await refused({ workdir: '/x', node_id: 'far' })).toEqual([400, 'workdir_not_safe', null, null]);
  });

  test('returns a 500 without details for anything else', async () => {
    const answer = await request('/api/agents/agt_1', { headers: user });
    expect([answer.status, answer.text]).toEqual([500, '{"error":"internal server error"}']);
    expect(JSON.stringify([...answer.headers])).not.toContain('secret detail');
  });

  test.each([
    ['{}', 'username is required'],
    ['{"username":5}', 'username must be a string'],
    [
      '{"username":"A b","password":"x"}',
      'username must be 1 to 64 characters from a-z, 0-9, ".", "_" and "-"',
    ],
    ['{"username":"bob","password":"x","role":"king"}', 'role must be one of: root, user'],
    ['[]', 'body must be an object'],
    ['null', 'body must be an object'],
    ['5', 'body must be an object'],
    ['', 'username is required'],
    ['{', 'request body is not valid JSON'],
    ['{"a":NaN}', 'request body is not valid JSON'],
    ['\ufeff{}', 'request body is not valid JSON'],
    ['{"__proto__":{"username":"x"},"username":"bob","password":"x"}', '__proto__ is not allowed'],
    ['{"username":"bob","password":"x","a":[{"__proto__":1}]}', '__proto__ is not allowed'],
    [`{"a":${'['.repeat(64)}${']'.repeat(64)}}`, 'request body is nested more than 64 levels deep'],
    [`${'['.repeat(10_000)}${']'.repeat(10_000)}`, 'request body is nested more than 64 levels deep'],
    [`${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`, 'request body is nested more than 64 levels deep'],
  ])('the body %.40s is refused: %s', async (body, message) => {
    const answer = await post('/api/admin/users', body);
    expect([answer.status, answer.body]).toEqual([400, { error: message }]);
    expect(served).toEqual([]);
  });

  test('accepts nesting up to the limit', async () => {
    const deep = `${'['.repeat(62)}${']'.repeat(62)}`;
    const answer = await post('/api/agents/agt_1/stop', `{"a":${deep}}`);
    expect(answer.body).toEqual({ error: 'agent is not running' });
  });

  test('invalid UTF-8 is not JSON', async () => {
    const answer = await request('/api/admin/users', {
      method: 'POST',
      headers: { ...root, ...json },
      body: Buffer.from([0x22, 0xff, 0x22]),
    });
    expect(answer.body).toEqual({ error: 'request body is not valid JSON' });
  });

  test.each(['0', '201', '-1', '1.5', 'ten', '', '1e1', '0x10', ' 1', '1&limit=2', '99999999999999999999'])(
    'rejects limit=%s',
    async (limit) => {
      const answer = await request(`/api/admin/users?limit=${limit}`, { headers: root });
      expect([answer.status, answer.body, answer.headers.get('x-error-code')]).toEqual([
        400,
        { error: 'limit must be an integer from 1 to 200' },
        'invalid_limit',
      ]);
    },
  );

  test('accepts limits from 1 to 200, which change the format of a list', async () => {
    expect((await request('/api/admin/users', { headers: root })).body).toEqual([]);
    for (const limit of ['1', '200']) {
      const answer = await request(`/api/admin/users?limit=${limit}`, { headers: root });
      expect(answer.body).toEqual({ items: [], next_cursor: limit });
    }
  });
});

describe('unknown fields', () => {
  const ignored = async (method: string, path: string, body?: object) => {
    const init = body === undefined ? {} : { headers: { ...root, ...json }, body: JSON.stringify(body) };
    const answer = await request(path, { method, headers: root, ...init });
    return [answer.status, answer.body?.error, answer.headers.get('x-ignored-fields')];
  };

  test('are ignored and reported, even in errors and streams', async () => {
    const agent = '/api/agents/agt_1';
    const stopped = [409, 'agent is not running'];
    expect(await ignored('POST', `${agent}/stop`, { grace_seconds: 1 })).toEqual([...stopped, null]);
    expect(await ignored('POST', `${agent}/stop`, { grace: 1 })).toEqual([...stopped, 'grace']);
    expect(await ignored('POST', `${agent}/stop?now=1`, { grace: 1 })).toEqual([...stopped, 'grace, ?now']);
    expect(await ignored('POST', `${agent}/start`, { now: 1 })).toEqual([
      409,
      'agent is already running',
      'now',
    ]);
    expect(await ignored('POST', '/api/agents', { argvv: ['x'] })).toEqual([
      400,
      'name is required',
      'argvv',
    ]);
    expect(await ignored('HEAD', `${agent}/events?afer=1`)).toEqual([200, undefined, '?afer']);
    expect(await ignored('GET', '/api/admin/users?lmit=1')).toEqual([200, undefined, '?lmit']);
  });

  test('are rejected first when a user is created', async () => {
    const body = { username: 'bob', password: 'x', rôle: 'root' };
    expect(await ignored('POST', '/api/admin/users', body)).toEqual([400, 'unknown field "rôle"', null]);
    expect(await ignored('POST', '/api/admin/users', { usernme: 'bob' })).toEqual([
      ...[400, 'unknown field "usernme"', null],
    ]);
    expect(served).toEqual([]);
  });

  test('count as no change if an update has no other fields', async () => {
    const agent = '/api/agents/agt_1';
    expect(await ignored('PATCH', agent, { nmae: 'x' })).toEqual([400, 'nothing to change', 'nmae']);
    expect(await ignored('PATCH', agent, {})).toEqual([400, 'nothing to change', null]);
    expect(await ignored('PATCH', agent)).toEqual([400, 'nothing to change', null]);
    expect(await ignored('PATCH', agent, { name: 'x', nmae: 'x' })).toEqual([404, 'agent not found', 'nmae']);
  });
});

describe('bodies', () => {
  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'nonsense',
    '',
  ])('rejects the content type "%s"', async (type) => {
    const answer = await post('/api/admin/users', '{"username":"bob","password":"x"}', {
      'content-type': type,
    });
    expect([answer.status, answer.body]).toEqual([415, { error: 'content type must be application/json' }]);
  });

  test('rejects an empty form post too', async () => {
    const answer = await request('/api/agents/agt_1/start', {
      method: 'POST',
      headers: { ...user, 'content-type': 'text/plain' },
    });
    expect(answer.status).toBe(415);
  });

  test('rejects a compressed body without reading it', async () => {
    const answer = await post('/api/admin/users', 'xxx', { 'content-encoding': 'gzip' });
    expect([answer.status, answer.headers.get('x-error-code')]).toEqual([415, 'content_encoding_refused']);
  });

  test('accepts 1 MiB, and rejects one byte more', async () => {
    const frame = '{"a":""}';
    const sized = (bytes: number) => frame.replace('""', `"${'a'.repeat(bytes - frame.length)}"`);
    const stop = '/api/agents/agt_1/stop';
    expect((await post(stop, sized(1024 * 1024))).body).toEqual({ error: 'agent is not running' });
    const answer = await post(stop, sized(1024 * 1024 + 1));
    expect([answer.status, answer.body]).toEqual([413, { error: 'request body is too large' }]);
  });

  test('rejects an endless chunked body and closes the connection', async () => {
    const text = await rawRequest(server.url, (socket) => {
      socket.write(
        `POST /api/admin/users HTTP/1.1\r\nHost: ${new URL(server.url).host}\r\nAuthorization: Bearer ${ROOT_TOKEN}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
      );
      const chunk = `10000\r\n${' '.repeat(65_536)}\r\n`;
      const more = () => {
        while (!socket.destroyed && socket.write(chunk));
        if (!socket.destroyed) socket.once('drain', more);
      };
      more();
    });
    expect(text).toContain('HTTP/1.1 413');
    expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  test('stops reading a rejected body', async () => {
    const text = await rawRequest(server.url, (socket) => {
      socket.write(
        `POST /api/admin/users HTTP/1.1\r\nHost: ${new URL(server.url).host}\r\nContent-Type: application/json\r\nContent-Length: 100000000\r\n\r\n`,
      );
      const more = () => {
        while (!socket.destroyed && socket.write(' '.repeat(65_536)));
        if (!socket.destroyed) socket.once('drain', more);
      };
      more();
    });
    expect(text).toContain('missing authorization token');
  });
});

describe('idempotency keys', () => {
  const body = '{"username":"bob","password":"x"}';
  const key = { 'idempotency-key': 'k-1' };

  test('return the first response for a repeated request, which runs once', async () => {
    const first = await post('/api/admin/users', body, key);
    const second = await post('/api/admin/users', body, key);
    expect([second.status, second.text, second.headers.get('location')]).toEqual([
      201,
      first.text,
      first.headers.get('location'),
    ]);
    expect(served).toEqual(['bob']);
  });

  test('with a different request are a conflict', async () => {
    await post('/api/admin/users', body, key);
    const answer = await post('/api/admin/users', body.replace('bob', 'eve'), key);
    expect([answer.status, answer.body]).toEqual([
      409,
      { error: 'idempotency key reused with a different request' },
    ]);
  });

  test('are free again after a failed request', async () => {
    expect((await post('/api/agents/agt_1/start', '', key)).status).toBe(409);
    expect((await post('/api/admin/users', body, key)).status).toBe(201);
  });

  test('have a limited length', async () => {
    const answer = await post('/api/admin/users', body, { 'idempotency-key': 'k'.repeat(256) });
    expect(answer.body).toEqual({ error: 'Idempotency-Key must be 1 to 255 visible ASCII characters' });
  });
});

describe('shutdown', () => {
  test('ends streams and then the listener', async () => {
    const response = await fetch(`${server.url}/api/agents/agt_1/events`, { headers: user });
    const reading = response.text();
    await server.drain();
    expect(await reading).toBe('retry: 1000\n\n');
    await expect(fetch(`${server.url}/healthz`)).rejects.toThrow();
  });
});
