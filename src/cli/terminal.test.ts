import fc from 'fast-check';
import { expect, test } from 'vitest';
import { printable, printableLines, TerminalFilter } from './terminal.ts';

function clean(text: string, colors = true): string {
  return new TerminalFilter({ colors }).write(text);
}

test('keeps colors where allowed, and removes every other control sequence', () => {
  expect(clean('\x1b[1;31mred\x1b[0m\n')).toBe('\x1b[1;31mred\x1b[0m\n');
  expect(clean('\x1b[1;31mred\x1b[0m', false)).toBe('red');
  expect(clean('a\x1b]52;c;ZXZpbA==\x07b')).toBe('ab');
  expect(clean('a\x1b]0;title\x1b\\b')).toBe('ab');
  expect(clean('a\x1bP$q"p\x1b\\b\x9d0;x\x9cc')).toBe('abc');
  expect(clean('a\x1b[6nb\x1b[2J\x1b[?1049hc\x1bcd')).toBe('abcd');
  expect(clean('a\x07\x08\x7f\x9b31mb\tc\rd\n')).toBe('ab\tc\rd\n');
  expect(clean('x\u202egnp.exe')).toBe('xgnp.exe');
});

test('recognizes a sequence that is split at any point', () => {
  const text = 'a\x1b[31mb\x1b]52;c;eA==\x1b\\c\x1b[2Jd\x1b(Be';
  for (let at = 0; at <= text.length; at++) {
    const filter = new TerminalFilter({ colors: true });
    expect(filter.write(text.slice(0, at)) + filter.write(text.slice(at)), `cut at ${at}`).toBe(
      'a\x1b[31mbcde',
    );
  }
});

test('outputs only text and colors, whatever the chunks', () => {
  const evil = fc
    .array(fc.constantFrom('\x1b', '[', ']', 'P', '\\', '\x07', '\x9b', '\x9c', 'm', 'J', '5', ';', '?', 'é'))
    .map((parts) => parts.join(''));
  fc.assert(
    fc.property(fc.array(evil), (pieces) => {
      const filter = new TerminalFilter({ colors: true });
      const out = pieces.map((piece) => filter.write(piece)).join('');
      expect(out.replace(/\x1b\[[0-9;:]*m/g, '')).not.toMatch(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/);
    }),
  );
});

test('does not buffer an endless sequence', () => {
  const filter = new TerminalFilter({ colors: true });
  expect(filter.write(`\x1b]0;${'x'.repeat(100_000)}`)).toBe('');
  expect(filter.write('after')).toBe('after');
});

test('resets colors at the end', () => {
  const filter = new TerminalFilter({ colors: true });
  expect(filter.end()).toBe('');
  filter.write('\x1b[31m');
  expect(filter.end()).toBe('\x1b[0m');
});

test('shows control characters in fields', () => {
  expect(printable('a\x1b[31m\nb\u202e')).toBe('a\\x1b[31m\\x0ab⟦U+202E⟧');
});

test('keeps lines and tabs of text, and shows other control characters', () => {
  expect(printableLines('a\r\n\tb\x1b[31m\rc\n\u202e')).toBe('a\n\tb\\x1b[31m\\x0dc\n⟦U+202E⟧');
});

test('cleans in linear time', () => {
  const filter = new TerminalFilter({ colors: true });
  for (let i = 0; i < 20; i++) filter.write('\x9d'.repeat(200_000) + '\x1b]'.repeat(100_000));
});
