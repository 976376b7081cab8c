import { expect, test } from 'vitest';
import { nameRuns } from './run-names.ts';

const run = (id: string, number: number) => ({ id, number, team_name: 'shop' });
const member = (run_id: string | null, labels: Record<string, string> = {}) => ({ run_id, labels });

test('runs have the current name of their team', () => {
  const agents = [member('run_2', { team: 'old-name', run: '2' }), member(null)];
  expect([...nameRuns([run('run_2', 2)], agents)]).toEqual([['run_2', 'shop #2']]);
});

test('runs that are too old to be listed are named by the labels of their agents', () => {
  const agents = [member('run_1', { team: 'shop', run: '1' }), member('run_0')];
  const names = nameRuns([run('run_2', 2)], agents);
  expect(names.get('run_1')).toBe('shop #1');
  expect(names.get('run_0')).toBe('Run');
});
