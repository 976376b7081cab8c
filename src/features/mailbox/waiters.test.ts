import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { LocalWakes } from '../../store/wakes.ts';
import { limits } from './limits.ts';
import { Waiters } from './waiters.ts';

const NOTHING = async () => false;
const ALICE = { user_id: 'usr_alice' };

test('a wake-up only makes the caller read again', async () => {
  const wakes = new LocalWakes(silentLog);
  const waiters = new Waiters(wakes);
  let looks = 0;
  const waiting = waiters.wait(ALICE, 'a', async () => ++looks === 2, 60_000, new AbortController().signal);
  wakes.deliver('mail', 'b');
  wakes.deliver('mail', 'a');
  await waiting;
  expect(looks).toBe(2);
});

test.for([
  ['a user', ALICE, limits.mail_waiters.per_owner],
  ['a session', { session_id: 'ses_1' }, limits.mail_waiters_per_session],
  ['operators', null, limits.mail_waiters.per_owner],
] as const)(
  'limits the number of waiting calls of %s, and others can still wait',
  async ([, waiter, max]) => {
    const waiters = new Waiters(new LocalWakes(silentLog));
    const leave = new AbortController();
    const wait = () => waiters.wait(waiter, 'a', NOTHING, 60_000, leave.signal);
    const all = Array.from({ length: max }, wait);
    await expect(wait()).rejects.toThrow('too many callers are waiting for mail');
    const other = waiters.wait({ user_id: 'usr_bob' }, 'a', NOTHING, 60_000, leave.signal);
    leave.abort();
    await Promise.all([...all, other]);
    await wait();
  },
);

test('limits the number of waiting calls in total', async () => {
  const waiters = new Waiters(new LocalWakes(silentLog));
  const leave = new AbortController();
  const wait = (_: unknown, n: number) =>
    waiters.wait({ user_id: `usr_${n}` }, 'a', NOTHING, 60_000, leave.signal);
  const all = Array.from({ length: limits.mail_waiters.total }, wait);
  await expect(wait(null, -1)).rejects.toThrow('too many callers are waiting for mail');
  leave.abort();
  await Promise.all(all);
});

test('does not stay subscribed to the signal', async () => {
  const waiters = new Waiters(new LocalWakes(silentLog));
  const { signal } = new AbortController();
  await waiters.wait(ALICE, 'a', NOTHING, 1, signal);
  await waiters.wait(ALICE, 'a', async () => true, 60_000, signal);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
