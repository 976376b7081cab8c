import { systemClock } from '../base/clock.ts';
import { silentLog } from '../base/log.ts';
import type { Folders } from '../domain/node.ts';
import { nodeSuite } from '../testing/node-suite.ts';
import { findCgroupParent } from './cgroup.ts';
import { type LocalNode, type LocalNodeOptions, openLocalNode } from './node.ts';

/** Sessions touch no folder operation. */
const folders = {} as Folders;

function opener(more: Partial<LocalNodeOptions>) {
  return async (data_dir: string) => {
    const open = (): Promise<LocalNode> =>
      openLocalNode({
        id: 'main',
        data_dir,
        plane_id: 'pln_test',
        log: silentLog,
        clock: systemClock,
        folders,
        disk: { no_start_bytes: 0, pause_bytes: 0 },
        ...more,
      });
    let node = await open();
    return {
      node,
      reopen: async () => {
        await node.close();
        node = await open();
        return node;
      },
      close: () => node.close(),
    };
  };
}

const delegated = (await findCgroupParent()) !== null;
if (delegated) nodeSuite('local node with cgroups', { open: opener({}), cleanup: 'proven' });
nodeSuite('local node without cgroups and watches', {
  open: opener({ cgroup: false, watches: false }),
  cleanup: 'swept',
});
