import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { LocalWakes } from '../../store/wakes.ts';
import { limits } from './limits.ts';
import { Waiters } from './waiters.ts';

const NOTHING = async () => false;

test('a wake-up only makes the caller read again', async () => {
  const wakes = new LocalWakes(silentLog);
  const waiters = new Waiters(wakes);
  let looks = 0;
  const waiting = waiters.wait('a', async () => ++looks === 2, 60_000, new AbortController().signal);
  wakes.deliver('mail', 'b');
  wakes.deliver('mail', 'a');
  await waiting;
  expect(looks).toBe(2);
});

test('limits the number of waiting callers', async () => {
  const waiters = new Waiters(new LocalWakes(silentLog));
  const leave = new AbortController();
  const wait = () => waiters.wait('a', NOTHING, 60_000, leave.signal);
  const all = Array.from({ length: limits.mail_waiters_max }, wait);
  await expect(wait()).rejects.toThrow('too many callers are waiting for mail');
  leave.abort();
  await Promise.all(all);
  await wait();
});

test('does not stay subscribed to the signal', async () => {
  const waiters = new Waiters(new LocalWakes(silentLog));
  const { signal } = new AbortController();
  await waiters.wait('a', NOTHING, 1, signal);
  await waiters.wait('a', async () => true, 60_000, signal);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
