/**
 * Backup and restore of a whole data directory: a snapshot of the database and the log's segment files, in one tar
 * file (compressed if its name ends in `.gz` or `.tgz`). A backup may run while the plane runs. A restore takes the
 * plane's lock, deletes nothing, and moves the previous files aside. Session folders are not included, because they
 * belong to live processes.
 */
import { execFile } from 'node:child_process';
import { type Dirent, existsSync } from 'node:fs';
import {
  chmod,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { rfc3339 } from '../base/clock.ts';
import { silentLog } from '../base/log.ts';
import { Problem } from '../core/problem.ts';
import { systemTool } from '../node/processes/tools.ts';
import { copyDatabase, findDamage, isTooNew, segmentPaths, skipLogNumbers } from '../store/copy.ts';
import { DATABASE_FILE, isStaging, prepareDataDir, removeAbandonedRestores, STAGING } from './data-dir.ts';
import { limits } from './limits.ts';
import { lockDataDir } from './lock.ts';

const manifestSchema = z.object({
  format: z.literal(1),
  version: z.string(),
  created_at: z.string(),
  /** Segments that retention removed while the backup was running. */
  missing: z.array(z.string()),
});
const MANIFEST = 'svc-backup.json';
const execute = promisify(execFile);

/**
 * Takes tar, and the gzip that it starts, from the system's folders if possible, because agents may be able to write to
 * others.
 */
async function tar(args: string[], signal?: AbortSignal): Promise<void> {
  const PATH = `/usr/bin:/bin:/usr/sbin:/sbin:${process.env.PATH ?? ''}`;
  const running = execute(systemTool('tar'), args, { env: { ...process.env, PATH }, signal });
  const ended = new Promise((resolve) => running.child.once('exit', resolve));
  try {
    await running;
  } catch (error) {
    // The error of an aborted call does not wait for tar, which may still write.
    if (signal?.aborted && running.child.pid !== undefined) await ended;
    throw error;
  }
}

/** Writes a new file. If `signal` aborts it, removes what it has written and throws. */
export async function backup(
  data_dir: string,
  file: string,
  version: string,
  now_ms: number,
  signal?: AbortSignal,
): Promise<{ file: string; bytes: number }> {
  if (existsSync(file)) throw refused(`${file} already exists; it was not changed`);
  if (!existsSync(join(data_dir, DATABASE_FILE))) throw refused(`${data_dir} contains no database`);
  await removeAbandoned(data_dir, file);
  const staging = await mkdtemp(join(data_dir, STAGING.backup));
  const part = `${file}${basename(staging)}.part`;
  try {
    const copy = join(staging, DATABASE_FILE);
    await copyDatabase(join(data_dir, DATABASE_FILE), copy, signal);
    const missing = await linkSegments(data_dir, staging, segmentPaths(copy), signal);
    const manifest = { format: 1, version, created_at: rfc3339(now_ms), missing };
    await writeFile(join(staging, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600 });
    await writeFile(part, '', { mode: 0o600, flag: 'wx' });
    const compress = /\.(gz|tgz)$/.test(file) ? ['-z'] : [];
    await tar(['-c', ...compress, '-f', part, '-C', staging, '.'], signal);
    signal?.throwIfAborted();
    await publish(part, file);
    return { file, bytes: (await stat(file)).size };
  } finally {
    await rm(part, { force: true });
    await rm(staging, { recursive: true, force: true });
  }
}

/** Gives a finished backup its name, unless another file has got that name meanwhile. */
async function publish(part: string, file: string): Promise<void> {
  try {
    await link(part, file);
  } catch (error) {
    if (existsSync(file)) throw refused(`${file} already exists; it was not changed`);
    // Not all file systems have hard links.
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes((error as NodeJS.ErrnoException).code!))
      throw error;
    await rename(part, file);
  }
}

/** Deletes what killed backups left behind: copies, which keep log files from being deleted, and parts of `file`. */
async function removeAbandoned(data_dir: string, file: string): Promise<void> {
  const name = basename(file);
  const isPart = (entry: string) =>
    entry.startsWith(name) && entry.endsWith('.part') && isStaging('backup', entry.slice(name.length, -5));
  for (const [folder, isOurs] of [
    [data_dir, (entry: Dirent) => entry.isDirectory() && isStaging('backup', entry.name)],
    [dirname(file), (entry: Dirent) => entry.isFile() && isPart(entry.name)],
  ] as const) {
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    for (const entry of entries.filter(isOurs)) {
      const path = join(folder, entry.name);
      const info = await stat(path).catch(() => null);
      if (info !== null && Date.now() - info.mtimeMs > limits.backup_abandoned_ms)
        await rm(path, { recursive: true, force: true });
    }
  }
}

