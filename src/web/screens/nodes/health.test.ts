import { expect, test } from 'vitest';
import {
  type Check,
  failureText,
  getFix,
  type HealthReport,
  listSteps,
  nodeFieldFor,
  unrecoveredText,
} from './health.ts';

const report = (checks: Check[]): HealthReport => ({
  ...{ node_id: 'gpu-1', status: 'unreachable', latency_ms: null, version: null, uptime_seconds: null },
  ...{ agents: null, clock_skew_ms: null, disk: null, checks },
});
const failed = (name: Check['name'], error: string): Check => ({ name, ok: false, ms: 1, error });
const node = { grpc_target: 'https://gpu.lan:8081', tls_server_name: null };

test('shows steps that the test did not reach, and omits the root step if no root is registered', () => {
  const checks = [
    { name: 'dns' as const, ok: true, ms: 1 },
    failed('tcp', 'failed to connect to remote node'),
  ];
  const steps = listSteps(report(checks), { default_worktree_root: null });
  expect(steps.map(({ title, check }) => [title, check?.ok])).toEqual([
    ['DNS', true],
    ['TCP', false],
    ['TLS', undefined],
    ['Auth', undefined],
    ['Version', undefined],
  ]);
  expect(listSteps(report([]), { default_worktree_root: '/srv' })).toHaveLength(6);
});

test('the list names the step that failed, and what it tried', () => {
  const general = 'failed to connect to remote node';
  const texts = [
    ['dns', general, 'DNS: cannot resolve gpu.lan'],
    ['tcp', general, 'TCP: nothing answers on gpu.lan:8081'],
    ['tls', general, 'TLS: no node answers on gpu.lan:8081'],
    ['tls', 'certificate verify failed', 'TLS: certificate verify failed'],
    ['auth', general, `Auth: ${general}`],
    ['worktree_root', 'not allowed', 'Worktree root: not allowed'],
  ] as const;
  for (const [name, error, text] of texts)
    expect(failureText(report([failed(name, error)]), node)).toBe(text);
  expect(failureText(report([{ name: 'dns', ok: true, ms: 1 }]), node)).toBe(null);
});

test('an invalid certificate can be fixed by removing the TLS name, or by a join if none is set', () => {
  const check = failed('tls', 'certificate verify failed');
  expect(getFix(check, node)).toMatchObject({ kind: 'join' });
  expect(getFix(check, { ...node, tls_server_name: 'other.lan' })).toEqual({
    label: 'Use gpu.lan as the TLS server name',
    kind: 'change',
    changes: { tls_server_name: null },
  });
});

test('a node that reports another id can be registered with that id', () => {
  const check = failed('tls', 'node id mismatch: registered gpu-1, node says gpu-2');
  expect(getFix(check, node)).toMatchObject({ kind: 'register', id: 'gpu-2' });
});

test('an error that cannot be fixed here offers no action', () => {
  expect(getFix(failed('auth', 'unauthorized'), node)).toBe(null);
  expect(getFix(failed('version', 'version skew'), node)).toBe(null);
  expect(getFix(failed('tcp', 'failed to connect to remote node'), node)).toBe(null);
});

test('an error of the server is shown at the field that it is about', () => {
  const places = [
    ['agent node id is reserved', 'id'],
    ['agent node id or name already exists', 'id'],
    ['id must be 1 to 64 characters from a-z', 'id'],
    ['grpc_target must be https://<host>:<port>', 'grpc_target'],
    ['tls_server_name must be a host name', 'tls_server_name'],
    ['default_worktree_root must be an absolute path', 'default_worktree_root'],
    ['name is required', 'name'],
    ['internal grpc client not available', 'form'],
  ];
  for (const [outcome, field] of places) expect(nodeFieldFor(outcome!, true)).toBe(field);
  expect(nodeFieldFor('agent node id or name already exists', false)).toBe('name');
});

test('says how many sessions were not recovered', () => {
  expect([1, 12].map(unrecoveredText)).toEqual([
    '1 unknown session not recovered',
    '12 unknown sessions not recovered',
  ]);
});
