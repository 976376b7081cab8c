import { type InfiniteData, QueryClient } from '@tanstack/react-query';
import { beforeEach, expect, test } from 'vitest';
import { applyToAllRuns, type ListedRunRecord } from './all-runs.ts';

type Row = Record<string, unknown>;
type Pages = InfiniteData<{ items: Partial<ListedRunRecord>[]; next_cursor?: string }>;

const KEY = ['all-runs'];
const at = (second: number) => `2026-01-02T03:04:${String(second).padStart(2, '0')}.000Z`;
const listed = (id: string, second: number, more: Row = {}) => ({
  ...{
    id,
    team_id: 'tea_1',
    team_name: 'site',
    created_at: at(second),
    version: 2,
    title: null,
    status: 'running',
  },
  ...more,
});
/** A record as the feed has it, without the team's name. */
const record = (id: string, second: number, more: Row = {}): Row => ({
  ...{ id, team_id: 'tea_1', created_at: at(second), version: 3, status: 'running' },
  ...{ spec: {}, input: { title: `Title of ${id}` }, output: null, ...more },
});

let queries: QueryClient;
beforeEach(() => {
  queries = new QueryClient();
  const pages = [
    { items: [listed('d', 4), listed('c', 3)], next_cursor: '3' },
    { items: [listed('b', 2)], next_cursor: '2' },
  ];
  queries.setQueryData(KEY, { pages, pageParams: [undefined, '3'] });
});

const apply = (changed: Row, event = 'run') =>
  applyToAllRuns(queries, { id: '1', event, data: { record: changed } } as never);
const pages = () => queries.getQueryData<Pages>(KEY)!.pages.map(({ items }) => items);
const ids = () => pages().map((items) => items.map(({ id }) => id).join(''));
const isStale = () => queries.getQueryState(KEY)!.isInvalidated;

test('a change replaces the listed run, unless it is older, and keeps the name of its team', () => {
  apply(record('b', 2, { status: 'completed' }));
  expect(pages()[1]).toEqual([listed('b', 2, { version: 3, status: 'completed', title: 'Title of b' })]);
  apply(record('c', 3, { version: 1, status: 'pending' }));
  expect(pages()[0]![1]!.status).toBe('running');
  apply(record('c', 3), 'step');
  expect(ids()).toEqual(['dc', 'b']);
});

test('a new run of a known team is the first one, and a deleted run leaves its page', () => {
  apply(record('e', 5));
  apply({ ...record('d', 4), deleted: true });
  apply({ ...record('x', 9), deleted: true });
  expect(ids()).toEqual(['ec', 'b']);
  expect(pages()[0]![0]).toMatchObject({ team_name: 'site', title: 'Title of e' });
  expect(isStale()).toBe(false);
});

test('the team’s name comes from the list of teams; if it is unknown, the runs are read again', () => {
  apply(record('e', 5, { team_id: 'tea_2' }));
  expect([ids(), isStale()]).toEqual([['dc', 'b'], true]);
  queries.setQueryData(['teams'], [{ id: 'tea_3', name: 'docs' }]);
  apply(record('f', 6, { team_id: 'tea_3' }));
  expect(pages()[0]![0]).toMatchObject({ id: 'f', team_name: 'docs' });
});

test('a change of a run on a page that was not read changes nothing', () => {
  apply(record('a', 1));
  expect([ids(), isStale()]).toEqual([['dc', 'b'], false]);
});

test('a list of the runs with one status gains and loses runs as their status changes', () => {
  const key = [...KEY, 'failed'];
  const items = [listed('d', 4, { status: 'failed' })];
  queries.setQueryData(key, { pages: [{ items, next_cursor: '4' }], pageParams: [undefined] });
  const failed = () =>
    queries.getQueryData<Pages>(key)!.pages.flatMap((page) => page.items.map(({ id }) => id));
  apply(record('e', 5));
  expect(failed()).toEqual(['d']);
  apply(record('e', 5, { version: 4, status: 'failed' }));
  expect(failed()).toEqual(['e', 'd']);
  apply(record('d', 4, { status: 'running' }));
  expect(failed()).toEqual(['e']);
  expect(ids()).toEqual(['edc', 'b']);
});

test('the list of the runs of a team has the changes of that team, on all pages that were read', () => {
  const key = ['runs', 'tea_1', 'pages'];
  const read = [
    { items: [listed('d', 4), listed('c', 3)], next_cursor: '3' },
    { items: [listed('b', 2)], next_cursor: '2' },
  ];
  queries.setQueryData(key, { pages: read, pageParams: [undefined, '3'] });
  apply(record('e', 5));
  apply(record('f', 6, { team_id: 'tea_2' }));
  apply({ ...record('c', 3), deleted: true });
  apply(record('b', 2, { status: 'completed' }));
  const { pages } = queries.getQueryData<Pages>(key)!;
  expect(pages.map(({ items }) => items.map(({ id, status }) => `${id} ${status}`))).toEqual([
    ['e running', 'd running'],
    ['b completed'],
  ]);
  expect(pages.map(({ next_cursor }) => next_cursor)).toEqual(['3', '2']);
});
