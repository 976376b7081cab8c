/** What earlier service processes and sessions left behind. */
import { access, mkdir, mkdtemp, rm, rmdir, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, onTestFinished, test } from 'vitest';
import { newId } from '../base/ids.ts';
import { openTestNode, sharedLauncher } from '../testing/local-node.ts';
import { until } from '../testing/node-suite.ts';
import { findCgroupParent } from './processes/cgroup.ts';

const cgroups = await findCgroupParent();
let data: string;

beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), 'svc-leftovers-'));
  // The guard outlives the node and may still write its file.
  onTestFinished(() => rm(data, { recursive: true, force: true, maxRetries: 5 }));
});

async function open() {
  const node = await openTestNode(data, { launcher: sharedLauncher, helper_check_ms: 50, sweep_ms: 50 });
  onTestFinished(() => node.close());
  return node;
}

test.runIf(cgroups)('a node that starts removes the cgroup of a forgotten session', async () => {
  const folder = join(cgroups!, `svc-${newId('ses')}`);
  await mkdir(folder);
  onTestFinished(() => rmdir(folder).catch(() => {}));
  const hour_ago = new Date(Date.now() - 3_600_000);
  await utimes(folder, hour_ago, hour_ago);
  await open();
  const isGone = () =>
    access(folder).then(
      () => false,
      () => true,
    );
  await until(isGone);
});
