import { expect, test } from 'vitest';
import { limits } from '../limits.ts';
import { batchRequests } from './shared-requests.ts';

/** A folder for which the test decides when a batch ends. */
function batched() {
  const rounds: string[][] = [];
  const ends: (() => void)[] = [];
  const run = batchRequests<string>(async (folder, _owner, requests) => {
    const round = requests();
    rounds.push(round);
    await new Promise<void>((resolve) => ends.push(resolve));
    if (round.includes('fail')) throw new Error('broken');
    return round.map((request) => `${folder} ${request}`);
  });
  const end = async () => {
    ends.shift()!();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { run, rounds, end };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('combines requests for a folder while an earlier one is running', async () => {
  const { run, rounds, end } = batched();
  const first = run('a', undefined, 'one');
  await settled();
  const others = ['two', 'three', 'two'].map((request) => run('a', undefined, request));
  const elsewhere = run('b', undefined, 'four');
  await settled();
  expect(rounds).toEqual([['one'], ['four']]);
  await end();
  expect(await first).toBe('a one');
  expect(rounds).toEqual([['one'], ['four'], ['two', 'three']]);
  await end();
  await end();
  expect(await Promise.all([...others, elsewhere])).toEqual(['a two', 'a three', 'a two', 'b four']);
});

test('a failure affects only the requests of the same batch', async () => {
  const { run, end } = batched();
  const failed = Promise.allSettled([run('a', undefined, 'fail'), run('a', undefined, 'too')]);
  await settled();
  const next = run('a', undefined, 'next');
  await end();
  expect(await failed).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }]);
  await end();
  expect(await next).toBe('a next');
});

test('rejects more requests than a batch may contain', async () => {
  const { run, end } = batched();
  const all = Array.from({ length: limits.find_batch_max }, (_, n) => run('a', undefined, `${n}`));
  const refused = run('a', undefined, 'more');
  const again = run('a', undefined, '0');
  await expect(refused).rejects.toMatchObject({ code: 'too_many_folder_jobs' });
  await settled();
  await end();
  expect(await Promise.all([...all, again])).toHaveLength(limits.find_batch_max + 1);
});
