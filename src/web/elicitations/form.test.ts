import { expect, test, vi } from 'vitest';
import { elicitationRecord, formField } from '../../testing/elicitation-record.ts';
import { buildContent, describeRules, fieldProblem, initialValue, readValues } from './form.ts';
import { getTitle, outcomeText } from './text.ts';

const choices = ['', 'us', 'eu'].map((value) => ({ value, title: value, description: null }));
const text = formField('name', { required: true });
const mail = formField('mail', { format: 'email' });
const port = formField('port', { type: 'integer', default: 3000 });
const share = formField('share', { type: 'number' });
const notify = formField('notify', { type: 'boolean', default: true });
const region = formField('region', { type: 'choice', choices, default: 'eu' });
const checks = formField('checks', { type: 'choices', choices, default: ['us'] });

test('controls start with the form’s defaults', () => {
  const fields = [text, mail, port, share, notify, region, checks];
  expect(fields.map(initialValue)).toEqual(['', '', '3000', '', true, '2', [1]]);
  expect(initialValue(formField('a', { type: 'choice', choices }))).toBe('');
  expect(initialValue(formField('a', { type: 'boolean' }))).toBe(false);
});

test('a draft is restored, except values that do not fit their fields', () => {
  const fields = [text, port, notify, region, checks];
  const values = ['v1', '8080', false, '0', [0, 2]];
  expect(readValues(fields, JSON.stringify(values))).toEqual(values);
  expect(readValues(fields, JSON.stringify(['v1', 8080, 'no', '3', [3]]))).toEqual([
    'v1',
    ...fields.slice(1).map(initialValue),
  ]);
  for (const draft of ['', '{}', '[', 'null'])
    expect(readValues(fields, draft)).toEqual(fields.map(initialValue));
});

test('content has the types of the fields, and omits empty ones', () => {
  const fields = [text, mail, port, share, notify, region, checks];
  expect(buildContent(fields, ['v1', 'a@b.c', '8080', '0.5', false, '0', [0, 2]])).toEqual({
    name: 'v1',
    mail: 'a@b.c',
    port: 8080,
    share: 0.5,
    notify: false,
    region: '',
    checks: ['', 'eu'],
  });
  expect(buildContent(fields, ['', '', '', '', false, '', []])).toEqual({ notify: false });
});

test('a time is sent with its zone, and parses back to the same instant', () => {
  const at = '2026-02-28T10:00:00.000Z';
  const field = formField('at', { format: 'date-time', default: at });
  expect(buildContent([field], [initialValue(field)])).toEqual({ at });
  expect(initialValue(formField('at', { format: 'date-time', default: 'soon' }))).toBe('');
});

test.each([-840, 0, 720])(
  'a default time that a control cannot show is ignored, %i minutes behind UTC',
  (minutes) => {
    vi.spyOn(Date.prototype, 'getTimezoneOffset').mockReturnValue(minutes);
    const times = ['+275760-09-13T00:00:00Z', '-271821-04-20T00:00:00Z', '+012026-02-28T10:00:00Z', 'soon'];
    const fields = times.map((at) => formField('at', { format: 'date-time', default: at }));
    expect(fields.map(initialValue)).toEqual(['', '', '', '']);
    vi.restoreAllMocks();
  },
);

test('fields with special names do not interfere with each other', () => {
  const fields = ['constructor', 'toString'].map((name) => formField(name));
  expect(buildContent(fields, ['a', ''])).toEqual({ constructor: 'a' });
});

test('an error of the service is shown at the field it names', () => {
  expect(fieldProblem(text, 'content.name is required')).toBe('is required');
  expect(fieldProblem(checks, 'content.checks[] must be one of the choices')).toBe(
    'must be one of the choices',
  );
  expect(fieldProblem(formField('na'), 'content.name is required')).toBeNull();
  expect(fieldProblem(text, 'elicitation not found')).toBeNull();
});

test('describes the rules of a field in words', () => {
  expect(describeRules(formField('a', { min: 2, max: 20, pattern: '^a' }))).toBe(
    '2 to 20 characters, matches ^a',
  );
  expect(describeRules(formField('a', { type: 'integer', min: 1 }))).toBe('whole number, at least 1');
  expect(describeRules(formField('a', { type: 'choices', max: 2 }))).toBe('at most 2 choices');
  expect(describeRules(formField('a', { type: 'choices', min: 1 }))).toBe('at least 1 choice');
  expect(describeRules(mail)).toBe('email address');
});

test('a settled elicitation shows how it ended', () => {
  const describe = (more: Parameters<typeof elicitationRecord>[0]) => outcomeText(elicitationRecord(more));
  const url = { mode: 'url', status: 'accepted', answered_by: 'ana' } as const;
  expect(describe({ status: 'accepted', answered_by: 'ana' })).toBe('Sent · ana');
  expect(describe(url)).toBe('Opened · ana');
  expect(describe({ ...url, completed_at: '2026-01-01T00:00:00.000Z' })).toBe('Done · ana');
  expect(describe({ status: 'declined', answered_by: 'ana', delivery: 'undeliverable' })).toBe(
    'Declined · ana · the agent was no longer waiting',
  );
  expect(describe({ status: 'cancelled' })).toBe('No longer needed');
  expect(describe({ status: 'expired' })).toBe('Expired: nobody answered in time');
  expect(getTitle(elicitationRecord({ message: '', form: null, url: 'https://a.b/' }))).toBe('https://a.b/');
});
