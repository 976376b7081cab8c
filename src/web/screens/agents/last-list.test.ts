import { afterEach, expect, test } from 'vitest';
import { agentRecord } from '../../../testing/agent-record.ts';
import { listedAgents, neighborOf, rememberList } from './last-list.ts';

afterEach(() => rememberList({}));

const agent = (name: string, worktree_repo: string, created_at: string) =>
  agentRecord({ id: `agt_${name}`, name, worktree_repo, created_at, started_at: null });
const agents = [
  agent('fix', '/code/shop', '2026-01-04T00:00:00Z'),
  agent('docs', '/code/api', '2026-01-03T00:00:00Z'),
  agent('fixture', '/code/shop', '2026-01-02T00:00:00Z'),
  agent('tests', '/code/api', '2026-01-01T00:00:00Z'),
];
const listed = () => listedAgents(agents, [], new Map());
const names = () => listed().map(({ name }) => name);

test('follows the groups and the filter of the list that was shown last', () => {
  expect(names()).toEqual(['fix', 'fixture', 'docs', 'tests']);
  rememberList({ group: 'none' });
  expect(names()).toEqual(['fix', 'docs', 'fixture', 'tests']);
  rememberList({ group: 'none', q: 'fix' });
  expect(names()).toEqual(['fix', 'fixture']);
});

test('steps to the next and the previous row, and no further than the list', () => {
  const nameOf = (id: string, step: 1 | -1) => neighborOf(id, step, listed())?.name;
  expect([nameOf('agt_fix', 1), nameOf('agt_docs', -1)]).toEqual(['fixture', 'fixture']);
  expect([nameOf('agt_fix', -1), nameOf('agt_tests', 1)]).toEqual([undefined, undefined]);
  // An agent that the filter no longer shows.
  rememberList({ q: 'fix' });
  expect([nameOf('agt_docs', 1), nameOf('agt_docs', -1)]).toEqual(['fix', 'fixture']);
});
