import fc from 'fast-check';
import { expect, test } from 'vitest';
import { limits as sharedLimits } from '../base/limits.ts';
import { limits } from './limits.ts';
import { type Message, readMessage, rpcErrors, writeMessage } from './message.ts';

const line = (value: object) => JSON.stringify({ jsonrpc: '2.0', ...value });
const long = 'x'.repeat(sharedLimits.acp_text_chars_max + 1);

test('distinguishes requests, notifications and responses', () => {
  expect(readMessage(line({ id: 1, method: 'a', params: { b: 2 } }))).toEqual({
    kind: 'request',
    id: 1,
    method: 'a',
    params: { b: 2 },
  });
  expect(readMessage(line({ method: 'a' }))).toMatchObject({ kind: 'notification', method: 'a' });
  expect(readMessage(line({ id: 'x', result: null }))).toEqual({ kind: 'response', id: 'x', result: null });
  const error = { code: -32601, message: 'no', data: 1 };
  expect(readMessage(line({ id: null, error }))).toEqual({
    kind: 'response',
    id: null,
    error: { code: -32601, message: 'no' },
  });
});

test('rejects anything that is not a message', () => {
  const lines = [
    '',
    'Starting…',
    '[]',
    '{',
    '{"jsonrpc":"2.0","method":"a"} and more',
    '{"jsonrpc":"2.0","method":"a\rb"}',
    '{"jsonrpc":"1.0","method":"a"}',
    '{"method":"a"}',
    '{"jsonrpc":"2.0"}',
    line({ method: 7 }),
    line({ method: null, id: 1 }),
    line({ id: true, method: 'a' }),
    line({ id: { a: 1 }, result: 1 }),
    line({ id: [], result: 1 }),
    line({ result: 1 }),
    '{"jsonrpc":"2.0","id":1e999,"method":"a"}',
    `[${line({ method: 'a' })}]`,
  ];
  for (const text of lines) expect(readMessage(text), text).toBeNull();
});

test('rejects an id or method that is too long', () => {
  expect(readMessage(line({ method: long }))).toBeNull();
  expect(readMessage(line({ id: long, method: 'a' }))).toBeNull();
  expect(readMessage(line({ id: long, result: 1 }))).toBeNull();
  expect(readMessage(line({ id: long.slice(1), method: long.slice(1) }))).toMatchObject({ kind: 'request' });
});

test('does not parse JSON that is nested too deeply', () => {
  const deep = (levels: number) =>
    `{"jsonrpc":"2.0","method":"a","params":${'['.repeat(levels)}${']'.repeat(levels)}}`;
  expect(readMessage(deep(limits.acp_levels_max - 1))).toMatchObject({ kind: 'notification' });
  expect(readMessage(deep(limits.acp_levels_max))).toBeNull();
  expect(readMessage(deep(10_000_000))).toBeNull();
});

test('reads responses leniently: omitted nulls, malformed errors', () => {
  expect(readMessage(line({ id: 1 }))).toEqual({ kind: 'response', id: 1, result: undefined });
  expect(readMessage(line({ id: 1, result: {}, error: null }))).toEqual({
    kind: 'response',
    id: 1,
    result: {},
  });
  const errors: [unknown, object][] = [
    ['it broke', { code: 0, message: 'it broke' }],
    [{ code: 'x' }, { code: 0, message: 'an error without a message' }],
    [7, { code: 0, message: 'an error without a message' }],
    [[], { code: 0, message: 'an error without a message' }],
    [
      { code: 3, message: long },
      { code: 3, message: long.slice(1) },
    ],
  ];
  for (const [error_field, error] of errors) {
    expect(readMessage(line({ id: 1, error: error_field }))).toEqual({ kind: 'response', id: 1, error });
  }
});

test('treats keys that are special in JavaScript as ordinary keys', () => {
  const message = readMessage(
    '{"jsonrpc":"2.0","method":"a","__proto__":{"id":1},"params":{"__proto__":{"x":1}}}',
  );
  expect(message).toMatchObject({ kind: 'notification', method: 'a' });
  expect((message as { params: { x?: number } }).params.x).toBeUndefined();
});

test('round-trips messages, each as one line', () => {
  const id = fc.oneof(fc.string(), fc.integer(), fc.constant(null));
  const method = fc.string();
  const params = fc.jsonValue();
  const message = fc.oneof<fc.Arbitrary<Message>[]>(
    fc.record({ kind: fc.constant('request'), id, method, params }),
    fc.record({ kind: fc.constant('notification'), method, params }),
    fc.record({ kind: fc.constant('response'), id, result: params }),
    fc.record({ kind: fc.constant('response'), id, error: fc.constant(rpcErrors.invalidParams) }),
  );
  fc.assert(
    fc.property(message, (item) => {
      const text = writeMessage(item);
      expect(text.indexOf('\n')).toBe(text.length - 1);
      expect(readMessage(text.trimEnd())).toEqual(JSON.parse(JSON.stringify(item)));
    }),
  );
});

test('never throws, whatever the input', () => {
  const piece = fc.oneof(
    fc.json(),
    fc.string(),
    fc.constantFrom('{"jsonrpc":"2.0",', '"id":', '"method":', '}'),
  );
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      readMessage(pieces.join(''));
    }),
  );
});
