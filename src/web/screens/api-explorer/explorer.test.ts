import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  buildExample,
  type Description,
  getBodySchema,
  groupOperations,
  listOperations,
  typeText,
} from './description.ts';
import { buildRequest, formatCurl } from './request.ts';

const api = JSON.parse(
  readFileSync(new URL('../../../../openapi.json', import.meta.url), 'utf8'),
) as Description;
const operations = listOperations(api);
const operation = (id: string) => operations.find((each) => each.id === id)!;

describe('the API explorer', () => {
  it('lists every operation of the API once, under a tag', () => {
    const ids = operations.map(({ id }) => id);
    expect(ids.length).toBeGreaterThan(80);
    expect(new Set(ids).size).toBe(ids.length);
    const shown = groupOperations(api, operations, '').flatMap((group) =>
      group.operations.map(({ id }) => id),
    );
    expect(shown.toSorted()).toEqual(ids.toSorted());
  });

  it('finds operations by words in their name, path and summary', () => {
    const found = groupOperations(api, operations, 'AUDIT get').flatMap((group) => group.operations);
    expect(found.map(({ id }) => id)).toEqual(['listAudit', 'verifyAudit']);
  });

  it('has an initial body for every operation that takes one', () => {
    for (const each of operations) {
      const schema = getBodySchema(each);
      if (schema) expect([each.id, typeof buildExample(api, schema)]).toEqual([each.id, 'object']);
    }
    expect(buildExample(api, getBodySchema(operation('login'))!)).toEqual({ username: '', password: '' });
  });

  it('describes types in words', () => {
    const types = [
      { type: 'array', items: { $ref: '#/components/schemas/Agent' } },
      { anyOf: [{ type: 'string' }, { type: 'null' }] },
      { enum: ['a', 'b'] },
      { type: 'object', additionalProperties: { type: 'string' } },
    ];
    expect(types.map((type) => typeText(api, type))).toEqual([
      'list of Agent',
      'string | null',
      '"a" | "b"',
      'map of string',
    ]);
  });

  it('stops at a type that contains itself', () => {
    const Node = { type: 'object', required: ['next'], properties: { next: { $ref: '#/Node' } } };
    const endless = { ...api, components: { schemas: { Node }, responses: {} } };
    expect(JSON.stringify(buildExample(endless, { $ref: '#/Node' }))).toContain('{}');
  });
});

describe('a request', () => {
  it('puts each parameter where it belongs, and omits empty ones', () => {
    const values = { agent_id: 'a/b', tail: '10', after: '', 'Last-Event-ID': '7' };
    expect(buildRequest(operation('followAgent'), { values, body: '' })).toEqual({
      path: '/api/agents/a%2Fb/events?tail=10',
      headers: { 'Last-Event-ID': '7' },
      body: undefined,
    });
  });

  it('is rejected if the path is incomplete or the body is not JSON', () => {
    expect(() => buildRequest(operation('getAgent'), { values: {}, body: '' })).toThrow(
      'agent_id is required',
    );
    expect(() => buildRequest(operation('createAgent'), { values: {}, body: '{' })).toThrow();
  });

  it('becomes a shell command with the user’s input and without the token', () => {
    const request = buildRequest(operation('login'), { values: {}, body: `{"username":"o'hara"}` });
    expect(formatCurl('http://h', 'POST', request)).toBe(
      `curl -N -X POST -H "Authorization: Bearer $SVC_TOKEN" -H 'content-type: application/json' ` +
        `--data-raw '{"username":"o'\\''hara"}' 'http://h/api/login'`,
    );
  });
});
