import { expect, test } from 'vitest';
import { compactCount } from './usage.ts';

test('a number of tokens has at most three digits before its unit', () => {
  const texts = [0, 999, 1000, 4200, 999_499, 999_600, 1_240_000].map(compactCount);
  expect(texts).toEqual(['0', '999', '1k', '4k', '999k', '1.0M', '1.2M']);
});
