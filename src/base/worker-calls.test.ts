import { afterEach, expect, test } from 'vitest';
import { WorkerCalls } from './worker-calls.ts';
import type { FixtureTasks } from './worker-calls-fixture.ts';

const calls = new WorkerCalls<FixtureTasks>(new URL('./worker-calls-fixture.ts', import.meta.url), {
  greeting: 'hello',
});
afterEach(() => calls.close());

test('a call returns what the task returns, or throws what it throws', async () => {
  const answers = await Promise.all([calls.call('greet', 'a'), calls.call('greet', 'b')]);
  expect(answers).toEqual(['hello, a', 'hello, b']);
  await expect(calls.call('fail', 'no')).rejects.toThrow('no');
});

test('a crash rejects pending calls, and the next call starts a new worker', async () => {
  await expect(calls.call('die', null)).rejects.toThrow('ended');
  expect(await calls.call('greet', 'again')).toBe('hello, again');
});

test('close rejects pending calls', async () => {
  const refused = expect(calls.call('greet', 'x')).rejects.toThrow('ended');
  await calls.close();
  await refused;
});

test('a new worker answers a call that arrives while the idle worker is shutting down', async () => {
  await calls.call('greet', 'first');
  const closing = calls.close();
  expect(await calls.call('greet', 'late')).toBe('hello, late');
  await closing;
});
