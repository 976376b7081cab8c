import { expect, test } from 'vitest';
import { Problem } from '../core/problem.ts';
import { limits } from './limits.ts';
import { RateLimiter } from './rate.ts';

const rate = { per_second: 50, burst: 100 };

function taken(limiter: RateLimiter, key: string, tries: number): number {
  let count = 0;
  for (let i = 0; i < tries; i++) {
    try {
      limiter.take(key, rate);
      count++;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
    }
  }
  return count;
}

test('allows a burst, and then the sustained rate', () => {
  let now = 0;
  const limiter = new RateLimiter(() => now);
  expect(taken(limiter, 'a', 1_000)).toBe(100);
  now += 1_000;
  expect(taken(limiter, 'a', 1_000)).toBe(50);
  now += 1_000_000;
  expect(taken(limiter, 'a', 1_000)).toBe(100);
});

test('tells a rejected caller when to retry', () => {
  const limiter = new RateLimiter(() => 0);
  limiter.take('a', { per_second: 0.1, burst: 1 });
  expect(() => limiter.take('a', { per_second: 0.1, burst: 1 })).toThrow(
    expect.objectContaining({ kind: 'rate_limited', retry_after_s: 10 }),
  );
});

test('gives each caller a bucket, and limits the number of buckets', () => {
  const limiter = new RateLimiter(() => 0);
  expect(taken(limiter, 'a', 101)).toBe(100);
  for (let i = 0; i < limits.rate_buckets_max; i++) expect(taken(limiter, `other ${i}`, 1)).toBe(1);
  expect(taken(limiter, 'a', 1)).toBe(1);
});
