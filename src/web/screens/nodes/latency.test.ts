import { expect, test } from 'vitest';
import { formatBytes } from './disk.tsx';
import { formatMs, toPoints } from './latency.tsx';

test('the newest round trip is at the right edge, and the slowest at the top', () => {
  expect(toPoints([20])).toBe('56,1');
  expect(toPoints([0, 50, 100])).toBe('53.1,15 54.6,8 56,1');
});

test('the jitter of a fast link stays near the bottom of the line', () => {
  expect(toPoints([0.2, 0.4])).toBe('54.6,14.7 56,14.4');
});

test('short round trips have a decimal place', () => {
  expect([0.44, 9.94, 9.96, 12.6].map(formatMs)).toEqual(['0.4 ms', '9.9 ms', '10 ms', '13 ms']);
});

test('free space is rounded down', () => {
  const gib = 2 ** 30;
  const texts = ['0.9 GiB', '9.9 GiB', '12 GiB', '1.5 TiB'];
  expect([0.99 * gib, 9.99 * gib, 12.9 * gib, 1536 * gib].map(formatBytes)).toEqual(texts);
});
