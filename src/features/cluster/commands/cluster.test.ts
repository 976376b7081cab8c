import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { run } from '../../../testing/cli.ts';
import { openFakeHttp, ROOT_TOKEN } from '../../../testing/http.ts';
import type { NodeRecord } from '../../nodes/rules.ts';
import type { PlaneRecord } from '../rules.ts';

test('svc cluster shows the planes, their links and their lag on a terminal of 80 columns', async () => {
  const home = mkdtempSync(join(tmpdir(), 'svc-cli-cluster-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const plane = { version: '0.1.0', started_at: '2026-11-29T22:00:00.000Z' };
  const planes: PlaneRecord[] = [
    {
      ...{ ...plane, id: 'pln_a', name: 'plane-a', state: 'active', address: '127.0.0.1:8090' },
      last_seen_at: '2026-11-30T01:00:30.000Z',
    },
    {
      ...{ ...plane, id: 'pln_b', name: 'plane-b', state: 'silent', address: null },
      last_seen_at: '2026-11-30T01:00:00.000Z',
    },
  ];
  const time = plane.started_at;
  const node: NodeRecord = {
    ...{ id: 'main', name: 'n', status: 'connected', version: null, agents: 0 },
    ...{ grpc_target: 'https://n:1', tls_server_name: null, last_seen_at: time },
    ...{ default_worktree_root: null, worktree_root_problem: null, unrecovered_sessions: 0 },
    ...{ created_at: time, updated_at: time },
  };
  const server = await openFakeHttp({
    listPlanes: () => planes,
    listAgentNodes: () => ({
      items: [node, { ...node, id: 'box' }, { ...node, id: 'away', status: 'unreachable' as const }],
    }),
  });
  onTestFinished(() => server.drain());
  const env = { SVC_URL: server.url, SVC_TOKEN: ROOT_TOKEN, NO_COLOR: '1' };
  const shown = await run(['cluster'], { home, env, tty: true, columns: 80 });
  expect(shown.stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
    ['NAME', 'STATE', 'VERSION', 'ADDRESS', 'STARTED', 'LINKS', 'LAG'],
    ['plane-a', 'active', '0.1.0', '127.0.0.1:8090', '3h ago', '1/2', '0s'],
    ['plane-b', 'silent', '0.1.0', '-', '3h ago', '-', '30s'],
    [''],
  ]);
});
