import { expect, test } from 'vitest';
import { formatRaw, toRaw } from './bounded.ts';

/** Nested arrays. */
function nested(levels: number): unknown {
  let value: unknown = 'inside';
  for (let n = 0; n < levels; n++) value = [value];
  return value;
}

test('keeps a value that fits, and the first characters of the JSON of a larger one', () => {
  const small = toRaw({ a: 1 }, 100);
  expect(small).toMatchObject({ value: { a: 1 }, truncated: false });
  expect(formatRaw(small)).toBe('{\n  "a": 1\n}');
  const large = toRaw({ text: 'x'.repeat(1_000) }, 20);
  expect(large).toMatchObject({ truncated: true, chars: 20 });
  expect(formatRaw(large)).toBe('{"text":"xxxxxxxxxxx');
});

test('reads values of any depth', () => {
  const deep = toRaw(nested(100_000));
  expect(formatRaw(deep)).toBeTypeOf('string');
  expect(formatRaw(toRaw(nested(100_000), 10))).toBeTypeOf('string');
  expect(formatRaw(toRaw(nested(2)))).toContain('inside');
});
