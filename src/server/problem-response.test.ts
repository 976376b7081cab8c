import { describe, expect, it } from 'vitest';
import { type Problem, problems } from '../core/problem.ts';
import { errorResponse } from './problem-response.ts';

const retryAfter = (problem: Problem) =>
  errorResponse(problem, { url: '/api/agents', headers: {} }).headers['retry-after'];

describe('errorResponse', () => {
  it('says with every 429 when to try again', () => {
    expect(retryAfter(problems.tooManyWaiting())).toBe('1');
    expect(retryAfter(problems.tooManyRequests({ retry_after_s: 7 }))).toBe('7');
    expect(retryAfter(problems.agentNotFound())).toBeUndefined();
  });
});
