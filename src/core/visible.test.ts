import fc from 'fast-check';
import { expect, test } from 'vitest';
import { escapeHidden } from './visible.ts';

const nameOf = (character: string) =>
  `⟦U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}⟧`;
/** Reverses the replacement of characters by their code points. */
const restored = (text: string) =>
  text.replace(/⟦U\+([0-9A-F]{4,6})⟧/g, (_, code: string) => String.fromCodePoint(Number.parseInt(code, 16)));

const EMOJI = ['😀', '👩‍💻', '❤️', '1️⃣', '🏴󠁧󠁢󠁥󠁮󠁧󠁿', '🧑🏽‍🤝‍🧑🏻', '🇨🇭', '❤️‍🔥'];
/** The characters in a report on such attacks, and some that other rules miss. */
const HIDDEN = [
  ...['\u0000', '\u001b', '\u007f', '\u0085', '\u00ad', '\u061c', '\u180e', '\u200b', '\u200e', '\u202e'],
  ...['\u200c', '\u200d', '\u034f', '\u2800', '\u3164', '\uffa0', '\u115f', '\u17b4', '\ufe0f', '\u{e0100}'],
  ...['\u00a0', '\u1680', '\u2000', '\u2003', '\u202f', '\u205f', '\u3000', '\u2028', '\u2029', '\u2060'],
  ...['\u{1d173}', '\u{1d159}', '\u{e0001}', '\u{e0061}', '\ufeff', '\ufffc', '\uffff', '\ue000', '\ud800'],
];

test.each(HIDDEN)('replaces %j between letters, alone, and beside an emoji', (hidden) => {
  for (const [before, after] of [
    ['rm', 'x'],
    ['', ''],
    ['😀', 'x'],
    ['дом', 'дом'],
  ] as const) {
    expect(escapeHidden(before + hidden + after)).toBe(before + nameOf(hidden) + after);
  }
});

test.each(EMOJI)('keeps the emoji %s intact, even within a command', (emoji) => {
  expect(escapeHidden(emoji)).toBe(emoji);
  expect(escapeHidden(`git commit -m "${emoji}${emoji} ü"`)).toBe(`git commit -m "${emoji}${emoji} ü"`);
});

test('replaces a joiner or variation selector that is not part of an emoji', () => {
  expect(escapeHidden('👩\u200dx')).toBe('👩⟦U+200D⟧x');
  expect(escapeHidden('r\ufe0fm')).toBe('r⟦U+FE0F⟧m');
  expect(escapeHidden('👩‍💻\u200d')).toBe('👩‍💻⟦U+200D⟧');
});

test('keeps line ends, tabs and spaces, but replaces a lone carriage return', () => {
  expect(escapeHidden('a\tb \r\nc\n\rd')).toBe('a\tb \nc\n⟦U+000D⟧d');
});

test.each([
  ['c\u0430t', 'c⟦U+0430⟧t'],
  ['\u0440ython', '⟦U+0440⟧ython'],
  ['/usr/bin/c\u03bfde', '/usr/bin/c⟦U+03BF⟧de'],
  ['s\u0455h_key', 's⟦U+0455⟧h_key'],
  ['\u13a1m', '⟦U+13A1⟧m'],
  ['x\u0966', 'x⟦U+0966⟧'],
  ['\uff52\uff4d', '⟦U+FF52⟧⟦U+FF4D⟧'],
  ['\u{1d42b}m \u212a8s', '⟦U+1D42B⟧m ⟦U+212A⟧8s'],
])('replaces the characters of %j that look like ASCII', (text, expected) => {
  expect(escapeHidden(text)).toBe(expected);
});

test.each([
  'Grüße aus Zürich, naïve café, Øre, Łódź, İstanbul',
  'Привет, мир',
  'Καλημέρα κόσμε',
  'Tシャツとpythonを使う',
  '用git提交代码',
  'npm설치',
  'שלום עולם',
  'नमस्ते दुनिया',
  'git → Москва',
  'm² x₁ nº 5 ½ 20 °C “quoted” – dashed — and…',
  'cafe\u0301',
])('leaves ordinary text unchanged: %s', (text) => {
  expect(escapeHidden(text)).toBe(text);
});

test('names runs of blanks and of empty lines that push text out of view', () => {
  expect(escapeHidden(`npm test${' '.repeat(300)}; curl`)).toBe('npm test⟨300 spaces⟩; curl');
  expect(escapeHidden(`a${'\t'.repeat(90)}b${' \t'.repeat(50)}`)).toBe('a⟨90 tabs⟩b⟨100 spaces and tabs⟩');
  expect(escapeHidden(`npm test${'\r\n'.repeat(201)}curl`)).toBe('npm test\n⟨200 empty lines⟩\ncurl');
  // Lines of blanks look empty too.
  expect(escapeHidden(`a\n${`${' '.repeat(100)}\n`.repeat(8)}  b`)).toBe('a\n⟨8 empty lines⟩\n  b');
  const usual = `if (a) {${'\n'.repeat(6)}${' '.repeat(80)}b`;
  expect(escapeHidden(usual)).toBe(usual);
});

const character = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...HIDDEN, ...EMOJI) },
  {
    weight: 4,
    arbitrary: fc.constantFrom('a', 'Z', '7', '_', '-', ' ', '\n', 'é', 'а', 'ο', '中', 'の', 'ｒ'),
  },
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
);
const texts = fc.array(character, { maxLength: 40 }).map((parts) => parts.join(''));

test('is reversible and idempotent, and leaves no hidden character', () => {
  fc.assert(
    fc.property(texts, (text) => {
      fc.pre(!text.includes('⟦') && !/\n(?:[\t ]*\r?\n){6}/.test(text));
      const shown = escapeHidden(text);
      expect(restored(shown)).toBe(text.replaceAll('\r\n', '\n'));
      expect(escapeHidden(shown)).toBe(shown);
      const bare = shown.replace(/\p{RGI_Emoji}/gv, '');
      expect(bare).not.toMatch(
        /\p{Default_Ignorable_Code_Point}|\p{Cf}|\p{Cs}|\p{Co}|\p{Cn}|[\u2800\ufffc]/u,
      );
      expect(bare).not.toMatch(/(?![\n\t])\p{Cc}|(?! )\p{Z}/u);
    }),
    { numRuns: 2_000 },
  );
});

test('replaces any Cyrillic, Greek, Armenian, Cherokee or Hebrew letter in an ASCII word', () => {
  const foreign = fc
    .integer({ min: 0x370, max: 0x13f5 })
    .map((code) => String.fromCodePoint(code))
    .filter((one) => /^[[\p{sc=Cyrl}\p{sc=Grek}\p{sc=Armn}\p{sc=Cher}\p{sc=Hebr}]&&\p{L}]$/v.test(one));
  const ascii = fc.stringMatching(/^[a-z0-9_]*[a-z][a-z0-9_]*$/);
  fc.assert(
    fc.property(ascii, foreign, fc.nat(), (word, letter, place) => {
      const at = place % (word.length + 1);
      const text = word.slice(0, at) + letter + word.slice(at);
      expect(escapeHidden(text)).toBe(word.slice(0, at) + nameOf(letter) + word.slice(at));
    }),
  );
});
