import { expect, test } from 'vitest';
import { agentRecord } from '../../../testing/agent-record.ts';
import {
  compareAttention,
  counts,
  describeEnd,
  filterAgents,
  folderOf,
  getProgram,
  groupAgents,
  groupingOf,
  shortBranch,
  type Waits,
} from './order.ts';

const NO_WAITS: Waits = new Map();
const agent = (name: string, fields: Partial<ReturnType<typeof agentRecord>> = {}) =>
  agentRecord({ id: `agt_${name}`, name, ...fields });

test('agents that need a person come first, then failed ones, then idle ones, then working ones, then those of runs that wait for their next step', () => {
  const agents = [
    agent('done', { status: 'completed' }),
    agent('works', { status: 'running' }),
    agent('new', { status: 'created' }),
    agent('broke', { status: 'failed' }),
    agent('asks', { status: 'running', pending_reviews: 1, needs_you: 'permission' }),
    agent('idles', { status: 'running', activity: 'idle' }),
    agent('member', { status: 'running', activity: 'idle', run_id: 'run_1' }),
    agent('silent', { status: 'running', activity: 'quiet' }),
    agent('stopped', { status: 'cancelled' }),
  ];
  const archived = agent('old', { status: 'failed', archived_at: '2026-01-04T00:00:00Z' });
  expect(agents.sort(compareAttention(NO_WAITS)).map(({ name }) => name)).toEqual([
    'asks',
    'broke',
    'idles',
    'works',
    'silent',
    'member',
    'new',
    'done',
    'stopped',
  ]);
  const numbers = { all: 9, needs_you: 1, your_turn: 1, working: 2, failed: 1, archived: 1 };
  expect(counts([...agents, archived])).toEqual(numbers);
  expect(filterAgents([...agents, archived], {}, NO_WAITS)).not.toContain(archived);
  expect(filterAgents([...agents, archived], { show: 'archived' }, NO_WAITS)).toEqual([archived]);
  expect(filterAgents(agents, { show: 'working' }, NO_WAITS).map(({ name }) => name)).toEqual([
    'works',
    'silent',
  ]);
});

test('of the agents that need a person, the one that has waited longest comes first', () => {
  const asks = { status: 'running', needs_you: 'permission' } as const;
  const agents = [
    agent('unknown', { ...asks, started_at: '2026-01-04T00:00:00Z' }),
    agent('newest', { ...asks, started_at: '2026-01-03T00:00:00Z' }),
    agent('oldest', { ...asks, started_at: '2026-01-01T00:00:00Z' }),
    agent('middle', { ...asks, started_at: '2026-01-02T00:00:00Z' }),
    agent('works', { status: 'running', started_at: '2026-01-05T00:00:00Z' }),
  ];
  const waits = new Map([
    ['agt_middle', { since: '2026-01-05T10:00:00.000Z' }],
    ['agt_oldest', { since: '2026-01-05T12:00:00.000Z' }],
    ['agt_newest', { since: '2026-01-05T11:00:00.000Z' }],
  ]);
  const names = filterAgents(agents, {}, waits).map(({ name }) => name);
  expect(names).toEqual(['middle', 'newest', 'oldest', 'unknown', 'works']);
});

test('every word of the filter must occur in one of the fields', () => {
  const agents = [
    agent('api', { node_id: 'gpu-1', command: '/usr/bin/codex --x', argv: null }),
    agent('web', { node_id: 'gpu-1', status: 'running', worktree_branch: 'svc/web', command: 'a && b' }),
  ];
  const names = (wanted: Parameters<typeof filterAgents>[1]) =>
    filterAgents(agents, wanted, NO_WAITS).map(({ name }) => name);
  expect(names({ q: 'GPU codex' })).toEqual(['api']);
  expect(names({ q: 'gpu' })).toHaveLength(2);
  expect(names({ q: 'svc/web' })).toEqual(['web']);
  expect(names({ q: '&&' })).toEqual(['web']);
  expect(names({ show: 'working' })).toEqual(['web']);
  expect(names({ show: 'failed', q: 'gpu' })).toEqual([]);
});

