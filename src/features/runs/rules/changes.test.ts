import { expect, test } from 'vitest';
import { agentRecord } from '../../../testing/agent-record.ts';
import { listMemberChanges } from './changes.ts';

const run = { id: 'run_1', spec: { members: [{ member_id: 'ui' }, { member_id: 'api' }] } };
const agent = (
  id: string,
  member_id: string,
  diff: { files: number; added: number; removed: number } | null,
  more: Partial<Parameters<typeof agentRecord>[0]> = {},
) =>
  agentRecord({
    ...{ id, member_id, run_id: 'run_1', worktree_mode: 'create_worktree' },
    summary: { now: null, plan: null, usage: null, diff },
    ...more,
  });
const size = { files: 2, added: 12, removed: 3 };

test('lists members with changes in their worktrees, in the order of the members', () => {
  const agents = [
    agent('agt_1', 'api', size),
    agent('agt_2', 'ui', { ...size, files: 1 }),
    agent('agt_3', 'ui', size, { run_id: 'run_2' }),
  ];
  expect(listMemberChanges(run, agents)).toEqual([
    { member_id: 'ui', agent_id: 'agt_2', ...size, files: 1 },
    { member_id: 'api', agent_id: 'agt_1', ...size },
  ]);
});

test('leaves out members without changes, and those that work in an existing folder', () => {
  const none = { files: 0, added: 0, removed: 0 };
  const shared = agent('agt_2', 'api', size, { worktree_mode: 'use_existing' });
  expect(listMemberChanges(run, [agent('agt_1', 'ui', none), shared])).toEqual([]);
});

test('of several agents in one worktree, the one that was measured and worked last counts', () => {
  const at = (minute: number) => ({ last_event_at: `2026-01-01T00:0${minute}:00.000Z` });
  const agents = [
    agent('agt_1', 'ui', { ...size, added: 1 }, at(1)),
    agent('agt_2', 'ui', { ...size, added: 3 }, at(3)),
    agent('agt_3', 'ui', { ...size, added: 2 }, at(2)),
    agent('agt_4', 'ui', null, at(4)),
  ];
  expect(listMemberChanges(run, agents)).toMatchObject([{ agent_id: 'agt_2', added: 3 }]);
  // Reverted in the meantime.
  const reverted = agent('agt_5', 'ui', { files: 0, added: 0, removed: 0 }, at(5));
  expect(listMemberChanges(run, [...agents, reverted])).toEqual([]);
});
