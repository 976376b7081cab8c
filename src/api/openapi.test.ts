import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { API_VERSION, openapi } from './openapi.ts';
import type { Route } from './route.ts';
import { operationIds, routes } from './routes.ts';

const description = openapi() as {
  info: { version: string };
  paths: Record<string, Record<string, { operationId: string; responses: Record<string, unknown> }>>;
};

test('openapi.json matches the route table; run `npm run generate` if this fails', () => {
  const committed = readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8');
  expect(committed).toBe(`${JSON.stringify(description, null, 2)}\n`);
});

test('every operation has a unique id', () => {
  const described = operationsOf(({ method }) => method !== 'head').map(({ operationId }) => operationId);
  expect(described.sort()).toEqual([...operationIds].sort());
  expect(description.info.version).toBe(API_VERSION);
});

test('every reference resolves', () => {
  const references = [...JSON.stringify(description).matchAll(/"\$ref":"([^"]+)"/g)].map(([, path]) => path!);
  expect(references.length).toBeGreaterThan(0);
  expect(references.filter((path) => resolveRef(path) === undefined)).toEqual([]);
});

test('shares repeated definitions as components', () => {
  const operations = operationsOf(() => true) as unknown as { parameters: object[]; responses: object }[];
  const failures = operations.flatMap(({ responses }) =>
    Object.entries(responses).flatMap(([status, response]) => (Number(status) >= 400 ? [response] : [])),
  );
  const inline = [...failures, ...operations.flatMap(({ parameters }) => parameters)]
    .filter((part) => !('$ref' in part))
    .map((part) => JSON.stringify(part));
  const shared = [...JSON.stringify(description).matchAll(/"\$ref":"(#[^"]+)"/g)]
    .filter(([, path]) => !path!.startsWith('#/components/schemas/'))
    .map(([, path]) => JSON.stringify(resolveRef(path!)));
  expect(inline.filter((part) => shared.includes(part))).toEqual([]);
});

test('every operation lists its success response, token errors and fixed errors', () => {
  for (const { operationId, responses } of operationsOf(({ method }) => method !== 'head')) {
    const route = routes[operationId as keyof typeof routes];
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(Object.keys(route.answers)));
    if (route.action !== 'session.open') expect(responses).toHaveProperty('401');
    expect(responses).toHaveProperty('500');
  }
});

test('every POST that creates, sends, starts or answers accepts an Idempotency-Key', () => {
  const without = operationIds.filter(
    (id) => routes[id].method === 'POST' && !(routes[id] as Route).idempotent,
  );
  // Without a token, or with the same effect when repeated.
  expect(without.toSorted()).toEqual([
    'ackMail',
    'allowFolder',
    'cancelTurn',
    'changePassword',
    'checkJoinPin',
    'createJoinChallenge',
    'finishPasskeyLogin',
    'join',
    'login',
    'logout',
    'refreshToken',
    'routeReview',
    'startPasskeyLogin',
    'startPasskeyRegistration',
    'stopAgent',
    'stopAllAgents',
  ]);
});

test('HEAD of every stream has the headers and errors of GET, and no body', () => {
  const heads = operationsOf(({ method }) => method === 'head');
  const streams = operationIds.filter((id) => (routes[id] as Route).raw === 'sse');
  expect(heads.map(({ operationId }) => operationId)).toEqual(streams.map((id) => `${id}Head`));
  const answers = heads.flatMap(({ responses }) => Object.values(responses).map(resolved));
  expect(JSON.stringify(answers)).not.toContain('"content"');
  const { responses } = heads.find(({ path }) => path === '/api/agents/{agent_id}/events')!;
  expect(Object.keys(responses)).toEqual(expect.arrayContaining(['200', '401', '404']));
  const { headers } = responses[200] as { headers: Record<string, unknown> };
  const fixed = ['Content-Type', 'Cache-Control', 'X-Accel-Buffering'].map((name) => resolved(headers[name]));
  expect(fixed).toEqual([
    { schema: { type: 'string', const: 'text/event-stream' } },
    { schema: { type: 'string', const: 'no-cache' } },
    { schema: { type: 'string', const: 'no' } },
  ]);
  expect(resolved(responses[401])).toMatchObject({
    description: '`missing authorization token`, `invalid token`',
  });
  expect(resolved(responses[404])).toMatchObject({ description: '`agent not found`' });
});

test('describes the headers of errors, and the limits of streams and sign-ins', () => {
  const failure = (path: string, method: string, status: number) =>
    resolved(description.paths[path]![method]!.responses[status]) as { description: string; headers: object };
  for (const command of ['start', 'stop', 'restart']) {
    for (const status of [502, 503])
      expect(failure(`/api/agents/{agent_id}/${command}`, 'post', status).headers).toHaveProperty(
        'X-Pending',
      );
  }
  expect(failure('/api/agents/{agent_id}/stop', 'post', 409).description).toContain(
    '`agent processes survived: <pids>`',
  );
  expect(failure('/api/join', 'post', 401).headers).toHaveProperty('X-Tries-Left');
  expect(failure('/api/login', 'post', 429).description).toBe(
    '`too many attempts; try again later`, `too many requests`',
  );
  expect(failure('/api/events', 'get', 429).description).toBe('`too many open streams`, `too many requests`');
  expect(failure('/api/events', 'get', 503)).toMatchObject({
    description: expect.stringContaining('`too many open streams`'),
    headers: { 'Retry-After': expect.anything() },
  });
  expect(failure('/api/permission-reviews/{review_id}/respond', 'post', 409).description).toContain(
    '`permission review is already answered by <who>`',
  );
  expect(failure('/api/admin/config', 'patch', 409).description).toBe('`<key> is fixed by <source>`');
});

function resolveRef(path: string): unknown {
  const keys = path.slice(2).split('/');
  return keys.reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], description);
}

function resolved(part: unknown): unknown {
  const { $ref } = part as { $ref?: string };
  return $ref === undefined ? part : resolveRef($ref);
}

function operationsOf(wanted: (operation: { method: string }) => boolean) {
  return Object.entries(description.paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })),
    )
    .filter(wanted);
}
