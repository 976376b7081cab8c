import { expect, test } from 'vitest';
import { asNumber, toText, truncateText } from './json.ts';

test('turns any value into text', () => {
  expect([toText('a'), toText(1), toText(undefined), toText({ toString: 1 })]).toEqual([
    'a',
    '1',
    '',
    '{"toString":1}',
  ]);
});

test('numbers that JSON cannot hold count as missing', () => {
  expect([asNumber(7), asNumber(JSON.parse('1e999')), asNumber('7')]).toEqual([7, null, null]);
});

test('shortened text never ends with half a character', () => {
  expect(truncateText('ab😀', 3)).toBe('ab');
  expect(truncateText('ab😀', 4)).toBe('ab😀');
  expect(truncateText('abc', 2)).toBe('ab');
});
