import fc from 'fast-check';
import { expect, test } from 'vitest';
import { splitText } from './text-chunks.ts';

const between = fc.constantFrom('words', 'lines');
const text = fc
  .array(fc.oneof(fc.constantFrom('\n', ' ', '😀', 'a'.repeat(300), 'word '.repeat(90)), fc.string()))
  .map((parts) => parts.join(''));

test('the chunks are the text, and all but the last stay the same while it grows', () => {
  fc.assert(
    fc.property(text, text, between, (before, added, how) => {
      const chunks = splitText(before, how);
      expect(chunks.join('')).toBe(before);
      expect(splitText(before + added, how).slice(0, chunks.length - 1)).toEqual(chunks.slice(0, -1));
    }),
  );
});

test('ends chunks after spaces or lines, and never within a character', () => {
  expect(splitText('word '.repeat(1000), 'words').map((chunk) => chunk.length)).toEqual([2000, 2000, 1000]);
  expect(splitText(`${'x'.repeat(1990)} ${'y'.repeat(1000)}`, 'words')[0]).toBe(`${'x'.repeat(1990)} `);
  expect(splitText(`a${'😀'.repeat(1500)}`, 'words')[0]).toHaveLength(1999);
  expect(splitText('x'.repeat(9000), 'lines')).toHaveLength(1);
  expect(splitText(`${'x'.repeat(2500)}\nyes\n`, 'lines')).toEqual([`${'x'.repeat(2500)}\n`, 'yes\n']);
});
