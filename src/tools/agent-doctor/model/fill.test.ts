import { expect, test } from 'vitest';
import { fill } from './fill.ts';

const values = { folder: '/place', file: 'new.txt', content: 'hello', url: 'https://a.invalid/' };

test('fills the required fields of a write tool, and no more', () => {
  const schema = {
    type: 'object',
    properties: {
      file_path: { type: 'string', description: 'The absolute path to the file' },
      content: { type: 'string' },
      append: { type: 'boolean' },
    },
    required: ['file_path', 'content'],
  };
  expect(fill(schema, values)).toEqual({ file_path: '/place/new.txt', content: 'hello' });
});

test('fills a command as text or list, and asks for more rights if possible', () => {
  const rights = {
    sandbox_permissions: { type: 'string', enum: ['use_default', 'require_escalated'] },
    justification: { type: 'string' },
  };
  expect(
    fill({ type: 'object', properties: { cmd: { type: 'string' }, ...rights }, required: ['cmd'] }, values),
  ).toEqual({
    cmd: "echo 'hello' > new.txt",
    sandbox_permissions: 'require_escalated',
    justification: 'a check of the agent doctor',
  });
  const list = { type: 'array', items: { type: 'string' } };
  expect(
    fill(
      {
        type: 'object',
        properties: { command: list, workdir: { type: 'string' } },
        required: ['command', 'workdir'],
      },
      values,
    ),
  ).toEqual({ command: ['sh', '-c', "echo 'hello' > new.txt"], workdir: '/place' });
});

test('fills every kind of schema with a valid value', () => {
  const schema = {
    type: 'OBJECT',
    properties: {
      score: { type: 'INTEGER', minimum: 3 },
      many: { type: 'NUMBER' },
      sure: { type: 'BOOLEAN' },
      how: { enum: ['view', 'create'] },
      same: { const: 'this' },
      maybe: { type: ['null', 'string'] },
      either: { anyOf: [{ type: 'integer' }, { type: 'string' }] },
      inner: { $ref: '#/$defs/inner' },
      list: { type: 'array', items: { properties: { body: { type: 'string' } }, required: ['body'] } },
      nothing: { type: 'null' },
    },
    required: ['score', 'many', 'sure', 'how', 'same', 'maybe', 'either', 'inner', 'list', 'nothing'],
    $defs: { inner: { type: 'object', properties: { data: { type: 'string' } }, required: ['data'] } },
  };
  expect(fill(schema, values)).toEqual({
    score: 3,
    many: 10,
    sure: false,
    how: 'create',
    same: 'this',
    maybe: 'a check of the agent doctor',
    either: 10,
    inner: { data: 'hello' },
    list: [{ body: 'hello' }],
    nothing: null,
  });
});

test('fills a recursive or invalid schema too', () => {
  const endless = { type: 'object', properties: { next: { $ref: '#' } }, required: ['next'] };
  expect(JSON.stringify(fill(endless, values))).toContain('"next":null');
  expect(fill({ type: 'object', properties: 3, required: 'x' }, values)).toEqual({});
  expect(fill({ $ref: '#/nowhere' }, values)).toEqual(expect.any(String));
});

test('fills an address for a fetch tool, also inside a text that must name one', () => {
  const properties = {
    url: { type: 'string' },
    prompt: { type: 'string', description: 'A prompt that includes the URL to fetch' },
  };
  expect(fill({ type: 'object', properties, required: ['url', 'prompt'] }, values)).toEqual({
    url: 'https://a.invalid/',
    prompt: 'Read https://a.invalid/',
  });
});
