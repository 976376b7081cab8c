import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isDeeper } from './depth.ts';

const nested = (levels: number) => '[{"a":'.repeat(levels / 2) + '}]'.repeat(levels / 2);

test('levels are counted, not brackets', () => {
  expect(isDeeper(nested(10), 10)).toBe(false);
  expect(isDeeper(nested(12), 10)).toBe(true);
  expect(isDeeper('[],{}'.repeat(100), 10)).toBe(false);
});

test('brackets in strings do not count, whatever is escaped there', () => {
  const texts = ['[[[[', '"[[', '\\[[', '\\"[[', '[[\\', '\\\\"[['];
  expect(isDeeper(JSON.stringify(texts), 1)).toBe(false);
});

test('an unfinished string has no end', () => {
  expect(isDeeper(`["${'['.repeat(20)}`, 3)).toBe(false);
});

test('a value is as deep as it is', () => {
  const depth = (value: unknown): number =>
    typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depth)) : 0;
  fc.assert(
    fc.property(fc.json({ maxDepth: 12 }), fc.integer({ min: 0, max: 12 }), (json, levels) => {
      expect(isDeeper(json, levels)).toBe(depth(JSON.parse(json)) > levels);
    }),
  );
});
