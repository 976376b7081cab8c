import { readdirSync } from 'node:fs';
import { open, readlink } from 'node:fs/promises';
import { expect, test, vi } from 'vitest';
import { hasProc } from '../../base/proc.ts';
import { holdFolder } from './held-folder.ts';

/** The open descriptors of the root folder. */
async function openRoots(): Promise<number> {
  const links = readdirSync('/proc/self/fd').map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => null));
  return (await Promise.all(links)).filter((link) => link === '/').length;
}

test.runIf(hasProc)('closes a folder that cannot be examined', async () => {
  const any = await open('/');
  const stat = vi.spyOn(Object.getPrototypeOf(any) as typeof any, 'stat');
  await any.close();
  const before = await openRoots();
  // As on a file system that goes away after the folder was opened.
  stat.mockRejectedValueOnce(new Error('stale file handle'));
  await expect(holdFolder('/tmp')).rejects.toThrow('stale file handle');
  expect(await openRoots()).toBe(before);
  stat.mockRestore();
});
