import fc from 'fast-check';
import { expect, test } from 'vitest';
import { exceedsDepth, exceedsValueCount } from './depth.ts';

const nested = (levels: number) => '[{"a":'.repeat(levels / 2) + '}]'.repeat(levels / 2);

test('counts levels, not brackets', () => {
  expect(exceedsDepth(nested(10), 10)).toBe(false);
  expect(exceedsDepth(nested(12), 10)).toBe(true);
  expect(exceedsDepth('[],{}'.repeat(100), 10)).toBe(false);
});

test('ignores brackets in strings, with any escapes', () => {
  const texts = ['[[[[', '"[[', '\\[[', '\\"[[', '[[\\', '\\\\"[['];
  expect(exceedsDepth(JSON.stringify(texts), 1)).toBe(false);
});

test('ignores everything after the start of an unfinished string', () => {
  expect(exceedsDepth(`["${'['.repeat(20)}`, 3)).toBe(false);
});

test('agrees with the depth of the parsed value', () => {
  const depth = (value: unknown): number =>
    typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depth)) : 0;
  fc.assert(
    fc.property(fc.json({ maxDepth: 12 }), fc.integer({ min: 0, max: 12 }), (json, levels) => {
      expect(exceedsDepth(json, levels)).toBe(depth(JSON.parse(json)) > levels);
    }),
  );
});

test('counts objects, arrays and entries, but nothing in strings', () => {
  expect(exceedsValueCount('[{},{},{}]', 7)).toBe(false);
  expect(exceedsValueCount('[{},{},{}]', 6)).toBe(true);
  expect(exceedsValueCount(JSON.stringify(['{},{},[],"', '\\",{},']), 3)).toBe(false);
});

test('never undercounts values', () => {
  const size = (value: unknown): number =>
    typeof value === 'object' && value !== null
      ? Object.values(value).reduce((sum: number, one) => sum + size(one), 1)
      : 1;
  fc.assert(
    fc.property(fc.json({ maxDepth: 5 }), (json) => {
      expect(exceedsValueCount(json, size(JSON.parse(json)) - 1)).toBe(true);
    }),
  );
});
