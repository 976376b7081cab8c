import { expect, test } from 'vitest';
import { Problem, problems } from '../../core/problem.ts';
import { retryDelay, shouldRetry } from './retry.ts';

const limited = new Problem('rate_limited', 'rate_limited', 'too many requests', { retry_after_s: 3 });

test('a request is sent again if it was not answered, or when the service asked for it', () => {
  expect([0, 1, 2].map((failures) => shouldRetry(failures, new TypeError('Failed to fetch')))).toEqual([
    true,
    true,
    false,
  ]);
  expect([limited, problems.noActivePlane()].map((error) => shouldRetry(5, error))).toEqual([true, true]);
  expect(shouldRetry(10, limited)).toBe(false);
  expect([problems.agentNotFound(), problems.nodeTooOld()].map((error) => shouldRetry(0, error))).toEqual([
    false,
    false,
  ]);
});

test('a read that a node or a proxy could not answer is sent again twice', () => {
  const from_proxy = new Problem('bad_gateway', 'http_502', 'the server answered 502');
  for (const error of [problems.nodeUnreachable(), problems.forwardFailed(), from_proxy])
    expect([0, 1, 2].map((failures) => shouldRetry(failures, error))).toEqual([true, true, false]);
});

test('it waits as long as the service asks, else longer each time, at most half a minute', () => {
  expect([retryDelay(0, limited), retryDelay(4, limited)]).toEqual([3000, 3000]);
  expect([0, 1, 10].map((failures) => retryDelay(failures, new Error()))).toEqual([1000, 2000, 30_000]);
});
