import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { API_VERSION, openapi } from './openapi.ts';
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
  const described = Object.values(description.paths).flatMap((methods) =>
    Object.values(methods).map((operation) => operation.operationId),
  );
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
  for (const methods of Object.values(description.paths)) {
    for (const { operationId, responses } of Object.values(methods)) {
      const route = routes[operationId as keyof typeof routes];
      expect(Object.keys(responses)).toEqual(expect.arrayContaining(Object.keys(route.answers)));
      if (route.action !== 'session.open') expect(responses).toHaveProperty('401');
      expect(responses).toHaveProperty('500');
    }
  }
});
