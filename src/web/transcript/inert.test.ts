import { expect, test } from 'vitest';
import { inert, inertLines, isDull } from './inert.ts';

test('control characters and marks that reorder text are shown, tabs stay', () => {
  expect(inert('a\tb\x1b[1m\x07\n\x7f\x85\u202e\u2028é😀')).toBe(
    'a\tb\u241b[1m\u2407\u240a\u2421<U+0085><U+202E><U+2028>é😀',
  );
});

test('in a text of many lines the ends of lines stay, and a carriage return alone does not', () => {
  expect(inertLines('rm a\r\nls\n\rx\u2066')).toBe('rm a\r\nls\n\u240dx<U+2066>');
});

test('text is dull, and everything that is shown instead of itself is not', () => {
  expect(isDull('text\twith é and 😀')).toBe(true);
  for (const char of ['\0', '\n', '\r', '\x1b', '\x9b', '\u200f', '\u2069']) expect(isDull(char)).toBe(false);
});
