import { QueryClient } from '@tanstack/react-query';
import { beforeEach, expect, test } from 'vitest';
import { applyFrame } from './fleet.ts';

type Row = Record<string, unknown>;

const KEY = ['runs', 'tea_1'];
const run = (id: string, second: number, more: Row = {}): Row => ({
  id,
  team_id: 'tea_1',
  updated_at: `2026-01-02T03:04:${String(second).padStart(2, '0')}.000Z`,
  ...more,
});
const frame = (record: Row) => ({ id: '1', event: 'run', data: { record } }) as never;

let queries: QueryClient;
beforeEach(() => {
  queries = new QueryClient();
});

/** Starts a fetch whose response the test provides later. */
function startFetch() {
  const answer = Promise.withResolvers<Row[]>();
  const done = queries.fetchQuery({ queryKey: KEY, queryFn: () => answer.promise, staleTime: 0 });
  return { answer: answer.resolve, done };
}
const ids = () => queries.getQueryData<Row[]>(KEY)?.map(({ id, title }) => `${id}${title ?? ''}`);
const settled = () => new Promise((resolve) => setTimeout(resolve, 5));

test('a change updates existing lists, and an older one does not overwrite a newer one', () => {
  queries.setQueryData(KEY, [run('a', 1)]);
  applyFrame(queries, frame(run('b', 2)));
  applyFrame(queries, frame(run('a', 3, { title: '!' })));
  applyFrame(queries, frame(run('a', 2)));
  expect(ids()).toEqual(['b', 'a!']);
  expect(queries.getQueryData(['run', 'a'])).toMatchObject({ title: '!' });
});

test('a change that arrives while a list is fetched is not lost', async () => {
  queries.setQueryData(KEY, [run('a', 1), run('c', 1)]);
  const { answer, done } = startFetch();
  applyFrame(queries, frame(run('b', 2)));
  applyFrame(queries, frame(run('a', 3, { title: '!' })));
  applyFrame(queries, frame({ id: 'c', team_id: 'tea_1', deleted: true }));
  expect(ids()).toEqual(['b', 'a!']);
  answer([run('a', 1), run('c', 1)]);
  await done;
  await settled();
  expect(ids()).toEqual(['b', 'a!']);
});

test('a change that arrives during the first fetch of a list is not lost', async () => {
  const { answer, done } = startFetch();
  applyFrame(queries, frame(run('b', 2)));
  expect(ids()).toBeUndefined();
  answer([run('a', 1)]);
  await done;
  await settled();
  expect(ids()).toEqual(['b', 'a']);
});
