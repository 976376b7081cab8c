/**
 * One cgroup (v2) for each session and each folder worker, if the system delegates one to the service. Processes cannot
 * leave a cgroup by forking, so the service can prove that all of them have ended. Without delegation, processes run
 * without their own cgroup.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFile, writeFileSync } from 'node:fs';
import { mkdir, readdir, rmdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '../../base/async.ts';
import { hasProc, isAlive, readCgroup, readStat } from '../../base/proc.ts';
import { limits } from '../limits.ts';

const PREFIX = 'svc-';
/** The name for a session. */
const SESSION_NAME = /^svc-(ses_.+)$/;
/** The name for a folder worker: pid and start time of its service, and a random part. */
const WORKER_NAME = /^svc-worker-(\d+)-(\d+)-[0-9a-f]+$/;

/** The folder in which this process may create cgroups; null if none exists. */
export async function findCgroupParent(): Promise<string | null> {
  if (!hasProc) return null;
  try {
    const parent = ownCgroup();
    if (parent === null) return null;
    const probe = join(parent, `${PREFIX}probe-${randomBytes(6).toString('hex')}`);
    await mkdir(probe);
    await rmdir(probe);
    return parent;
  } catch {
    return null;
  }
}

/** The folder of this process's cgroup, or null. Throws errno errors. */
function ownCgroup(): string | null {
  const own = readCgroup(process.pid);
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8');
  const mount = /^\S+ \S+ \S+ (\S+) (\S+) .* - cgroup2 /m.exec(mounts);
  if (!own || !mount?.[1] || !mount[2]) return null;
  const root = mount[1];
  const below = root !== '/' && own.startsWith(root) ? own.slice(root.length) : own;
  return join(mount[2], below);
}

let preparing = false;

/**
 * Makes a move of another process into a cgroup faster that follows within a moment. For the first move after a pause,
 * the kernel waits for an RCU grace period, about 10 ms; later ones share that wait. So this moves the service to the
 * cgroup where it already is, and the wait passes while the other process starts: its move takes 4 ms instead of 15 if
 * it follows after 8. `parent`: from `findCgroupParent`. Never throws; does nothing if the service was moved since.
 */
export function prepareMove(parent: string): void {
  if (preparing) return;
  try {
    if (ownCgroup() !== parent) return;
  } catch {
    return;
  }
  preparing = true;
  writeFile(join(parent, 'cgroup.procs'), String(process.pid), () => {
    preparing = false;
  });
}

/** Creates a session's cgroup and returns its folder; null if it cannot be created. Idempotent. */
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

/** Creates a cgroup for a folder worker of this process and returns its folder; null if it cannot be created. */
export async function makeWorkerCgroup(parent: string | null): Promise<string | null> {
  const { pid } = process;
  const name = `worker-${pid}-${readStat(pid)?.start}-${randomBytes(6).toString('hex')}`;
  return makeCgroup(parent, name);
}

/** Kills what folder workers of earlier service processes left behind. */
export async function endWorkersOfOthers(parent: string | null): Promise<void> {
  if (!parent) return;
  for (const name of await readdir(parent)) {
    const [, pid, start] = WORKER_NAME.exec(name) ?? [];
    if (!pid || !start || isAlive({ pid: Number(pid), start })) continue;
    await endCgroup(join(parent, name));
  }
}

/**
 * Removes cgroups without processes whose sessions were forgotten, perhaps by an earlier service process. Other
 * installations may share the parent, so it leaves new ones, into which a session may just be starting. Never throws.
 */
export async function removeLeftoverCgroups(
  parent: string | null,
  isKnown: (session_id: string) => boolean,
): Promise<void> {
  if (!parent) return;
  for (const name of await readdir(parent).catch(() => [])) {
    const [, session_id] = SESSION_NAME.exec(name) ?? [];
    if (!session_id || isKnown(session_id)) continue;
    const folder = join(parent, name);
    const info = await stat(folder).catch(() => null);
    // The kernel may report a later time, but never an earlier one.
    const is_old = info !== null && Date.now() - info.mtimeMs > limits.leftover_cgroup_ms;
    if (is_old && !isPopulated(folder)) await removeCgroup(folder);
  }
}

/**
 * Kills all processes of a cgroup at once and removes it. Leaves the folder if they outlive `limits.kill_wait_ms`, or if no
 * descriptor becomes free in that time. Never throws.
 */
export async function endCgroup(folder: string): Promise<void> {
  const begun = performance.now();
  do {
    killCgroup(folder);
    await removeCgroup(folder);
    if (await isAbsent(folder)) return;
    await sleep(20);
  } while (performance.now() - begun < limits.kill_wait_ms);
}

/** Needs no descriptor, because none may be free. */
async function isAbsent(folder: string): Promise<boolean> {
  const error = await stat(folder).then(
    () => null,
    (thrown: NodeJS.ErrnoException) => thrown,
  );
  return error?.code === 'ENOENT';
}

/** Sends SIGKILL to all processes of a cgroup, however fast they fork. Does nothing before Linux 5.14. Never throws. */
export function killCgroup(folder: string): void {
  try {
    writeFileSync(join(folder, 'cgroup.kill'), '1');
  } catch {
    // The kernel does not support it, or the cgroup no longer exists.
  }
}

/**
 * The session whose cgroup contains a process, if the cgroup is below that of the calling process, which must be the service
 * or its launcher; otherwise null. Throws if the system is exhausted.
 */
export function sessionOfCgroup(pid: number): string | null {
  const [own, path] = [readCgroup(process.pid), readCgroup(pid)];
  const parent = own === '/' ? own : `${own}/`;
  if (own === null || !path?.startsWith(parent)) return null;
  return SESSION_NAME.exec(path.slice(parent.length).split('/', 1)[0] ?? '')?.[1] ?? null;
}

/** True if a recorded folder has the form that `makeCgroup` uses. The record is not trusted otherwise. */
export function isCgroupOf(folder: string, session_id: string): boolean {
  return (
    folder.startsWith('/sys/fs/cgroup/') &&
    folder.endsWith(`/${PREFIX}${session_id}`) &&
    !folder.includes('/../')
  );
}

/** True if the cgroup has processes; null if that is unknown, or if there is no cgroup. */
export function isPopulated(folder: string | null): boolean | null {
  if (!folder) return null;
  try {
    return /^populated 1$/m.test(readFileSync(join(folder, 'cgroup.events'), 'latin1'));
  } catch {
    return null;
  }
}

/**
 * Removes an empty cgroup and the cgroups that the agent created in it. A cgroup with processes stays. Never throws.
 * Asynchronous, because the kernel may be moving a process into some cgroup, and this waits for that for 10 ms or more.
 */
export async function removeCgroup(folder: string): Promise<void> {
  try {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      if (entry.isDirectory()) await removeCgroup(join(folder, entry.name));
    }
    await rmdir(folder);
  } catch {
    // It has processes, or no longer exists.
  }
}
