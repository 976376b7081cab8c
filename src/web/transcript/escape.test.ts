import { expect, test } from 'vitest';
import { escapeSpecial, isPlainText } from './escape.ts';

test('makes control characters and marks that reorder text visible, but keeps tabs', () => {
  expect(escapeSpecial('a\tb\x1b[1m\x07\n\x7f\x85\u202e\u2028é😀')).toBe(
    'a\tb\u241b[1m\u2407\u240a\u2421<U+0085><U+202E><U+2028>é😀',
  );
});

test('only text and tabs count as plain text', () => {
  expect(isPlainText('text\twith é and 😀')).toBe(true);
  for (const char of ['\0', '\n', '\r', '\x1b', '\x9b', '\u200f', '\u2069'])
    expect(isPlainText(char)).toBe(false);
});
