import { expect, test } from 'vitest';
import { Closing } from './closing.ts';

test('closes in reverse order, once, even if a part fails', async () => {
  const closed: string[] = [];
  const closing = new Closing();
  closing.push(() => void closed.push('lock'));
  closing.push(async () => {
    closed.push('store');
    throw new Error('disk is full');
  });
  closing.push(() => {
    closed.push('http');
    throw new Error('socket is gone');
  });
  const [errors, again] = await Promise.all([closing.close(), closing.close()]);
  expect(closed).toEqual(['http', 'store', 'lock']);
  expect(errors).toEqual([new Error('socket is gone'), new Error('disk is full')]);
  expect(again).toBe(errors);
});