test('groups keep the order of the agents, and agents without a value have a named group', () => {
  const agents = [
    agent('a', { worktree_repo: '/home/ana/code/shop', team_id: 'team_1' }),
    agent('b', { node_id: 'gpu-1' }),
    agent('c', { worktree_repo: '/home/ana/code/shop' }),
  ];
  const names = (by: Parameters<typeof groupAgents>[1]) =>
    groupAgents(agents, by, new Map([['team_1', 'Shop']])).map(
      (group) => `${group.name}: ${group.agents.map(({ name }) => name)}`,
    );
  expect(names('repo')).toEqual(['shop: a,c', 'Other folders: b']);
  expect(names('node')).toEqual(['main: a,c', 'gpu-1: b']);
  expect(names('team')).toEqual(['Shop: a', 'No team: b,c']);
  expect(names('none')).toEqual([': a,b,c']);
  expect(groupingOf(agents, undefined)).toBe('none');
  const another = agent('d', { worktree_repo: '/home/ana/code/billing' });
  expect(groupingOf([...agents, another], undefined)).toBe('repo');
  expect(groupingOf([...agents, another], 'none')).toBe('none');
});

test('agents that need the user are a group before the others, unless all of them do', () => {
  const asks = { status: 'running', needs_you: 'permission' } as const;
  const agents = [
    agent('done', { status: 'completed', worktree_repo: '/code/shop' }),
    agent('works', { status: 'running', worktree_repo: '/code/billing' }),
    agent('asks', { ...asks, worktree_repo: '/code/billing' }),
    agent('stuck', { ...asks, worktree_repo: '/code/shop' }),
    agent('other', { status: 'completed' }),
  ];
  const names = (shown: Parameters<typeof filterAgents>[1]) =>
    groupAgents(filterAgents(agents, shown, NO_WAITS), 'repo', new Map()).map(
      (group) => `${group.name}: ${group.agents.map(({ name }) => name)}`,
    );
  expect(names({})).toEqual([
    'Needs you: asks,stuck',
    'billing: works',
    'shop: done',
    'Other folders: other',
  ]);
  expect(names({ show: 'needs_you' })).toEqual(['billing: asks', 'shop: stuck']);
});

test('describes an agent’s program and its end in a few words', () => {
  expect(getProgram({ preset: 'claude', argv: null, command: 'x' })).toBe('claude');
  expect(getProgram({ preset: null, argv: ['/opt/bin/agent', 'run'], command: 'x' })).toBe('agent');
  expect(getProgram({ preset: null, argv: null, command: ' npm test' })).toBe('npm');
  for (const script of ['npm ci && npm test', 'echo a; echo b', 'cat a | sort', 'sleep 9 &\nnpm test']) {
    expect(getProgram({ preset: null, argv: null, command: script })).toBe('sh');
  }
  for (const one of [
    'git commit -m "a; b"',
    "git log --grep 'a && b'",
    'git status > log 2>&1',
    'git gc\n',
  ]) {
    expect(getProgram({ preset: null, argv: null, command: one })).toBe('git');
  }
  expect(getProgram({ preset: null, argv: null, command: 'n=0; while :; do :; done' })).toBe('sh');
  expect(getProgram({ preset: null, argv: null, command: 'for i in 1 2; do echo $i; done' })).toBe('sh');
  expect(describeEnd(agent('a', { exit_code: 137, reason: 'exit_code' }))).toBe(
    'Killed (137), often out of memory',
  );
  expect(describeEnd(agent('a', { exit_code: 3, reason: 'exit_code' }))).toBe('Exit code 3');
  expect(describeEnd(agent('a', { exit_code: 127, argv: ['/opt/gemini'], reason: 'exit_code' }))).toBe(
    'Command not found: gemini (127)',
  );
  expect(describeEnd(agent('a', { exit_code: 127, command: 'cd x && gemini', reason: 'exit_code' }))).toBe(
    'Command not found (127)',
  );
  expect(describeEnd(agent('a', { exit_signal: 'SIGKILL', reason: 'signal' }))).toBe(
    'Killed (SIGKILL), often out of memory',
  );
  expect(describeEnd(agent('a', { reason: 'host_restarted' }))).toBe('Its machine restarted');
});

test('an agent is placed by its repository or its folder, unless the folder is its own', () => {
  const places = [
    agent('a', { worktree_repo: '/code/shop', workdir: '/data/worktrees/a-agt_a' }),
    agent('b', { workdir: '/code/shop/docs' }),
    agent('c', { workdir: '/data/work/agt_c' }),
  ].map(folderOf);
  expect(places).toEqual(['/code/shop', '/code/shop/docs', null]);
});

test('only branches that svc named are shortened', () => {
  expect(shortBranch('svc/fix-checkout-agt_5ci7kf6supnj6fce')).toBe('fix-checkout');
  expect(shortBranch('svc/fix-checkout')).toBe('svc/fix-checkout');
  expect(shortBranch('fix-agt_1')).toBe('fix-agt_1');
});
