import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Problem } from '../core/problem.ts';
import { agentRecord } from '../testing/agent-record.ts';
import { Api } from './api.ts';
import type { Io } from './context.ts';
import { exitCodes } from './failure.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

/** Reads an agent while the plane answers with these statuses. Records when it was asked, in seconds. */
function read(answers: (number | 'nothing')[], { until_ms }: { until_ms?: number } = {}) {
  const started = performance.now();
  const asked: number[] = [];
  const stop = new AbortController();
  const send = async () => {
    const answer = answers[asked.length] ?? answers.at(-1)!;
    asked.push((performance.now() - started) / 1000);
    if (answer === 'nothing') throw new TypeError('fetch failed');
    const headers = answer === 429 ? { 'retry-after': '7' } : {};
    return new Response(JSON.stringify(answer === 200 ? agentRecord({}) : {}), { status: answer, headers });
  };
  const io = { signal: stop.signal } as unknown as Io;
  const api = new Api('http://plane', 't', io, send as typeof fetch);
  const args = { params: { agent_id: 'agt_1' } };
  const limit = until_ms === undefined ? undefined : { at_ms: started + until_ms, still: 'still waiting' };
  const ended = api.readWithRetry('getAgent', args, limit).then(
    (agent) => agent.id,
    (error) => error,
  );
  return { asked, ended, stop };
}

test('a read is repeated while the plane does not answer, or asks to wait', async () => {
  const { asked, ended } = read([429, 503, 'nothing', 502, 200]);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await ended).toBe('agt_1');
  expect(asked).toEqual([0, 7, 9, 13, 21]);
});

test('at the time limit, a read fails with exit code 124', async () => {
  const { asked, ended } = read(['nothing'], { until_ms: 2_500 });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await ended).toMatchObject({ exit: exitCodes.timeout, message: 'still waiting' });
  expect(asked).toEqual([0, 1, 2.5]);
});

test('Ctrl-C ends a read that waits', async () => {
  const { asked, ended, stop } = read([503]);
  await vi.advanceTimersByTimeAsync(500);
  stop.abort();
  expect(await ended).toMatchObject({ exit: exitCodes.interrupted });
  expect(asked).toEqual([0]);
});

test('a read throws any other error at once', async () => {
  for (const status of [404, 500]) {
    const { asked, ended } = read([status, 200]);
    expect(await ended).toBeInstanceOf(Problem);
    expect(asked).toEqual([0]);
  }
});
