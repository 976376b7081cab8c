import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { hasProc } from '../../base/proc.ts';
import { sweepTrees, type TreeRequest } from './process-tree.ts';

const request = (session_id: string): TreeRequest => ({
  ...{ session_id, pipes: null, cgroup: null, main: null, init: null, wrapper: null },
  ...{ helpers: [], known: [], exit_uptime_s: null, signal: null, terminated: [] },
});

test.runIf(hasProc)('finds a process that got the session id with its last exec', async () => {
  const script = 'echo; read line; SVC_SESSION_ID=ses_second exec /bin/sh -c "echo; read line"';
  const child = spawn('/bin/sh', ['-c', script], {
    env: { SVC_SESSION_ID: 'ses_first' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const pids = () =>
    sweepTrees([request('ses_first'), request('ses_second')]).map(({ members }) =>
      members.map(({ pid }) => pid),
    );
  try {
    await once(child.stdout, 'data');
    expect(pids()).toEqual([[child.pid], []]);
    expect(pids()).toEqual([[child.pid], []]);
    child.stdin.write('\n');
    await once(child.stdout, 'data');
    expect(pids()).toEqual([[], [child.pid]]);
  } finally {
    child.kill('SIGKILL');
  }
});
