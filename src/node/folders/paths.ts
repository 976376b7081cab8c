/**
 * Decides whether a path may be a workdir: it must be absolute, printable, and inside one of the allowed roots after
 * all its symlinks (or those of its deepest existing parent) are resolved. Paths are compared by whole segments.
 * Folders are created one segment at a time, each in a parent that is held open. An invalid path is rejected, never
 * repaired.
 */
import { chown, lstat, mkdir, readlink, realpath, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { isExhausted } from '../../base/files.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import { asDiskSpaceProblem, invalid, type Problem, problems } from '../../core/problem.ts';
import { holdFolder } from '../confinement/held-folder.ts';
import { limits } from '../limits.ts';

const LINKS_MAX = 40;

/**
 * Returns the Problem with a path that is invalid on every file system, or null. `field` names the path in the message.
 */
export function pathProblem(
  field: 'workdir' | 'worktree_repo' | 'default_worktree_root',
  path: string,
): Problem | null {
  if (!isAbsolute(path)) {
    return field === 'workdir'
      ? problems.workdirNotAbsolute()
      : invalid(`${field} must be absolute`, `${field}_not_absolute`);
  }
  if (/[\x00-\x1f\x7f]/.test(path)) {
    return invalid(`${field} must not contain control characters`, `${field}_invalid`);
  }
  if (!path.isWellFormed()) return invalid(`${field} must be valid Unicode`, `${field}_invalid`);
  if (
    Buffer.byteLength(path) > sharedLimits.path_bytes_max ||
    path.split('/').some((segment) => Buffer.byteLength(segment) > limits.path_segment_bytes_max)
  ) {
    return invalid(`${field} is too long`, `${field}_too_long`);
  }
  return null;
}

export interface Located {
  /** Real and absolute. */
  path: string;
  /** The last segments of `path` that do not exist or are not accessible. */
  missing: string[];
}

/** Resolves all symlinks in the existing part of `path`. Returns null if the rest cannot be resolved (`..`, loops). */
export async function locate(path: string): Promise<Located | null> {
  let existing = path;
  const missing: string[] = [];
  for (let links = 0; links <= LINKS_MAX; ) {
    try {
      const real = await realpath(existing);
      return { path: join(real, ...missing), missing };
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code === 'ELOOP') return null;
    }
    const target = await readlink(existing).catch(() => null);
    if (target !== null) {
      // The target of the link does not exist; a new folder would be created there.
      existing = isAbsolute(target) ? target : join(dirname(existing), target);
      links++;
      continue;
    }
    const cut = existing.replace(/\/+$/, '').lastIndexOf('/');
    const segment = existing.replace(/\/+$/, '').slice(cut + 1);
    if (segment === '..') return null;
    if (segment !== '' && segment !== '.') missing.unshift(segment);
    existing = existing.slice(0, cut) || '/';
  }
  return null;
}

/**
 * A `locate` that resolves each path once, for all checks of one request: a third of the thread-pool hops of a start
 * were repetitions.
 */
export function locateOnce(): typeof locate {
  const located = new Map<string, Promise<Located | null>>();
  return (path) => {
    const known = located.get(path) ?? locate(path);
    located.set(path, known);
    return known;
  };
}

/** True if `path` is `root` or below it. Both are real paths. */
export function isInside(root: string, path: string): boolean {
  return path === root || path.startsWith(root === '/' ? '/' : `${root}/`);
}

/**
 * Omits paths that are inside other given paths, because agents that can write to the outer one can redirect the inner
 * one.
 */
export function outermost(paths: readonly string[]): string[] {
  return paths.filter((path) => !paths.some((other) => other !== path && isInside(other, path)));
}

/** The real paths of allowed roots. Omits those that cannot be resolved. */
export async function realRoots(roots: readonly string[], resolve = locate): Promise<string[]> {
  const located = await Promise.all(roots.filter((root) => isAbsolute(root)).map((root) => resolve(root)));
  return located.flatMap((root) => (root ? [root.path] : []));
}

