import { expect, test } from 'vitest';
import { nextTurn } from '../../base/async.ts';
import { Turns } from './turns.ts';

test('runs one task at a time, in the order of the calls, whether they fail or not', async () => {
  const turns = new Turns();
  const log: string[] = [];
  const task = (name: string) => async () => {
    log.push(`${name} begins`);
    await nextTurn();
    log.push(`${name} ends`);
    if (name === 'a') throw new Error('failed');
    return name;
  };
  const results = await Promise.allSettled(['a', 'b', 'c'].map((name) => turns.run(task(name), 60_000)));
  expect(results).toMatchObject([{ status: 'rejected' }, { value: 'b' }, { value: 'c' }]);
  expect(log).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
});

test('does not wait longer than it may', async () => {
  const turns = new Turns();
  const held = Promise.withResolvers<void>();
  const first = turns.run(() => held.promise, 60_000);
  expect(await turns.run(async () => 'second', 1)).toBe('second');
  held.resolve();
  await first;
});
