import { expect, test } from 'vitest';
import { headOf, numberOf, toText } from './json.ts';

test('turns any value into text', () => {
  expect([toText('a'), toText(1), toText(undefined), toText({ toString: 1 })]).toEqual([
    'a',
    '1',
    '',
    '{"toString":1}',
  ]);
});

test('numbers that JSON cannot hold count as missing', () => {
  expect([numberOf(7), numberOf(JSON.parse('1e999')), numberOf('7')]).toEqual([7, null, null]);
});

test('shortened text never ends with half a character', () => {
  expect(headOf('ab😀', 3)).toBe('ab');
  expect(headOf('ab😀', 4)).toBe('ab😀');
  expect(headOf('abc', 2)).toBe('ab');
});
