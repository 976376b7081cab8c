import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { colorsAfter, plainText } from './ansi.ts';
import { bounds } from './bounds.ts';
import { parseSpans } from './spans.ts';

/** The text of each span, with the attributes that are not the default. */
function shown(raw: string, carry?: string): unknown[] {
  return parseSpans(raw, carry).map(({ text, ...variant }) => {
    const unusual = Object.entries(variant).filter(([, value]) => value !== null && value !== false);
    return unusual.length === 0 ? text : [text, Object.fromEntries(unusual)];
  });
}

describe('colors', () => {
  test('a plain line is one span', () => {
    expect(shown('just text\twith a tab')).toEqual(['just text\twith a tab']);
    expect(shown('')).toEqual([]);
  });

  test('the 16 basic colors have names for the theme, and all others are RGB values', () => {
    expect(shown('\x1b[31mred\x1b[0m \x1b[1;92mgo\x1b[39m!')).toEqual([
      ['red', { fg: 'red' }],
      ' ',
      ['go', { fg: 'bright-green', bold: true }],
      ['!', { bold: true }],
    ]);
    expect(shown('\x1b[38;5;196mcube\x1b[48;5;244mgrey')).toEqual([
      ['cube', { fg: '#ff0000' }],
      ['grey', { fg: '#ff0000', bg: '#808080' }],
    ]);
    expect(shown('\x1b[38;2;1;2;3ma\x1b[38:2::4:5:6mb\x1b[38:2:7:8:9mc')).toEqual([
      ['a', { fg: '#010203' }],
      ['b', { fg: '#040506' }],
      ['c', { fg: '#070809' }],
    ]);
  });

  test('a color continues in the next line until it is reset', () => {
    const carry = colorsAfter('', '\x1b[1mbold \x1b[31mred');
    expect(shown('more', carry)).toEqual([['more', { fg: 'red', bold: true }]]);
    expect(colorsAfter(carry, 'x\x1b[0m')).toBe('');
    expect(shown('x', colorsAfter(carry, '\x1b[0;32m'))).toEqual([['x', { fg: 'green' }]]);
  });

  test('the rest of a line that changes its color too often is one span, and no text is lost', () => {
    const raw = '\x1b[31ma\x1b[32mb'.repeat(5_000);
    const spans = parseSpans(raw);
    expect(spans.length).toBeLessThanOrEqual(bounds.line_colors + 1);
    expect(spans[0]).toMatchObject({ text: 'a', fg: 'red' });
    expect(spans.at(-1)).toMatchObject({ fg: null, is_rest: true });
    expect(spans.map(({ text }) => text).join('')).toBe(plainText(raw));
    const usual = '\x1b[31ma\x1b[32mb'.repeat(bounds.line_colors / 2);
    expect(parseSpans(usual).some(({ is_rest }) => is_rest)).toBe(false);
  });

  test('the colors that a line takes over are limited in length', () => {
    let carry = '';
    for (let n = 0; n < 1_000; n++) carry = colorsAfter(carry, '\x1b[1m');
    expect(carry.length).toBeLessThan(300);
  });
});

describe('terminal commands', () => {
  test('a line that is overwritten shows its last version', () => {
    expect(plainText('10 %\r50 %\r100 %\r')).toBe('100 %');
    expect(shown('\x1b[31m10 %\r50 %')).toEqual([['50 %', { fg: 'red' }]]);
    expect(plainText('windows\r')).toBe('windows');
  });

  test('cursor movements, titles, links and other commands are removed, even incomplete ones at the end of a line', () => {
    const hostile =
      'a\x1b[2Jb\x1b]0;title\x07c\x1b]8;;http://x\x1b\\d\x1b]8;;\x1b\\e\x1bPq#\x1b\\f\x1b(Bg\x9b5Ch\x1b[12';
    expect(plainText(hostile)).toBe('abcdefgh');
    expect(shown(hostile)).toEqual(['abcdefgh']);
  });

  test('other control characters and marks that reorder text are made visible', () => {
    expect(plainText('bell\x07 nul\0 del\x7f')).toBe('bell\u2407 nul\u2400 del\u2421');
    expect(plainText('abc\u202edcba \u2066x \x85')).toBe('abc<U+202E>dcba <U+2066>x <U+0085>');
  });

  test('no output keeps a control character or a mark that reorders text', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        '\x1b',
        '\x1b[',
        '\x9b',
        '\x1b]8;;',
        '\x07',
        '\r',
        '\x1b[1;31m',
        '\x1b[38:2::1:2m',
        'm',
        ';',
        '9',
      ),
      fc.constantFrom('\x1b[m', '\x1b[48;5;999m', '\u202e', '\x1b[38;2;1m', '\x1b[?25l', '\x1b\\'),
      fc.string({ unit: 'binary', maxLength: 5 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), fc.array(piece, { maxLength: 5 }), (pieces, before) => {
        const [raw, carry] = [pieces.join('').replaceAll('\n', ''), colorsAfter('', before.join(''))];
        const text = parseSpans(raw, carry)
          .map((span) => span.text)
          .join('');
        expect(text).not.toMatch(/[\0-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/);
        expect(text).toBe(plainText(raw));
      }),
      { numRuns: 2_000 },
    );
  });
});
