import { expect, test } from 'vitest';
import { Slots } from './slots.ts';

const limits = { per_owner: 2, total: 3 };
const full = (by: 'owner' | 'total') => new Error(`full: ${by}`);

test('limits the slots of each owner and of all together, and frees them', () => {
  const slots = new Slots();
  const take = (owner: string) => slots.take(owner, limits, full);
  const free = take('alice');
  take('alice');
  expect(() => take('alice')).toThrow('full: owner');
  take('bob');
  expect(() => take('carol')).toThrow('full: total');
  expect(slots.taken).toBe(3);
  free();
  take('carol');
  expect(() => take('alice')).toThrow('full: total');
  expect(slots.taken).toBe(3);
});
