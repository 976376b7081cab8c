import { expect, test } from 'vitest';
import { Slots } from './slots.ts';

test('a slow task delays no other key, and the total is limited', async () => {
  const slots = new Slots(3, 2);
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const task = (name: string) =>
    slots.run(name[0]!, async () => {
      begun.push(name);
      await new Promise<void>((end) => ends.set(name, end));
    });
  const all = ['a1', 'a2', 'a3', 'b1', 'c1'].map(task);
  await new Promise(setImmediate);
  expect(begun).toEqual(['a1', 'a2', 'b1']);
  ends.get('a1')!();
  await all[0];
  await new Promise(setImmediate);
  expect(begun).toEqual(['a1', 'a2', 'b1', 'a3']);
  for (const name of ['a2', 'a3', 'b1']) ends.get(name)!();
  await Promise.all(all.slice(1, 4));
  await new Promise(setImmediate);
  expect(begun.at(-1)).toBe('c1');
  ends.get('c1')!();
  await all[4];
});
