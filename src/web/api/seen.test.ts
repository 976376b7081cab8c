import { QueryClient } from '@tanstack/react-query';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { keys } from './keys.ts';
import { SeenMarks } from './seen.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function opened(known: [string, number][] = []) {
  const queries = new QueryClient();
  queries.setQueryData(keys.seen, new Map(known));
  const sent: [string, number][] = [];
  const marks = new SeenMarks(queries, async (agent_id, seq) => sent.push([agent_id, seq]));
  return { marks, sent, seen: () => queries.getQueryData(keys.seen) };
}

test('sends at most one mark per agent in two seconds, and the newest in the end', () => {
  const { marks, sent, seen } = opened();
  for (const seq of [1, 2, 3]) marks.mark('agt_1', seq);
  marks.mark('agt_2', 9);
  expect(sent).toEqual([
    ['agt_1', 1],
    ['agt_2', 9],
  ]);
  vi.advanceTimersByTime(1999);
  expect(sent).toHaveLength(2);
  vi.advanceTimersByTime(1);
  expect(sent.at(-1)).toEqual(['agt_1', 3]);
  vi.advanceTimersByTime(10_000);
  expect(sent).toHaveLength(3);
  expect(seen()).toEqual(
    new Map([
      ['agt_1', 3],
      ['agt_2', 9],
    ]),
  );
});

test('sends nothing that is already marked, and never lowers a mark', () => {
  const { marks, sent, seen } = opened([['agt_1', 5]]);
  marks.mark('agt_1', 4);
  marks.mark('agt_1', 5);
  expect(sent).toEqual([]);
  marks.mark('agt_1', 6);
  expect(sent).toEqual([['agt_1', 6]]);
  expect(seen()).toEqual(new Map([['agt_1', 6]]));
});
