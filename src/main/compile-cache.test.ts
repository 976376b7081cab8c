import { chmod, mkdir, mkdtemp, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ownFolder } from './compile-cache.ts';

async function folder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'svc-cache-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

test('keeps compiled code in a folder that only this user can enter', async () => {
  const base = await folder();
  const dir = ownFolder({ XDG_CACHE_HOME: base });
  expect(dir).toBe(join(base, 'svc', 'compiled'));
  expect((await stat(dir!)).mode & 0o777).toBe(0o700);
  expect(ownFolder({ XDG_CACHE_HOME: base })).toBe(dir);
});

test('keeps no compiled code where others could have written', async () => {
  const base = await folder();
  await mkdir(join(base, 'svc'));
  await chmod(join(base, 'svc'), 0o777);
  expect(ownFolder({ XDG_CACHE_HOME: base })).toBeNull();

  const linked = await folder();
  await symlink(base, join(linked, 'svc'));
  expect(ownFolder({ XDG_CACHE_HOME: linked })).toBeNull();
  expect(ownFolder({ XDG_CACHE_HOME: '/proc/nowhere' })).toBeNull();
});
