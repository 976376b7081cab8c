import { mkdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openTestNode, sharedLauncher } from '../../testing/local-node.ts';
import { launchOf } from '../../testing/node-suite.ts';
import type { Sandbox } from '../confinement/sandbox.ts';

test('a start releases the folders of its sandbox if the system call filter cannot be stored', async () => {
  const data_dir = await mkdtemp(join(tmpdir(), 'svc-start-'));
  onTestFinished(() => rm(data_dir, { recursive: true, maxRetries: 5 }));
  const launch = launchOf(data_dir, ['/bin/sh', '-c', 'true']);
  const release = vi.fn(async () => {});
  const sandbox = {
    check: async () => {},
    agent: async () => {
      // The filter cannot be written over a folder.
      mkdirSync(join(data_dir, 'sessions', launch.session_id, 'filter'));
      return { argv: [], places: [], ids: [], masks: [], entries: [], pid_namespace: false, release };
    },
  } as unknown as Sandbox;
  const node = await openTestNode(data_dir, { launcher: sharedLauncher, sandbox });
  try {
    expect((await node.start(launch)).end?.exit).toMatchObject({ reason: 'spawn_failed' });
    expect(release).toHaveBeenCalledTimes(1);
  } finally {
    await node.close();
  }
});
