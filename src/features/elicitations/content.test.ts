import { expect, test } from 'vitest';
import { elicitationRequest, type Form } from '../../acp/elicitation.ts';
import { elicitationForm } from '../../testing/acp-scenarios.ts';
import { checkedContent } from './content.ts';

function parseForm(properties: object, required: string[] = []): Form {
  const params = { mode: 'form', message: '', requestedSchema: { type: 'object', properties, required } };
  const event = elicitationRequest('elicitation/create', { number: 1, id: 1 }, params);
  if (event?.kind !== 'input_requested') throw new Error(`not readable: ${JSON.stringify(event)}`);
  return event.elicitation.form!;
}

const { properties, required } = elicitationForm.requestedSchema;
const whole = parseForm(properties, required);
const least = { name: 'v1', region: 'eu', checks: ['lint'] };

test('valid content is sent to the agent', () => {
  const all = { ...least, mail: 'ana@example.org', port: 8080, share: 0.5, notify: false };
  expect(checkedContent(whole, all)).toEqual(all);
  expect(checkedContent(whole, least)).toEqual(least);
  expect(checkedContent(parseForm({}), {})).toEqual({});
});

test.each([
  [{ name: undefined }, 'content.name is required'],
  [{ name: null }, 'content.name must be a string'],
  [{ name: 7 }, 'content.name must be a string'],
  [{ name: 'v' }, 'content.name must be at least 2 characters'],
  [{ name: 'v'.repeat(21) }, 'content.name must be at most 20 characters'],
  [{ name: 'v\0' }, 'content.name must not contain NUL'],
  [{ mail: 'ana' }, 'content.mail must be an email address'],
  [{ port: '8080' }, 'content.port must be a number'],
  [{ port: 1.5 }, 'content.port must be an integer'],
  [{ port: 80 }, 'content.port must be at least 1024'],
  [{ port: 70_000 }, 'content.port must be at most 65535'],
  [{ share: 2 }, 'content.share must be at most 1'],
  [{ notify: 'true' }, 'content.notify must be true or false'],
  [{ region: 'mars' }, 'content.region must be one of the choices'],
  [{ region: 'toString' }, 'content.region must be one of the choices'],
  [{ checks: [] }, 'content.checks must have at least 1 entries'],
  [{ checks: 'lint' }, 'content.checks must be an array'],
  [{ checks: ['lint', 'fly'] }, 'content.checks[] must be one of the choices'],
  [{ checks: ['lint', 'lint'] }, 'content.checks must not name a choice twice'],
  [{ other: 1 }, 'content.other is not a field of the form'],
  [{ 'a\u001b[2J': 1 }, 'content.a?[2J is not a field of the form'],
])('refuses %j, naming the field', (change, message) => {
  expect(() => checkedContent(whole, { ...least, ...change })).toThrow(
    expect.objectContaining({ kind: 'invalid', message }),
  );
});

test.each([
  ['uri', 'https://example.org/a?b#c', 'example'],
  ['date', '2026-02-28', '2026-02-30'],
  ['date-time', '2026-02-28T10:00:00+02:00', '2026-02-28 10:00'],
])('a text with format %s is checked', (format, fits, wrong) => {
  const form = parseForm({ a: { type: 'string', format } });
  expect(checkedContent(form, { a: fits })).toEqual({ a: fits });
  expect(() => checkedContent(form, { a: wrong })).toThrow('content.a must be a');
});

test('length counts characters, not UTF-16 code units', () => {
  const form = parseForm({ a: { type: 'string', maxLength: 2 } });
  expect(checkedContent(form, { a: '😀😀' })).toEqual({ a: '😀😀' });
});

test('fields may be named like properties of every object', () => {
  const form = parseForm({ constructor: { type: 'string' }, toString: { type: 'boolean' } });
  expect(checkedContent(form, {})).toEqual({});
  expect(checkedContent(form, { constructor: 'x' })).toEqual({ constructor: 'x' });
});

test('a pattern is never run, so it cannot block the service', () => {
  const form = parseForm({ a: { type: 'string', pattern: '^(a+)+$' } });
  const a = `${'a'.repeat(50_000)}!`;
  expect(checkedContent(form, { a })).toEqual({ a });
});

test('the size of the content is bounded', () => {
  const form = parseForm({ a: { type: 'string' }, b: { type: 'string' } });
  const half = 'x'.repeat(140_000);
  expect(checkedContent(form, { a: half })).toEqual({ a: half });
  expect(() => checkedContent(form, { a: half, b: half })).toThrow('content must be at most 262144');
});
