import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { API_VERSION, openapi } from './openapi.ts';
import type { Route } from './route.ts';
import { operationIds, routes } from './routes.ts';

const description = openapi() as {
  info: { version: string };
  paths: Record<string, Record<string, { operationId: string; responses: Record<string, unknown> }>>;
};

test('openapi.json is what the route table says; run `npm run generate` when this fails', () => {
  const committed = readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8');
  expect(committed).toBe(`${JSON.stringify(description, null, 2)}\n`);
});

test('every operation is described once, under its own id', () => {
  const described = operationsOf(({ method }) => method !== 'head').map(({ operationId }) => operationId);
  expect(described.sort()).toEqual([...operationIds].sort());
  expect(description.info.version).toBe(API_VERSION);
});

test('every reference leads somewhere', () => {
  const lookUp = (path: string) =>
    path
      .slice(2)
      .split('/')
      .reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], description);
  const references = [...JSON.stringify(description).matchAll(/"\$ref":"([^"]+)"/g)].map(([, path]) => path!);
  expect(references.length).toBeGreaterThan(0);
  expect(references.filter((path) => lookUp(path) === undefined)).toEqual([]);
});

test('every operation tells its success, its token errors and the fixed errors that it names', () => {
  for (const { operationId, responses } of operationsOf(({ method }) => method !== 'head')) {
    const route = routes[operationId as keyof typeof routes];
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(Object.keys(route.answers)));
    if (route.action !== 'session.open') expect(responses).toHaveProperty('401');
    expect(responses).toHaveProperty('500');
  }
});

test('HEAD of every stream is described: the headers of GET, its errors, and no body', () => {
  const heads = operationsOf(({ method }) => method === 'head');
  const streams = operationIds.filter((id) => (routes[id] as Route).raw === 'sse');
  expect(heads.map(({ operationId }) => operationId)).toEqual(streams.map((id) => `${id}Head`));
  expect(JSON.stringify(heads.map(({ responses }) => responses))).not.toContain('"content"');
  const { responses } = heads.find(({ path }) => path === '/api/agents/{agent_id}/events')!;
  expect(Object.keys(responses)).toEqual(expect.arrayContaining(['200', '401', '404']));
  expect(responses[200]).toMatchObject({
    headers: {
      'Content-Type': { schema: { const: 'text/event-stream' } },
      'Cache-Control': { schema: { const: 'no-cache' } },
      'X-Accel-Buffering': { schema: { const: 'no' } },
    },
  });
  expect(responses[401]).toMatchObject({ description: '`missing authorization token`, `invalid token`' });
  expect(responses[404]).toMatchObject({ description: '`agent not found`' });
});

function operationsOf(wanted: (operation: { method: string }) => boolean) {
  return Object.entries(description.paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })),
    )
    .filter(wanted);
}
