import { expect, test } from 'vitest';
import { readCommandInput } from './values.ts';

test('refuses an empty answer and an empty error text', () => {
  for (const text of ['', ' \n']) {
    for (const is_json of [false, true]) {
      expect(readCommandInput('resume', text, is_json)).toEqual({ input: null, fault: 'Enter an answer' });
    }
    expect(readCommandInput('fail', text, false)).toEqual({ input: null, fault: 'Enter the error text' });
  }
});

test('reads an answer as text or as JSON, which may be null', () => {
  expect(readCommandInput('resume', 'null', false)).toEqual({ input: { input: 'null' }, fault: null });
  expect(readCommandInput('resume', 'null', true)).toEqual({ input: { input: null }, fault: null });
  expect(readCommandInput('resume', '{"a": 1}', true)).toEqual({ input: { input: { a: 1 } }, fault: null });
  expect(readCommandInput('resume', '{', true).fault).toMatch(/JSON/);
});

test('reads an output, which may be empty', () => {
  expect(readCommandInput('complete', '', false)).toEqual({ input: { output: null }, fault: null });
  expect(readCommandInput('complete', 'done', false)).toEqual({ input: { output: 'done' }, fault: null });
  expect(readCommandInput('fail', 'no network', false)).toEqual({
    input: { error_text: 'no network' },
    fault: null,
  });
});
