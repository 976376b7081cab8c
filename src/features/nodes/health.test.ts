import { expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import type { NodeHealth } from '../../core/node.ts';
import { nodeIdMismatch, problems } from '../../core/problem.ts';
import { type HealthSteps, testNode } from './health.ts';

const health: NodeHealth = {
  version: '1.2.3',
  uptime_seconds: 5,
  sessions_live: 2,
  disk: { path: '/d', free_bytes: 10, total_bytes: 20, starts_allowed: true },
};

function fine(more: Partial<HealthSteps> = {}): HealthSteps & { closed: number } {
  const steps = {
    closed: 0,
    dns: async () => {},
    tcp: async () => {},
    tls: async () => {},
    auth: async () => health,
    version: async () => {},
    worktree_root: async () => {},
    clock_skew_ms: () => 12.4,
    close: () => {
      steps.closed++;
    },
    ...more,
  };
  return steps;
}

const refuse = (make: () => Error) => async () => {
  throw make();
};
const test_ = (steps: HealthSteps) => testNode('box', steps, silentLog);

test('all steps in order: ok, with the node’s report', async () => {
  const steps = fine();
  const report = await test_(steps);
  expect(report).toMatchObject({
    node_id: 'box',
    status: 'ok',
    version: '1.2.3',
    uptime_seconds: 5,
    agents: 2,
    clock_skew_ms: 12,
    disk: health.disk,
  });
  expect(report.checks.map(({ name, ok }) => `${name} ${ok}`)).toEqual([
    'dns true',
    'tcp true',
    'tls true',
    'auth true',
    'version true',
    'worktree_root true',
  ]);
  expect(report.latency_ms).toBe(report.checks[3]!.ms);
  expect(steps.closed).toBe(1);
});

test('skips the root step if the registry has no root', async () => {
  const report = await test_(fine({ worktree_root: null }));
  expect(report.checks.map(({ name }) => name)).not.toContain('worktree_root');
  expect(report.status).toBe('ok');
});

test.each([
  ['dns', problems.nodeUnreachable, 'failed to connect to remote node', 'spelling'],
  ['dns', problems.targetRefused, 'grpc_target address is not allowed', 'never connects to'],
  ['tcp', problems.nodeUnreachable, 'failed to connect to remote node', 'firewall'],
  ['tls', problems.certificateVerifyFailed, 'certificate verify failed', 'tls_server_name'],
  [
    'tls',
    () => nodeIdMismatch('box', 'b'),
    'node id mismatch: registered box, node says b',
    'server.node_id',
  ],
  ['auth', problems.nodeUnauthorized, 'unauthorized', 'shared_secret'],
  ['version', () => new Error('secret detail'), 'failed to connect to remote node', 'upgrade'],
] as const)(
  'a failing %s step ends the test with its message and a hint',
  async (name, make, error, hint) => {
    const steps = fine({ [name]: refuse(make) });
    const report = await test_(steps);
    expect(report.status).toBe('unreachable');
    expect(report.checks.at(-1)).toMatchObject({ name, ok: false, error });
    expect(report.checks.at(-1)!.hint).toContain(hint);
    expect(report.checks.slice(0, -1).every(({ ok }) => ok)).toBe(true);
    expect(report.latency_ms === null).toBe(name !== 'version');
    expect(steps.closed).toBe(1);
  },
);

test('unauthorized because of clocks: the report shows the difference', async () => {
  const behind = await test_(
    fine({ auth: refuse(problems.nodeUnauthorized), clock_skew_ms: () => -3_600_000 }),
  );
  expect(behind).toMatchObject({ status: 'unreachable', clock_skew_ms: -3_600_000 });
  expect(behind.checks.at(-1)!.hint).toContain("3600 s behind the control plane's");
});

test.each([
  ['a folder that cannot be used', { worktree_root: refuse(problems.workdirNotSafe) }],
  ['clocks apart', { clock_skew_ms: () => 30_001 }],
  [
    'a disk too full for starts',
    { auth: async () => ({ ...health, disk: { ...health.disk, starts_allowed: false } }) },
  ],
])('%s: degraded', async (_what, more) => {
  expect((await test_(fine(more))).status).toBe('degraded');
});
