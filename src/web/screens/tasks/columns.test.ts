import { expect, test } from 'vitest';
import { boardColumns, columns, latestFirst, matching, neighbor } from './columns.ts';
import type { TaskRecord } from './data.ts';

const task = (number: number, more: Partial<TaskRecord> = {}): TaskRecord => ({
  ...{ id: `task_${number}`, number, key: `SIT-${number}`, team_id: 'team_1', title: `Task ${number}` },
  description: '',
  ...{
    status: 'open',
    assignee_member_id: null,
    conversation_id: `conv_${number}`,
    run_id: null,
    run_steps: { completed: 0, total: 0 },
    version: 1,
  },
  ...{ created_by: 'usr_1', created_at: '2026-01-01T00:00:00Z', updated_at: `2026-01-01T00:00:0${number}Z` },
  ...more,
});
const numbers = (tasks: TaskRecord[]) => tasks.map(({ number }) => number);

test('every task is in the column of its status, the last changed first', () => {
  const tasks = [task(1), task(2, { status: 'completed' }), task(3), task(4, { status: 'in_review' })];
  const shown = boardColumns(tasks).map(({ label, tasks }) => [label, numbers(tasks)]);
  expect(shown).toEqual([
    ['To do', [3, 1]],
    ['Doing', []],
    ['In review', [4]],
    ['Done', [2]],
    ['Cancelled', []],
  ]);
  expect(numbers(latestFirst([task(1, { updated_at: '2027-01-01T00:00:00Z' }), task(2)]))).toEqual([1, 2]);
});

test('moving left and right again returns to the same column, and the ends have no neighbor', () => {
  expect(neighbor('open', -1)).toBe(null);
  expect(neighbor('cancelled', 1)).toBe(null);
  for (const { status } of columns.slice(1)) expect(neighbor(neighbor(status, -1)!, 1)).toBe(status);
});

test('the filter requires all words, and matches the keys and numbers of tasks', () => {
  const tasks = [
    task(1, { title: 'Add gift cards' }),
    task(17, { assignee_member_id: 'api', updated_at: '' }),
    task(2, { description: 'with gift wrap' }),
  ];
  expect(numbers(matching(tasks, 'GIFT'))).toEqual([1, 2]);
  expect(numbers(matching(tasks, 'gift wrap'))).toEqual([2]);
  expect(numbers(matching(tasks, '#17'))).toEqual([17]);
  expect(numbers(matching(tasks, 'sit-17'))).toEqual([17]);
  expect(numbers(matching(tasks, 'api'))).toEqual([17]);
  expect(numbers(matching(tasks, ' '))).toEqual([1, 17, 2]);
});
