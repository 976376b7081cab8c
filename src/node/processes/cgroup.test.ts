import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { hasProc } from '../../base/proc.ts';
import { limits } from '../limits.ts';
import { findCgroupParent, prepareMove, removeLeftoverCgroups } from './cgroup.ts';

test.runIf(hasProc)('preparing a move leaves this process in its cgroup', async () => {
  const before = readFileSync('/proc/self/cgroup', 'utf8');
  const parent = await findCgroupParent();
  if (parent) prepareMove(parent);
  prepareMove('/sys/fs/cgroup/of-another-service');
  await wait(50);
  expect(readFileSync('/proc/self/cgroup', 'utf8')).toBe(before);
});

test('removes old cgroups of unknown sessions that have no processes, with those inside them', async () => {
  const parent = await mkdtemp(join(tmpdir(), 'svc-cgroups-'));
  onTestFinished(() => rm(parent, { recursive: true }));
  const make = async (name: string, age_ms: number, populated = false) => {
    const folder = join(parent, name);
    await mkdir(join(folder, 'inner'), { recursive: true });
    if (populated) await writeFile(join(folder, 'cgroup.events'), 'populated 1\n');
    const time = new Date(Date.now() - age_ms);
    await utimes(folder, time, time);
  };
  const old_ms = limits.leftover_cgroup_ms + 60_000;
  await make('svc-ses_left', old_ms);
  await make('svc-ses_new', limits.leftover_cgroup_ms - 60_000);
  await make('svc-ses_known', old_ms);
  await make('svc-ses_used', old_ms, true);
  await make('svc-worker-1-2-ab', old_ms);
  await make('other', old_ms);
  await removeLeftoverCgroups(parent, (id) => id === 'ses_known');
  expect((await readdir(parent)).sort()).toEqual([
    'other',
    'svc-ses_known',
    'svc-ses_new',
    'svc-ses_used',
    'svc-worker-1-2-ab',
  ]);
  expect(await readdir(join(parent, 'svc-ses_used'))).toContain('inner');
  await removeLeftoverCgroups(null, () => false);
  await removeLeftoverCgroups(join(parent, 'missing'), () => false);
});