/** Segments never change and are only ever removed, so hard links are a snapshot of them. */
async function linkSegments(
  data_dir: string,
  staging: string,
  paths: string[],
  signal?: AbortSignal,
): Promise<string[]> {
  const missing: string[] = [];
  for (const path of paths) {
    signal?.throwIfAborted();
    const to = join(staging, 'log', path);
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    await link(join(data_dir, 'log', path), to).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      missing.push(path);
    });
  }
  return missing;
}

/** Ignores owners and modes in the archive. tar strips or rejects leading slashes and `..`. */
const PLAIN_FILES = ['--no-same-owner', '--no-same-permissions'];

/** Files of a backup. Reading the copy of the database may have created the last two. */
const BACKED_UP = /^(svc-backup\.json|log\/.+|svc\.db(-wal|-shm)?)$/;

/** Files of a data directory that a restore replaces. */
const REPLACED = /^(svc\.db(-wal|-shm)?|search\.db(-wal|-shm)?|log)$/;

/**
 * Replaces the database and the logs of a data directory, which is created if it does not exist. Returns the folder with the old
 * files, or null if there were none. Throws `data_dir_in_use` while svc runs there, and if the file is not a sound backup.
 */
export async function restore(
  data_dir: string,
  file: string,
  now_ms: number,
): Promise<{ aside: string | null }> {
  await prepareDataDir(data_dir);
  const lock = lockDataDir(data_dir, rfc3339(now_ms));
  let staging: string | null = null;
  try {
    await removeAbandonedRestores(data_dir, silentLog);
    staging = await mkdtemp(join(data_dir, STAGING.restore));
    await tar(['-x', ...PLAIN_FILES, '-f', file, '-C', staging]).catch((error) => {
      throw refused(`${file} cannot be unpacked: ${String(error.stderr || error.message).split('\n')[0]}`);
    });
    const found = await filesIn(staging, file);
    requireOnly(found, (path) => BACKED_UP.test(path), file);
    const manifest = await readFile(join(staging, MANIFEST), 'utf8').catch(() => '');
    if (!isManifest(manifest)) throw refused(`${file} is not a backup of svc`);
    const copy = join(staging, DATABASE_FILE);
    const damage = findDamage(copy);
    if (damage.length > 0) throw refused(`the database in ${file} is damaged: ${damage[0]}`);
    if (isTooNew(copy))
      throw refused(`${file} was made by a newer version of svc; upgrade svc to restore it`);
    const segments = segmentPaths(copy);
    for (const path of segments) {
      if (isAbsolute(path) || path.split('/').includes('..')) throw refused(`${file} is not a backup of svc`);
    }
    const named = new Set(segments.map((path) => join('log', path)));
    requireOnly(found, (path) => !path.startsWith('log/') || named.has(path), file);
    await skipLogNumbers(copy, join(data_dir, DATABASE_FILE), now_ms);

    const old = (await readdir(data_dir)).filter((name) => REPLACED.test(name));
    const aside = join(data_dir, `before-restore-${rfc3339(now_ms).replace(/[:.]/g, '-')}`);
    if (old.length > 0) await mkdir(aside, { mode: 0o700 });
    for (const name of old) await rename(join(data_dir, name), join(aside, name));
    for (const name of ['log', DATABASE_FILE]) {
      if (existsSync(join(staging, name))) await rename(join(staging, name), join(data_dir, name));
    }
    return { aside: old.length > 0 ? aside : null };
  } finally {
    if (staging !== null) await rm(staging, { recursive: true, force: true });
    lock.release();
  }
}

/**
 * Paths of the files below `folder`, relative to it. Throws if it contains anything except folders and files with a single
 * link. A link would be renamed into the data directory and then followed.
 */
async function filesIn(folder: string, archive: string, inside = ''): Promise<string[]> {
  const paths: string[] = [];
  for (const name of await readdir(join(folder, inside))) {
    const path = join(inside, name);
    const entry = await lstat(join(folder, path));
    if (entry.isDirectory()) {
      await chmod(join(folder, path), 0o700);
      paths.push(...(await filesIn(folder, archive, path)));
    } else if (entry.isFile() && entry.nlink === 1) {
      await chmod(join(folder, path), 0o600);
      paths.push(path);
    } else {
      throw refused(`${archive} is not a backup of svc: ${path} is not a regular file`);
    }
  }
  return paths;
}

function requireOnly(paths: readonly string[], expected: (path: string) => boolean, archive: string): void {
  const stranger = paths.find((path) => !expected(path));
  if (stranger !== undefined) throw refused(`${archive} is not a backup of svc: unexpected file ${stranger}`);
}

function isManifest(text: string): boolean {
  try {
    return manifestSchema.safeParse(JSON.parse(text)).success;
  } catch {
    return false;
  }
}

function refused(message: string): Problem {
  return new Problem('conflict', 'backup_refused', message);
}
