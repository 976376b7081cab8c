import { expect, test } from 'vitest';
import { limits as sharedLimits } from '../base/limits.ts';
import {
  type Elicitation,
  elicitationCompletion,
  elicitationRequest,
  type FormField,
} from './elicitation.ts';
import { limits } from './limits.ts';

const request = { number: 1, id: 1 };
const ask = (params: unknown) => elicitationRequest('elicitation/create', request, params)!;
const form = (properties: unknown, more: object = {}) =>
  ask({ mode: 'form', message: 'Which?', requestedSchema: { type: 'object', properties, ...more } });
const asRecord = (event: ReturnType<typeof ask>) =>
  event.kind === 'input_requested' ? event.elicitation.form!.fields : [];
const url = (address: unknown) => ask({ mode: 'url', message: 'Sign in', url: address, elicitationId: 'e1' });
const none = { title: null, description: null, required: false, format: null, min: null, max: null };
const bare = { ...none, pattern: null, choices: [], default: null };

test('a form becomes a list of fields in the order of the schema', () => {
  const event = ask({
    mode: 'form',
    sessionId: 's',
    toolCallId: 'call-1',
    message: 'Which?',
    requestedSchema: {
      type: 'object',
      title: 'T',
      description: 'D',
      properties: {
        name: { type: 'string', title: 'Name', minLength: 1, maxLength: 9, pattern: '^a', default: 'abc' },
        mail: { type: 'string', format: 'email', description: 'Yours' },
        port: { type: 'integer', minimum: 1, maximum: 5, default: 3 },
        share: { type: 'number' },
        sure: { type: 'boolean', default: false },
        colour: { type: 'string', enum: ['red', 'blue'], default: 'blue' },
        region: { type: 'string', oneOf: [{ const: 'eu', title: 'Europe', description: 'Here' }] },
        days: { type: 'array', items: { type: 'string', enum: ['mo', 'tu'] }, minItems: 1, default: ['tu'] },
        parts: { type: 'array', items: { anyOf: [{ const: 'a', title: 'A' }] }, maxItems: 1 },
      },
      required: ['name', 'days', 'no-field-of-it'],
    },
  });
  const choice = (value: string, title = value, description: string | null = null) => ({
    value,
    title,
    description,
  });
  const field = (name: string, type: FormField['type'], more: Partial<FormField> = {}): FormField => ({
    ...bare,
    name,
    type,
    ...more,
  });
  expect(event).toEqual({
    kind: 'input_requested',
    request,
    elicitation: {
      mode: 'form',
      message: 'Which?',
      tool_call_id: 'call-1',
      url: null,
      acp_id: null,
      form: {
        title: 'T',
        description: 'D',
        fields: [
          field('name', 'text', {
            ...{ title: 'Name', required: true, min: 1, max: 9, pattern: '^a', default: 'abc' },
          }),
          field('mail', 'text', { format: 'email', description: 'Yours' }),
          field('port', 'integer', { min: 1, max: 5, default: 3 }),
          field('share', 'number'),
          field('sure', 'boolean', { default: false }),
          field('colour', 'choice', { choices: [choice('red'), choice('blue')], default: 'blue' }),
          field('region', 'choice', { choices: [choice('eu', 'Europe', 'Here')] }),
          field('days', 'choices', {
            ...{ choices: [choice('mo'), choice('tu')], min: 1, required: true, default: ['tu'] },
          }),
          field('parts', 'choices', { choices: [choice('a', 'A')], max: 1 }),
        ],
      },
    } satisfies Elicitation,
  });
});

test('missing, null or mistyped values are omitted, not guessed', () => {
  const fields = asRecord(
    ask({
      requestedSchema: {
        properties: {
          text: { type: 'string', minLength: '3', format: 'colour', pattern: 7, default: 1, title: null },
          number: { type: 'number', minimum: null, default: 'many' },
          choice: { type: 'string', enum: ['a'], oneOf: null, default: 'z' },
          choices: { type: 'array', items: { enum: ['a', 'b', 'a'] }, default: ['z', 'b'] },
        },
        required: null,
      },
    }),
  );
  expect(fields).toMatchObject([
    { ...bare, type: 'text' },
    { ...bare, type: 'number' },
    { ...none, type: 'choice', default: null },
    { ...none, type: 'choices', choices: [{ value: 'a' }, { value: 'b' }], default: ['b'] },
  ]);
  expect(ask({ message: 'Sure?', requestedSchema: {} })).toMatchObject({
    elicitation: { mode: 'form', form: { fields: [] } },
  });
});