/** Returns the real path of `path`. Throws the given Problem unless it is inside one of `roots`. */
export async function locateInside(
  path: string,
  roots: readonly string[],
  outside: () => Problem,
  resolve = locate,
): Promise<Located> {
  const located = await resolve(path);
  if (!located) throw outside();
  const allowed = await realRoots(roots, resolve);
  if (!allowed.some((root) => isInside(root, located.path))) throw outside();
  return located;
}

/** Throws unless a located path is a folder that exists. */
export async function requireFolder(field: 'workdir' | 'worktree_repo', located: Located): Promise<void> {
  const stats = located.missing.length > 0 ? null : await stat(located.path).catch(() => null);
  if (!stats) {
    throw field === 'workdir'
      ? problems.workdirMissing()
      : invalid(`${field} does not exist`, `${field}_missing`);
  }
  if (!stats.isDirectory()) throw invalid(`${field} is not a directory`, `${field}_not_a_directory`);
}

/**
 * Creates the missing folders of a located path. Returns the path of the first one that it created, or null. Each
 * folder is created in a parent that is held open, so replacing a parent with a link in the meantime causes an error.
 * `owner`: the owner of the last folder, if it is created here. Idempotent. Throws `workdir_not_safe`,
 * `workdir_not_a_directory` or `workdir_not_made`.
 */
export async function makeFolders(
  located: Located,
  { mode, owner }: { mode: number; owner?: { uid: number; gid: number } },
): Promise<string | null> {
  const { path, missing } = located;
  let first: string | null = null;
  let held = await holdFolder(join(path, ...missing.map(() => '..'))).catch(throwFolderProblem);
  try {
    for (const [n, segment] of missing.entries()) {
      const made = await mkdir(join(held.fd_path, segment), { mode }).then(
        () => true,
        (error: NodeJS.ErrnoException) => {
          if (error.code === 'EEXIST') return false;
          throw cannotCreate(error);
        },
      );
      const outer = held;
      held = await outer
        .enter(segment)
        .catch(throwFolderProblem)
        .finally(() => outer.close());
      if (made) first ??= held.path;
      if (made && owner && n === missing.length - 1) await chown(held.fd_path, owner.uid, owner.gid);
    }
    return first;
  } finally {
    await held.close().catch(() => {});
  }
}

/** Throws the Problem for a link or file in place of a folder. An error that says nothing about the path is thrown again. */
function throwFolderProblem(error: NodeJS.ErrnoException): never {
  if (error.code === 'ELOOP') throw problems.workdirNotSafe();
  if (error.code === 'ENOTDIR') throw invalid('workdir is not a directory', 'workdir_not_a_directory');
  throw cannotCreate(error);
}

function cannotCreate(error: unknown): unknown {
  if (isExhausted(error) || asDiskSpaceProblem(error) !== error) return error;
  const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
  return invalid(`workdir cannot be created: ${code}`, 'workdir_not_made');
}

export interface Step {
  folder: string;
  /** The path of the entry in `folder` that leads towards the target. */
  entry: string;
}

/** The steps from the root to a path, following links, as far as the path exists. */
export async function stepsTo(path: string): Promise<Step[]> {
  const steps: Step[] = [];
  const remaining = path.split('/');
  let at = '/';
  for (let links = 0; remaining.length > 0; ) {
    const name = remaining.shift()!;
    if (name === '' || name === '.') continue;
    if (name === '..') {
      at = dirname(at);
      continue;
    }
    const entry = join(at, name);
    const info = await lstat(entry).catch(() => null);
    if (!info) break;
    steps.push({ folder: at, entry });
    if (!info.isSymbolicLink()) {
      at = entry;
      continue;
    }
    if (++links > LINKS_MAX) break;
    const target = await readlink(entry).catch(() => '');
    if (target.startsWith('/')) at = '/';
    remaining.unshift(...target.split('/'));
  }
  return steps;
}
