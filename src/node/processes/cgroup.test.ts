import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { hasProc } from '../../base/proc.ts';
import { findCgroupParent, prepareMove } from './cgroup.ts';

test.runIf(hasProc)('preparing a move leaves this process in its cgroup', async () => {
  const before = readFileSync('/proc/self/cgroup', 'utf8');
  const parent = await findCgroupParent();
  if (parent) prepareMove(parent);
  prepareMove('/sys/fs/cgroup/of-another-service');
  await wait(50);
  expect(readFileSync('/proc/self/cgroup', 'utf8')).toBe(before);
});
