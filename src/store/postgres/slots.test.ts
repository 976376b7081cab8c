import { expect, test, vi } from 'vitest';
import { limits } from './limits.ts';
import { Slots } from './slots.ts';

/** Takes a slot; `begun` tells whether it has it. */
function taker(slots: Slots) {
  const one = { begun: false, end: () => {} };
  void slots.take().then((end) => Object.assign(one, { begun: true, end }));
  return one;
}
const settle = async () => {
  for (let i = 0; i < 5; i++) await Promise.resolve();
};
const CONFLICT = { code: '40001' };
const growTo = (slots: Slots, count: number) => {
  while (slots.allowed < count) slots.succeeded();
};

test('transactions run one at a time at first, in the order of the calls', async () => {
  const slots = new Slots(16);
  const [a, b, c] = [taker(slots), taker(slots), taker(slots)];
  await settle();
  expect([a, b, c].map(({ begun }) => begun)).toEqual([true, false, false]);
  a.end();
  a.end();
  await settle();
  expect([b.begun, c.begun]).toEqual([true, false]);
  b.end();
  await settle();
  expect(c.begun).toBe(true);
});

test('more run at once while none conflicts, but never more than the maximum', async () => {
  const slots = new Slots(3);
  const [a, b] = [taker(slots), taker(slots)];
  growTo(slots, 2);
  await settle();
  expect([a.begun, b.begun]).toEqual([true, true]);
  growTo(slots, 3);
  for (let i = 0; i < 1_000; i++) slots.succeeded();
  expect(slots.allowed).toBe(3);
});

test('a conflict halves their number, and one can always run', async () => {
  const slots = new Slots(16);
  growTo(slots, 4);
  const running = [1, 2, 3, 4].map(() => taker(slots));
  await settle();
  slots.failed(CONFLICT);
  expect(slots.allowed).toBe(2);
  const next = taker(slots);
  running[0]!.end();
  running[1]!.end();
  await settle();
  expect(next.begun).toBe(false);
  running[2]!.end();
  await settle();
  expect(next.begun).toBe(true);
  for (let i = 0; i < 10; i++) slots.failed(CONFLICT);
  expect(slots.allowed).toBe(1);
});

test('others do not wait forever for a transaction that hangs', async () => {
  vi.useFakeTimers();
  try {
    const slots = new Slots(16);
    const [hung, next, last] = [taker(slots), taker(slots), taker(slots)];
    await vi.advanceTimersByTimeAsync(limits.slot_ms_max);
    expect([next.begun, last.begun]).toEqual([true, false]);
    expect(slots.isOnly).toBe(false);
    hung.end();
    await settle();
    expect(last.begun).toBe(false);
    expect(slots.isOnly).toBe(true);
    next.end();
    await settle();
    expect(last.begun).toBe(true);
  } finally {
    vi.useRealTimers();
  }
});

test('a lock that was not obtained in time, or another error, does not change their number', () => {
  const slots = new Slots(16);
  growTo(slots, 4);
  slots.failed({ code: '55P03' });
  slots.failed(new Error('no'));
  expect(slots.allowed).toBe(4);
  slots.failed({ code: '40P01' });
  expect(slots.allowed).toBe(2);
});
