/**
 * Where unit tests keep their temporary files: in memory if this machine has room for them there, because creating, syncing and
 * deleting many small files on a disk takes a quarter of the processor time of a test with git. These tests end processes, not
 * machines, so none depends on what a disk keeps. Null if there is no such folder. Tests of the whole program use the system's
 * temporary folder, because sandboxes hide this one.
 */
import { readFileSync, statfsSync } from 'node:fs';

const MEMORY = '/dev/shm';
/** Several times what a run of all tests needs at once. */
const FREE_BYTES = 4 * 2 ** 30;

export function memoryFolder(): string | null {
  try {
    const mount = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .map((line) => line.split(' '))
      .findLast(([, path]) => path === MEMORY);
    if (mount?.[2] !== 'tmpfs' || mount[3]?.split(',').includes('noexec')) return null;
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= FREE_BYTES ? MEMORY : null;
  } catch {
    return null;
  }
}
