import { expect, test } from 'vitest';
import { tookText } from './time.tsx';

test('a duration has tenths of a second below ten seconds, and is never zero', () => {
  const texts = [0, 0.04, 0.06, 2.44, 12.9, 134].map(tookText);
  expect(texts).toEqual(['< 0.1 s', '< 0.1 s', '0.1 s', '2.4 s', '12 s', '2m14s']);
});
