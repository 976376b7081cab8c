import { expect, test } from 'vitest';
import { limits } from '../../base/limits.ts';
import { type AgentRequestFilter, pageOfRequests } from './agent-requests.ts';

type Status = 'pending' | 'answered';

/** Rows with the numbers `total` to 1. */
function rowsOf(total: number, statusOf: (num: number) => Status) {
  const rows = Array.from({ length: total }, (_, at) => ({ num: total - at, status: statusOf(total - at) }));
  const list = async ({ status, before_num = total + 1, limit = total }: AgentRequestFilter<Status>) =>
    rows.filter((row) => row.num < before_num && (status ?? row.status) === row.status).slice(0, limit);
  const read = (filter: AgentRequestFilter<Status>, cursor?: string) =>
    pageOfRequests<Status, (typeof rows)[number], number>(list, filter, { cursor }, ({ num }) => num);
  return { read };
}

test('a plain list has a page of any, and older ones that are pending', async () => {
  const { read } = rowsOf(500, (num) => (num === 7 || num > 490 ? 'pending' : 'answered'));
  const { items, next_cursor } = await read({});
  expect(items).toHaveLength(limits.page_items_max + 1);
  expect(items.at(-1)).toBe(7);
  expect(next_cursor).toBeUndefined();
  expect((await read({ status: 'answered' })).items).toHaveLength(limits.page_items_max);
});

test('a plain list of too many pending ones has the cursor of the next page', async () => {
  const { read } = rowsOf(limits.plain_list_items_max + 2, () => 'pending');
  const { items, next_cursor } = await read({ status: 'pending' });
  expect(items).toHaveLength(limits.plain_list_items_max);
  expect((await read({ status: 'pending' }, next_cursor)).items).toEqual([2, 1]);
  expect((await rowsOf(limits.plain_list_items_max, () => 'pending').read({})).next_cursor).toBeUndefined();
});
