import { QueryClient } from '@tanstack/react-query';
import { expect, test } from 'vitest';
import { cacheAnswer } from './cache-answer.ts';

const keys = { one: ['review', 'rev_1'], list: ['reviews'] };
const pending = { id: 'rev_1', status: 'pending', delivery: null };
const queued = { id: 'rev_1', status: 'answered', delivery: 'queued' };
const written = { id: 'rev_1', status: 'answered', delivery: 'written' };

test('a response replaces the pending record, in the record and in the list', () => {
  const queries = new QueryClient();
  queries.setQueryData(['review', 'rev_1'], pending);
  queries.setQueryData(['reviews'], [{ ...pending, id: 'rev_2' }, pending]);
  cacheAnswer(queries, keys, queued);
  expect(queries.getQueryData(['review', 'rev_1'])).toEqual(queued);
  expect(queries.getQueryData(['reviews'])).toEqual([{ ...pending, id: 'rev_2' }, queued]);
});

test('a response does not replace a newer record from the fleet feed', () => {
  const queries = new QueryClient();
  queries.setQueryData(['review', 'rev_1'], written);
  queries.setQueryData(['reviews'], [written]);
  cacheAnswer(queries, keys, queued);
  expect(queries.getQueryData(['review', 'rev_1'])).toEqual(written);
  expect(queries.getQueryData(['reviews'])).toEqual([written]);
});
