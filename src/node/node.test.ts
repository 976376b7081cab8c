import { accessSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { MIB } from '../base/limits.ts';
import { localNodeOpener } from '../testing/local-node.ts';
import { nodeSuite } from '../testing/node-suite.ts';
import { findCgroupParent } from './processes/cgroup.ts';

/** Bash as `sh`, as on several systems; the usual shell if there is no bash. */
const folder = mkdtempSync(join(tmpdir(), 'svc-sh-'));
const sh = join(folder, 'sh');
const bash = ['/bin/bash', '/usr/bin/bash', '/bin/sh'].find((path) => {
  try {
    accessSync(path);
    return true;
  } catch {
    return false;
  }
});
symlinkSync(bash ?? '/bin/sh', sh);
afterAll(() => rmSync(folder, { recursive: true }));

const delegated = (await findCgroupParent()) !== null;
nodeSuite('local node', { open: localNodeOpener(), cleanup: delegated ? 'proven' : 'swept' });
nodeSuite('local node without cgroups and watches, with bash as its shell and careful pumps', {
  open: localNodeOpener({ cgroup: false, watches: false, careful_pumps: true, tools: { sh } }),
  cleanup: 'swept',
  // A careful pump starts several processes for each 64 KiB.
  large_bytes: 2 * MIB,
});
