import { expect, test } from 'vitest';
import { rawOf, rawText } from './bounded.ts';

/** Nested arrays. */
function nested(levels: number): unknown {
  let value: unknown = 'inside';
  for (let n = 0; n < levels; n++) value = [value];
  return value;
}

test('keeps a value that fits, and the first characters of the JSON of a larger one', () => {
  const small = rawOf({ a: 1 }, 100);
  expect(small).toMatchObject({ value: { a: 1 }, cut: false });
  expect(rawText(small)).toBe('{\n  "a": 1\n}');
  const large = rawOf({ text: 'x'.repeat(1_000) }, 20);
  expect(large).toMatchObject({ cut: true, chars: 20 });
  expect(rawText(large)).toBe('{"text":"xxxxxxxxxxx');
});

test('reads values of any depth', () => {
  const deep = rawOf(nested(100_000));
  expect(rawText(deep)).toBeTypeOf('string');
  expect(rawText(rawOf(nested(100_000), 10))).toBeTypeOf('string');
  expect(rawText(rawOf(nested(2)))).toContain('inside');
});
