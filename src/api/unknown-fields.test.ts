import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { limits } from './limits.ts';
import { openapi } from './openapi.ts';
import { isPublic, type Route } from './route.ts';
import { operationIds, routes } from './routes.ts';
import { changesNothing, ignoredFieldsHeader, unknownFields } from './unknown-fields.ts';

const named = (schema: z.ZodType, value: unknown) => ignoredFieldsHeader(unknownFields(schema, value), []);

describe('unknown fields', () => {
  test('are found at every level, and once per field of list items', () => {
    const spec = {
      members: [
        { member_id: 'a', colour: 1 },
        { member_id: 'b', colour: 2, agent: { comand: 'true' } },
      ],
      setps: [],
    };
    expect(named(routes.createTeam.body, { name: 't', spec, x: 1 })).toBe(
      'spec.members[].colour, spec.members[].agent.comand, spec.setps, x',
    );
  });

  test('are not reported where any name is allowed', () => {
    const labels = { anything: 'goes' };
    expect(named(routes.createAgent.body, { name: 'a', command: 'b', labels, env: { A: '1' } })).toBe('');
    expect(named(routes.createRun.body, { input: { any: { depth: 1 } } })).toBe('');
    expect(named(routes.promptAgent.body, { content: [{ type: 'text', text: 'x', more: 1 }] })).toBe('');
    expect(named(routes.updateConfig.body, { 'no.such.key': 1 })).toBe('');
  });

  test('are found within defaults, nullables, transforms and unions', () => {
    const inner = z.object({ a: z.string() });
    const schema = z.object({
      list: z.array(inner.nullable()).optional(),
      either: z.union([z.string(), inner]).default('x'),
      turned: inner.transform(({ a }) => a),
      map: z.record(z.string(), inner),
    });
    const other = { a: 'x', b: 1 };
    expect(named(schema, { list: [null, other], either: other, turned: other, map: { k: other } })).toBe(
      'list[].b, either.b, turned.b, map.k.b',
    );
    expect(named(schema, { list: 7, either: 'text', turned: null, map: [] })).toBe('');
  });

  test('are accepted in objects that a browser defines', () => {
    const response = {
      ...{ id: 'a', rawId: 'a', type: 'public-key', authenticatorAttachment: 'platform' },
      response: { clientDataJSON: 'a', attestationObject: 'b', publicKeyAlgorithm: -7 },
    };
    expect(named(routes.finishPasskeyRegistration.body, { name: 'x', response })).toBe('');
    expect(named(routes.finishPasskeyRegistration.body, { nme: 'x', response })).toBe('nme');
  });

  test('are encoded and bounded in the header', () => {
    expect(named(z.object({}), { 'a,b\r\nX: 1': 1, ä: 2, '\ud800': 3, __proto_: 4 })).toBe(
      'a%2Cb%0D%0AX%3A%201, %C3%A4, %EF%BF%BD, __proto_',
    );
    expect(ignoredFieldsHeader([['a']], ['b c'])).toBe('a, ?b%20c');
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`${at}${'x'.repeat(500)}`, at]));
    const header = named(z.object({}), many);
    expect(header.split(', ').at(-1)).toBe('...');
    expect(header.length).toBeLessThan(limits.ignored_fields_max * (limits.ignored_field_chars_max + 2) + 4);
  });
});

describe('an update changes nothing', () => {
  test.each<[boolean, keyof typeof routes, unknown]>([
    [true, 'updateAgent', {}],
    [true, 'updateAgent', { nmae: 'x' }],
    [false, 'updateAgent', { nmae: 'x', labels: {} }],
    [true, 'updateTeam', { version: 3 }],
    [false, 'updateTeam', { version: 3, name: null }],
    [true, 'updateAgentNode', { id: 'n1' }],
    [true, 'updateConfig', {}],
    [false, 'updateConfig', { 'no.such.key': 1 }],
    [true, 'editPrompt', { txt: 'x' }],
    [false, 'editPrompt', { content: [] }],
    [false, 'updateAgent', []],
    [false, 'updateAgent', null],
  ])('%s: %s %j', (expected, operation, body) => {
    expect(changesNothing((routes[operation] as Route).body!, body)).toBe(expected);
  });
});

test('requests that create credentials, users or nodes, or allow folders, reject unknown fields', () => {
  const refusing = operationIds.filter(
    (operation) => (routes[operation] as Route).unknown_fields === 'refused',
  );
  expect(refusing.sort()).toEqual(
    [
      ...[
        'join',
        'checkJoinPin',
        'login',
        'changePassword',
        'createToken',
        'createUser',
        'updateUser',
        'createJoinChallenge',
      ],
      ...['registerAgentNode', 'rotateBootstrapToken', 'rotatePushKeys', 'allowFolder'],
      ...['startPasskeyRegistration', 'finishPasskeyRegistration', 'startPasskeyLogin', 'finishPasskeyLogin'],
    ].sort(),
  );
  const public_with_body = operationIds.filter(
    (operation) => isPublic(routes[operation]) && (routes[operation] as Route).body,
  );
  expect(refusing).toEqual(expect.arrayContaining(public_with_body));
});

test('the API description lists 400 `nothing to change` for every update', () => {
  const { paths, components } = openapi() as {
    paths: Record<string, Record<string, { responses: Record<string, { $ref?: string }> }>>;
    components: { responses: Record<string, object> };
  };
  const updates = operationIds
    .map((id): Route => routes[id])
    .filter(({ method }) => ['PUT', 'PATCH'].includes(method));
  expect(updates.length).toBeGreaterThan(5);
  for (const { path, method } of updates) {
    const operation = paths[path]![method.toLowerCase()]!;
    const given = operation.responses[400]!;
    const response = given.$ref ? components.responses[given.$ref.split('/').at(-1)!] : given;
    expect(JSON.stringify(response)).toContain('`nothing to change`');
  }
});
