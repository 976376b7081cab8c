/**
 * The data directory. It is created on first use, and other users cannot read it. It is rejected if it belongs to another
 * user, or if the database cannot rely on its file system (network mounts).
 */
import { chmod, mkdir, readdir, readFile, realpath, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../base/log.ts';
import { invalid } from '../core/problem.ts';

/** The database file, below the data directory. */
export const DATABASE_FILE = 'svc.db';

/** Types of file systems whose locks and fsync work over a network. */
const NETWORK =
  /^(nfs\d?|cifs|smbfs|smb3|9p|afs|ceph|coda|ncpfs|lustre|glusterfs|beegfs|afpfs|webdav|fuse\.(sshfs|rclone|s3fs|gcsfuse|davfs2?|glusterfs|ceph|ceph-fuse|nfs.*|smbnetfs|curlftpfs))$/;

/** Prepares the directory and returns its real path. */
export async function prepareDataDir(path: string): Promise<string> {
  await mkdir(path, { recursive: true, mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    throw invalid(`data_dir ${path} cannot be created: ${error.code ?? error.message}`, 'invalid_config');
  });
  const real = await realpath(path);
  const found = await stat(real);
  if (!found.isDirectory()) throw invalid(`data_dir ${real} is not a directory`, 'invalid_config');
  const uid = process.getuid?.();
  if (uid !== undefined && found.uid !== uid) {
    throw invalid(`data_dir ${real} belongs to user id ${found.uid}, not to ${uid}`, 'invalid_config');
  }
  if ((found.mode & 0o077) !== 0) await chmod(real, 0o700);
  const type = await fileSystemOf(real);
  if (type !== null && isNetworkFileSystem(type)) {
    throw invalid(
      `data_dir ${real} is on a network file system (${type}), whose locks cannot be trusted: use a local disk`,
      'invalid_config',
    );
  }
  return real;
}

/** Folders in the data directory for the time of a command. `mkdtemp` adds six characters to these prefixes. */
export const STAGING = { backup: '.svc-backup-', restore: '.svc-restore-' } as const;

/** Matches the names of such folders. People name theirs `backup-before` or `restore-latest`, so the prefix has `svc` in it. */
export function isStaging(kind: keyof typeof STAGING, name: string): boolean {
  const prefix = STAGING[kind];
  return name.startsWith(prefix) && /^[A-Za-z0-9]{6}$/.test(name.slice(prefix.length));
}

/**
 * Deletes what killed restores have unpacked, and logs what cannot be deleted. Only for the holder of the lock, which a restore
 * in progress also holds.
 */
export async function removeAbandonedRestores(data_dir: string, log: Logger): Promise<void> {
  for (const entry of await readdir(data_dir, { withFileTypes: true })) {
    if (!entry.isDirectory() || !isStaging('restore', entry.name)) continue;
    const path = join(data_dir, entry.name);
    try {
      await rm(path, { recursive: true, force: true });
      log.info({ path }, 'deleted what an interrupted restore left');
    } catch (err) {
      log.warn({ err, path }, 'what an interrupted restore left cannot be deleted: delete it yourself');
    }
  }
}

export function isNetworkFileSystem(type: string): boolean {
  return NETWORK.test(type);
}

/** Type of the file system that contains a path; null if there is no mount table to read (macOS). */
export async function fileSystemOf(path: string): Promise<string | null> {
  const table = await readFile('/proc/self/mountinfo', 'utf8').catch(() => null);
  return table === null ? null : mountedType(table, path);
}

/** The type of the innermost mount above `path`. If one path has several mounts, the last one hides the others. */
export function mountedType(mountinfo: string, path: string): string | null {
  let best: { point: string; type: string } | null = null;
  for (const line of mountinfo.split('\n')) {
    const [left, right] = line.split(' - ');
    const point = left
      ?.split(' ')[4]
      ?.replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
    const type = right?.split(' ')[0];
    if (!point || !type) continue;
    const covers = point === '/' || path === point || path.startsWith(`${point}/`);
    if (covers && point.length >= (best?.point.length ?? 0)) best = { point, type };
  }
  return best?.type ?? null;
}
