/**
 * The mounts of a sandbox: their order, bubblewrap's arguments for them, and what the check inside the sandbox must find.
 */
import { lstat, readdir, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isInside } from '../folders/paths.ts';

type MountKind = 'read_only' | 'write' | 'empty' | 'no_file' | 'link' | 'devices' | 'processes';

export interface Mount {
  path: string;
  kind: MountKind;
  /** What is mounted there if it is another path; for a link, its target. */
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

/** Arguments that mount, read-only over `/proc`, what root could write there without any capability. */
export async function kernelSettings(): Promise<string[]> {
  const kept: string[] = [];
  // Without the types of the entries: to find them, `readdir` would fail over a process that ends meanwhile.
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
 * The empty folders of these mounts, and all that they contain once everything is mounted. A mount that a link redirects
 * shows as one entry more. Folders on the way to a mount count; the contents of what is mounted do not.
 */
export function expectedEntries(mounts: readonly Mount[]): { masks: string[]; entries: string[] } {
  const masks = new Set(mounts.filter(({ kind }) => kind === 'empty').map(({ path }) => path));
  const opaque = mounts.filter(({ kind }) => kind !== 'empty').map(({ path }) => path);
  const inner = (path: string) => opaque.some((other) => isInside(other, path));
  const entries = new Set<string>();
  for (const { path } of mounts) {
    // Up to the nearest empty folder; the contents of a mounted folder are not checked.
    const way: string[] = [];
    let at = path;
    while (at !== '/' && !masks.has(dirname(at)) && !inner(dirname(at))) {
      way.push(at);
      at = dirname(at);
    }
    if (at === '/' || !masks.has(dirname(at))) continue;
    for (const one of [...way, at]) entries.add(one);
  }
  const folders = [...entries].filter((path) => !masks.has(path) && !inner(path));
  return { masks: [...masks, ...folders], entries: [...entries] };
}

export function readOnly(mount: Mount): Mount {
  return mount.kind === 'write' ? { ...mount, kind: 'read_only' } : mount;
}

/** Mounts for the paths that exist, at their real paths, or with `named` at the given paths. */
export async function existing(paths: readonly string[], kind: MountKind, named = false): Promise<Mount[]> {
  const found = await Promise.all(paths.map((path) => realpath(path).catch(() => null)));
  return found.flatMap((from, n) => {
    if (from === null) return [];
    return named ? { path: paths[n]!, kind, from } : { path: from, kind };
  });
}

/** Mounts for the paths that exist and are not links. In a folder that agents write to, a link leads where they want. */
export async function existingHere(paths: readonly string[], kind: MountKind): Promise<Mount[]> {
  const found = await existing(paths, kind);
  return found.filter(({ path }) => paths.includes(path));
}
