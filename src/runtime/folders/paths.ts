/**
 * Decides whether a path may be a workdir: absolute, printable, and inside one of the allowed roots once every symlink
 * of it (or of its deepest existing parent) is resolved, compared by whole segments. It makes folders one segment at a
 * time, each in one that it holds. It refuses; it never repairs a path.
 */
import { chown, mkdir, readlink, realpath, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { limits } from '../../base/limits.ts';
import { invalid, type Problem, problems } from '../../domain/problem.ts';
import { holdFolder } from '../held-folder.ts';

const LINKS_MAX = 40;

/** The Problem of a path that no file system could mean, or null. `field` names it in the message. */
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
    Buffer.byteLength(path) > limits.path_bytes_max ||
    path.split('/').some((segment) => Buffer.byteLength(segment) > limits.path_segment_bytes_max)
  ) {
    return invalid(`${field} is too long`, `${field}_too_long`);
  }
  return null;
}

export interface Located {
  /** Real, absolute path; `missing` are its last segments, which do not exist (or cannot be seen). */
  path: string;
  missing: string[];
}

/** Resolves every symlink of the part of `path` that exists. Null when what is left cannot be named (`..`, loops). */
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
      // A link that points nowhere yet: what would be made is where it points.
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

/** True when `path` is `root` or lies below it. Both are real paths. */
export function isInside(root: string, path: string): boolean {
  return path === root || path.startsWith(root === '/' ? '/' : `${root}/`);
}

/** Without those that lie in another one of them: agents who can write to that one decide where the inner one leads. */
export function outermost(paths: readonly string[]): string[] {
  return paths.filter((path) => !paths.some((other) => other !== path && isInside(other, path)));
}

/** The real paths of allowed roots; one that cannot be resolved allows nothing. */
export async function realRoots(roots: readonly string[]): Promise<string[]> {
  const located = await Promise.all(roots.filter((root) => isAbsolute(root)).map((root) => locate(root)));
  return located.flatMap((root) => (root ? [root.path] : []));
}

/** Where `path` really is, if that is inside one of `roots`; else the given Problem. */
export async function locateInside(
  path: string,
  roots: readonly string[],
  outside: () => Problem,
): Promise<Located> {
  const located = await locate(path);
  if (!located) throw outside();
  const allowed = await realRoots(roots);
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
 * Makes what is missing of a located path and answers the path of the first folder that it made (null: none). Each folder
 * is made in one that is held open, so whoever swaps a parent for a link meanwhile gets a refusal. `owner`: whose the
 * last one becomes, when it was made here.
 */
export async function makeFolders(
  located: Located,
  { mode, owner }: { mode: number; owner?: { uid: number; gid: number } },
): Promise<string | null> {
  const { path, missing } = located;
  let first: string | null = null;
  let held = await holdFolder(join(path, ...missing.map(() => '..'))).catch(refused);
  try {
    for (const [n, segment] of missing.entries()) {
      const made = await mkdir(join(held.fd_path, segment), { mode }).then(
        () => true,
        (error: NodeJS.ErrnoException) => {
          if (error.code === 'EEXIST') return false;
          throw cannotMake(error);
        },
      );
      const outer = held;
      held = await outer
        .enter(segment)
        .catch(refused)
        .finally(() => outer.close());
      if (made) first ??= held.path;
      if (made && owner && n === missing.length - 1) await chown(held.fd_path, owner.uid, owner.gid);
    }
    return first;
  } finally {
    await held.close().catch(() => {});
  }
}

/** A link, or no folder, where a folder was. */
function refused(error: NodeJS.ErrnoException): never {
  if (error.code === 'ELOOP') throw problems.workdirNotSafe();
  if (error.code === 'ENOTDIR') throw invalid('workdir is not a directory', 'workdir_not_a_directory');
  throw cannotMake(error);
}

function cannotMake(error: unknown): Problem {
  const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
  return invalid(`workdir cannot be made: ${code}`, 'workdir_not_made');
}
