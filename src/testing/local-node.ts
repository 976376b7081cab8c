/**
 * Local nodes for tests. The free disk space does not matter, and the guard ends soon after the last session. The nodes of a
 * suite share a launcher, as a plane and its node do, because starting one for each test takes more than half of the processor
 * time of a suite.
 */
import { systemClock } from '../base/clock.ts';
import { silentLog } from '../base/log.ts';
import type { Folders } from '../core/node.ts';
import { type LocalNode, type LocalNodeOptions, openLocalNode } from '../node/node.ts';
import { Launcher } from '../node/processes/launcher-client.ts';
import type { NodeUnderTest } from './node-suite.ts';

/** The only method that sessions need. It allows every workdir. */
const folders = {
  resolve: async (path: string) => ({ path, below_worktree_root: false, claimed_by: null }),
} as Folders;

/** Ends when it is idle, or with the process of the tests. */
export const sharedLauncher = new Launcher();

export function openTestNode(data_dir: string, more: Partial<LocalNodeOptions> = {}): Promise<LocalNode> {
  return openLocalNode({
    id: 'main',
    data_dir,
    log: silentLog,
    clock: systemClock,
    folders,
    disk: { no_start_bytes: 0, pause_bytes: 0, guard_ample_bytes: 0, guard_ample_s: 1 },
    ...more,
  });
}

export function localNodeOpener(
  options: Partial<LocalNodeOptions> = {},
): (data_dir: string) => Promise<NodeUnderTest> {
  const more = { launcher: sharedLauncher, ...options };
  return async (data_dir) => {
    let node = await openTestNode(data_dir, more);
    return {
      node,
      reopen: async () => {
        await node.close();
        node = await openTestNode(data_dir, more);
        return node;
      },
      close: () => node.close(),
    };
  };
}
