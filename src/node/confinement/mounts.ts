/**
 * The mounts of a sandbox: their order, bubblewrap's arguments for them, and what the check inside the sandbox must
 * find.
 */
import { lstat, readdir, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isInside } from '../folders/paths.ts';

type MountKind = 'read_only' | 'write' | 'empty' | 'no_file' | 'link' | 'devices' | 'processes';

export interface Mount {
  path: string;
  kind: MountKind;
  /** The path to mount, if it differs from `path`. For a link, its target. */
  from?: string;
}

export const DEVICES: Mount = { path: '/dev', kind: 'devices' };
export const PROCESSES: Mount = { path: '/proc', kind: 'processes' };

/** Sorts mounts by depth, so that deeper ones take precedence. If several have the same path, keeps the last. */
export function inOrder(mounts: Mount[]): Mount[] {
  const last = new Map(mounts.map((mount) => [mount.path, mount]));
  return [...last.values()].sort((a, b) => depth(a.path) - depth(b.path));
}

function depth(path: string): number {
  return path === '/' ? 0 : path.split('/').length;
}

/** Bubblewrap's arguments for one mount. */
export function mountArguments({ path, kind, from = path }: Mount): string[] {
  switch (kind) {
    case 'read_only':
      return ['--ro-bind', from, path];
    case 'write':
      return ['--bind', from, path];
    case 'empty':
      return ['--tmpfs', path];
    case 'devices':
      return ['--dev', path];
    case 'processes':
      return ['--proc', path];
    case 'link':
      return ['--symlink', from, path];
    case 'no_file':
      return ['--ro-bind', '/dev/null', path];
  }
}

/**
 * Arguments that mount the kernel settings in `/proc` read-only, because root could write to them without any
 * capability.
 */
export async function kernelSettingMounts(): Promise<string[]> {
  const kept: string[] = [];
  // Reads names only: to determine the types of entries, `readdir` would fail if a process ends in the meantime.
  for (const name of await readdir('/proc')) {
    if (/^\d+$/.test(name)) continue;
    const path = join('/proc', name);
    const info = await lstat(path).catch(() => null);
    if (!info || info.isSymbolicLink()) continue;
    if (info.isDirectory() || (info.mode & 0o222) !== 0) kept.push('--ro-bind', path, path);
  }
  return kept;
}

/**
 * The empty folders of these mounts, and every entry that they contain once everything is mounted. If a link redirects
 * a mount, an extra entry shows up. Folders on the way to a mount are included; the contents of mounted folders are
 * not.
 */
export function expectedEntries(mounts: readonly Mount[]): { masks: string[]; entries: string[] } {
  const masks = new Set(mounts.filter(({ kind }) => kind === 'empty').map(({ path }) => path));
  const opaque = mounts.filter(({ kind }) => kind !== 'empty').map(({ path }) => path);
  const inner = (path: string) => opaque.some((other) => isInside(other, path));
  const entries = new Set<string>();
  for (const { path } of mounts) {
    // Walk up to the nearest empty folder, and stop at a mounted one, whose contents are not checked.
    const parents: string[] = [];
    let at = path;
    while (at !== '/' && !masks.has(dirname(at)) && !inner(dirname(at))) {
      parents.push(at);
      at = dirname(at);
    }
    if (at === '/' || !masks.has(dirname(at))) continue;
    for (const entry of [...parents, at]) entries.add(entry);
  }
  const folders = [...entries].filter((path) => !masks.has(path) && !inner(path));
  return { masks: [...masks, ...folders], entries: [...entries] };
}

/** The same mount without write access. */
export function readOnly(mount: Mount): Mount {
  return mount.kind === 'write' ? { ...mount, kind: 'read_only' } : mount;
}

/** The same mount, but empty if agents could write to it. */
export function withoutContent(mount: Mount): Mount {
  return mount.kind === 'write' ? { ...mount, kind: 'empty' } : mount;
}

/** Mounts for the paths that exist, at their real paths, or with `named` at the given paths. */
export async function mountsOf(paths: readonly string[], kind: MountKind, named = false): Promise<Mount[]> {
  const found = await Promise.all(paths.map((path) => realpath(path).catch(() => null)));
  return found.flatMap((from, n) => {
    if (from === null) return [];
    return named ? { path: paths[n]!, kind, from } : { path: from, kind };
  });
}

/**
 * Mounts for those paths that exist and are not links. In a folder that agents can write to, a link leads wherever they
 * want.
 */
export async function mountsWithoutLinks(paths: readonly string[], kind: MountKind): Promise<Mount[]> {
  const found = await mountsOf(paths, kind);
  return found.filter(({ path }) => paths.includes(path));
}
