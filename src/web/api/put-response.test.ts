import { QueryClient } from '@tanstack/react-query';
import { expect, test } from 'vitest';
import { putResponse } from './put-response.ts';

const [one, list] = [
  ['run', 'a'],
  ['runs', 'tea_1'],
];
const run = (version: number, status: string) => ({ id: 'a', version, status });

function cached(response: { id: string }, known?: object) {
  const queries = new QueryClient();
  if (known) {
    queries.setQueryData(one, known);
    queries.setQueryData(list, [{ id: 'b' }, known]);
  }
  putResponse(queries, { one, list }, response);
  return [queries.getQueryData(one), queries.getQueryData(list)];
}

test('a response replaces an older record', () => {
  expect(cached(run(2, 'running'), run(1, 'failed'))).toEqual([
    run(2, 'running'),
    [{ id: 'b' }, run(2, 'running')],
  ]);
  expect(cached(run(1, 'pending'))).toEqual([run(1, 'pending'), undefined]);
});

test('a response does not replace a record that the feed brought before it', () => {
  expect(cached(run(2, 'running'), run(3, 'completed'))[0]).toEqual(run(3, 'completed'));
  const at = (second: number, status: string) => ({
    id: 'a',
    updated_at: `2026-01-02T03:04:0${second}Z`,
    status,
  });
  expect(cached(at(1, 'running'), at(2, 'exited'))).toEqual([
    at(2, 'exited'),
    [{ id: 'b' }, at(2, 'exited')],
  ]);
});