const many = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`f${n}`, { type: 'boolean' }]));

test.each<[what: string, event: ReturnType<typeof ask>, reason: RegExp]>([
  ['no parameters', ask(null), /no parameters/],
  ['a mode of another version', ask({ mode: 'voice', message: '' }), /mode is neither form nor url/],
  ['a message that is not a string', ask({ mode: 'form', message: {} }), /message is not a string/],
  [
    'a message that is too long',
    ask({ message: 'x'.repeat(limits.elicitation_message_chars_max + 1) }),
    /too long/,
  ],
  ['no schema', ask({ mode: 'form', message: '' }), /no schema/],
  ['an array schema', ask({ requestedSchema: { type: 'array' } }), /not an object schema/],
  ['properties that are a list', form([]), /not an object schema/],
  ['a nested object', form({ a: { type: 'object', properties: {} } }), /field "a" cannot be shown/],
  ['a field without a schema', form({ a: true }), /field "a" cannot be shown/],
  [
    'a list of anything',
    form({ a: { type: 'array', items: { type: 'string' } } }),
    /field "a" cannot be shown/,
  ],
  ['choices that are numbers', form({ a: { type: 'string', enum: [1] } }), /field "a" cannot be shown/],
  [
    'too many choices',
    form({ a: { type: 'string', enum: Array.from({ length: limits.elicitation_choices_max + 1 }, String) } }),
    /field "a" cannot be shown/,
  ],
  ['no choice at all', form({ a: { type: 'string', enum: [] } }), /field "a" cannot be shown/],
  ['a field named __proto__', form(JSON.parse('{"__proto__":{"type":"string"}}')), /a name that cannot be/],
  [
    'a name that is too long',
    form({ ['x'.repeat(sharedLimits.name_chars_max + 1)]: {} }),
    /a name that cannot be/,
  ],
  ['too many fields', form(many(limits.elicitation_fields_max + 1)), /too many fields/],
  [
    'a schema that is too large',
    form({ a: { type: 'string', description: 'x'.repeat(limits.elicitation_form_chars_max) } }),
    /too large/,
  ],
])('rejects %s', (_what, event, reason) => {
  expect(event).toEqual({ kind: 'input_unreadable', request, reason: expect.stringMatching(reason) });
});

test.each([
  ['https://example.org/connect?id=1', 'https://example.org/connect?id=1'],
  ['HTTP://Example.ORG:8080', 'http://example.org:8080/'],
  // Look-alike and invisible letters show up in the normalized form.
  ['https://p\u0430ypal.com/', 'https://xn--pypal-4ve.com/'],
  ['https://example.org/\u202egpj.exe', 'https://example.org/%E2%80%AEgpj.exe'],
  ['https://example.org\\@evil.org/', 'https://example.org/@evil.org/'],
])('normalizes the URL %s', (address, href) => {
  expect(url(address)).toMatchObject({
    kind: 'input_requested',
    elicitation: { mode: 'url', url: href, form: null, acp_id: 'e1' },
  });
});

test.each([
  ['javascript:alert(1)', /neither https nor http/],
  ['JavaScript:alert(1)//https://example.org', /neither https nor http/],
  ['data:text/html,<script>1</script>', /neither https nor http/],
  ['file:///etc/passwd', /neither https nor http/],
  ['https://example.org@evil.org/', /username or password/],
  ['https://:x@evil.org/', /username or password/],
  ['//example.org', /no valid URL/],
  [7, /no valid URL/],
  [undefined, /no valid URL/],
  [`https://example.org/${'x'.repeat(limits.elicitation_url_chars_max)}`, /too long/],
])('rejects the URL %s', (address, reason) => {
  expect(url(address)).toMatchObject({
    kind: 'input_unreadable',
    reason: expect.stringMatching(reason),
  });
});

test('ignores other methods', () => {
  expect(elicitationRequest('elicitation/made_up', request, {})).toBeNull();
  expect(elicitationCompletion('elicitation/complete', { elicitationId: 'e1' })).toEqual([
    { kind: 'input_completed', acp_id: 'e1' },
  ]);
  for (const params of [null, {}, { elicitationId: 7 }, { elicitationId: 'x'.repeat(5_000) }]) {
    expect(elicitationCompletion('elicitation/complete', params)).toEqual([]);
  }
  expect(elicitationCompletion('session/update', { elicitationId: 'e1' })).toEqual([]);
});
