import { expect, test, vi } from 'vitest';
import { clientLimits } from '../../base/limits.ts';
import { withAllPending } from './pending.ts';

const items = (count: number, first = 0) => Array.from({ length: count }, (_, n) => ({ id: `${first + n}` }));

test('only a full list is completed with the pending items that it lacks', async () => {
  const max = clientLimits.plain_list_items_max;
  const readPending = vi.fn(async () => items(max, 2));
  expect(await withAllPending(items(max - 1), readPending)).toEqual(items(max - 1));
  expect(readPending).not.toHaveBeenCalled();
  expect(await withAllPending(items(max), readPending)).toEqual(items(max + 2));
});
