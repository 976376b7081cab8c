import { expect, test } from 'vitest';
import { limits } from '../limits.ts';
import { gathering } from './shared-questions.ts';

/** A folder whose answers the test controls. */
function asked() {
  const rounds: string[][] = [];
  const ends: (() => void)[] = [];
  const ask = gathering<string>(async (folder, _owner, questions) => {
    const round = questions();
    rounds.push(round);
    await new Promise<void>((resolve) => ends.push(resolve));
    if (round.includes('fail')) throw new Error('broken');
    return round.map((question) => `${folder} ${question}`);
  });
  const end = async () => {
    ends.shift()!();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { ask, rounds, end };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('combines questions about a folder while an earlier one is answered', async () => {
  const { ask, rounds, end } = asked();
  const first = ask('a', undefined, 'one');
  await settled();
  const others = ['two', 'three', 'two'].map((question) => ask('a', undefined, question));
  const elsewhere = ask('b', undefined, 'four');
  await settled();
  expect(rounds).toEqual([['one'], ['four']]);
  await end();
  expect(await first).toBe('a one');
  expect(rounds).toEqual([['one'], ['four'], ['two', 'three']]);
  await end();
  await end();
  expect(await Promise.all([...others, elsewhere])).toEqual(['a two', 'a three', 'a two', 'b four']);
});

test('a failure affects only the questions that were asked together', async () => {
  const { ask, end } = asked();
  const failed = Promise.allSettled([ask('a', undefined, 'fail'), ask('a', undefined, 'too')]);
  await settled();
  const next = ask('a', undefined, 'next');
  await end();
  expect(await failed).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }]);
  await end();
  expect(await next).toBe('a next');
});

test('rejects more questions than one answer may contain', async () => {
  const { ask, end } = asked();
  const all = Array.from({ length: limits.found_questions_max }, (_, n) => ask('a', undefined, `${n}`));
  const refused = ask('a', undefined, 'more');
  const again = ask('a', undefined, '0');
  await expect(refused).rejects.toMatchObject({ code: 'too_many_folder_jobs' });
  await settled();
  await end();
  expect(await Promise.all([...all, again])).toHaveLength(limits.found_questions_max + 1);
});
