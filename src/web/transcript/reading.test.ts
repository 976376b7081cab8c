import { expect, test } from 'vitest';
import { headOf, outputText, rawOf, rawText } from './reading.ts';

/** Arrays in arrays. */
function nested(levels: number): unknown {
  let value: unknown = 'inside';
  for (let n = 0; n < levels; n++) value = [value];
  return value;
}

test('a value that fits is kept as it is, one that is too large as the first of its JSON', () => {
  const small = rawOf({ a: 1 }, 100);
  expect(small).toMatchObject({ value: { a: 1 }, cut: false });
  expect(rawText(small)).toBe('{\n  "a": 1\n}');
  const large = rawOf({ text: 'x'.repeat(1_000) }, 20);
  expect(large).toMatchObject({ cut: true, chars: 20 });
  expect(rawText(large)).toBe('{"text":"xxxxxxxxxxx');
});

test('a value may nest as deep as it likes', () => {
  const deep = rawOf(nested(100_000));
  expect(rawText(deep)).toBeTypeOf('string');
  expect(rawText(rawOf(nested(100_000), 10))).toBeTypeOf('string');
  expect(rawText(rawOf(nested(2)))).toContain('inside');
});

test('a text is cut between characters', () => {
  expect(headOf('ab😀', 3)).toBe('ab');
  expect(headOf('ab😀', 4)).toBe('ab😀');
});

test('bytes are read as UTF-8 as far as they are, and what is no base64 stays as it came', () => {
  const utf8 = btoa(String.fromCharCode(0xc3, 0xa9, 0xff));
  expect(outputText({ data: utf8, encoding: 'base64' })).toEqual({ text: 'é\ufffd', binary: true });
  expect(outputText({ data: '%%%', encoding: 'base64' })).toEqual({ text: '%%%', binary: true });
  expect(outputText({ data: 'é' })).toEqual({ text: 'é', binary: false });
  expect(outputText({ data: 7 })).toEqual({ text: '', binary: false });
});
