import { QueryClient, QueryObserver } from '@tanstack/react-query';
import { expect, onTestFinished, test } from 'vitest';
import { readAfterFetch } from './after-fetch.ts';

const queryKey = ['changes', 'agt_1'];

/** A query on a page, whose answers the test provides. */
function open() {
  const queries = new QueryClient();
  const answers: PromiseWithResolvers<string>[] = [];
  const queryFn = () => {
    const answer = Promise.withResolvers<string>();
    answers.push(answer);
    return answer.promise;
  };
  const observer = new QueryObserver(queries, { queryKey, queryFn, staleTime: Number.POSITIVE_INFINITY });
  onTestFinished(observer.subscribe(() => {}));
  const answer = async (text: string) => {
    await expect.poll(() => observer.getCurrentResult().fetchStatus).toBe('fetching');
    answers.at(-1)!.resolve(text);
    await expect.poll(() => observer.getCurrentResult().data).toBe(text);
  };
  return { queries, answers, answer };
}

test('a query that is being read is read once more afterwards, however often it has changed', async () => {
  const { queries, answers, answer } = open();
  await answer('before');
  readAfterFetch(queries, queryKey);
  expect(answers).toHaveLength(2);
  for (let i = 0; i < 3; i++) readAfterFetch(queries, queryKey);
  expect(answers).toHaveLength(2);
  await answer('in the middle of the turn');
  await answer('at the end');
  expect(answers).toHaveLength(3);
});
