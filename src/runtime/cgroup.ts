/**
 * One cgroup (v2) for each session where the system delegates: a tree that cannot be left by forking, so that its end
 * can be proven. Where none can be made, sessions live without.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { hasProc } from '../base/proc.ts';

const PREFIX = 'svc-';

/** Folder in which sessions can have their own cgroups, or null. */
export async function findCgroupParent(): Promise<string | null> {
  if (!hasProc) return null;
  try {
    const own = /^0::(\/.*)$/m.exec(await readFile('/proc/self/cgroup', 'utf8'))?.[1];
    const mounts = await readFile('/proc/self/mountinfo', 'utf8');
    const mount = /^\S+ \S+ \S+ (\S+) (\S+) .* - cgroup2 /m.exec(mounts);
    if (!own || !mount?.[1] || !mount[2]) return null;
    const root = mount[1];
    const below = root !== '/' && own.startsWith(root) ? own.slice(root.length) : own;
    const parent = join(mount[2], below);
    const probe = join(parent, `${PREFIX}probe-${randomBytes(6).toString('hex')}`);
    await mkdir(probe);
    await rmdir(probe);
    return parent;
  } catch {
    return null;
  }
}

export async function makeCgroup(parent: string | null, session_id: string): Promise<string | null> {
  if (!parent) return null;
  const folder = join(parent, PREFIX + session_id);
  try {
    await mkdir(folder);
    return folder;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EEXIST' ? folder : null;
  }
}

/** A recorded folder is believed only when it has the form that `makeCgroup` gives. */
export function isCgroupOf(folder: string, session_id: string): boolean {
  return (
    folder.startsWith('/sys/fs/cgroup/') &&
    folder.endsWith(`/${PREFIX}${session_id}`) &&
    !folder.includes('/../')
  );
}

/** False without a cgroup, too: `true` means that somebody lives there. Null: not known. */
export async function isPopulated(folder: string | null): Promise<boolean | null> {
  if (!folder) return null;
  try {
    return /^populated 1$/m.test(await readFile(join(folder, 'cgroup.events'), 'latin1'));
  } catch {
    return null;
  }
}

/** With what the agent made inside; stays while somebody lives there. */
export async function removeCgroup(folder: string): Promise<void> {
  try {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      if (entry.isDirectory()) await removeCgroup(join(folder, entry.name));
    }
    await rmdir(folder);
  } catch {
    // In use, or gone.
  }
}
