import { PassThrough } from 'node:stream';
import stringWidth from 'fast-string-width';
import { expect, test } from 'vitest';
import type { Io } from './context.ts';
import { cut, printRows } from './output.ts';

test('text that is too wide keeps its beginning or its end, without a part of a character', () => {
  expect(cut('exactly', 7)).toBe('exactly');
  expect(cut('too wide', 5)).toBe('too …');
  expect(cut('/a/long/path', 6, { keeps_end: true })).toBe('…/path');
  expect(cut('日本語', 4)).toBe('日…');
  expect(cut('日本語', 4, { keeps_end: true })).toBe('…語');
  const family = '👩\u200d👩\u200d👧';
  expect(cut(`a${family}bcd`, 5)).toBe(`a${family}b…`);
  expect(cut(`a${family}bcd`, 3)).toBe('a…');
  expect(cut(`abc${family}`, 3, { keeps_end: true })).toBe(`…${family}`);
  expect(cut('cafe\u0301s', 5)).toBe('cafe\u0301s');
  expect(cut('cafe\u0301s!', 5)).toBe('cafe\u0301…');
});

// Measuring the rest for each character that is left out would take minutes.
test.each(['日a', '/日'])('a table with very long cells of %s takes linear time', async (text) => {
  const stdout: Io['stdout'] = new PassThrough();
  Object.assign(stdout, { isTTY: true, columns: 79 });
  const io = { stdout, env: {} } as Io;
  await printRows(io, [text.repeat(32 * 1024)], [{ title: 'TEXT', value: (row) => row }], {});
  const row = String((stdout as PassThrough).read()).split('\n')[1]!;
  expect(stringWidth(row)).toBe(79);
});
