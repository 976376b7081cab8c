/**
 * Removes FIFOs and devices from a repository. Git would mistake one for a regular file, open it and wait forever for a
 * writer. Agents can create them because they write to objects, refs, and the records of their own worktrees.
 */
import type { Dirent } from 'node:fs';
import { opendir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type HeldFolder, holdFolder } from '../confinement/held-folder.ts';
import { limits } from '../limits.ts';

/** Files that git reads completely. */
const SHORT = ['HEAD', 'commondir', 'gitdir', 'locked', 'update-refs', 'head-name', 'onto', 'orig-head'];

/** What to remove from a folder. */
interface Rule {
  /** Includes nested folders. */
  deep: boolean;
  /** Whether git expects a file of this name to be short, such as a reference. A long one is removed. */
  isShort(name: string): boolean;
  /** Links with the names of short files are removed. */
  removes_links: boolean;
}

const RULE: Rule = { deep: true, isShort: () => false, removes_links: false };
const RECORD: Rule = { deep: true, isShort: (name) => SHORT.includes(name), removes_links: true };
/** Each folder has its own limit, so filling one does not use up the limit of the others. */
const FOLDERS: [string, Rule][] = [
  ['', { ...RULE, deep: false }],
  ['info', RULE],
  ['refs', { ...RULE, isShort: () => true }],
  ['objects/info', { ...RULE, isShort: (name) => name === 'alternates' }],
  ['objects/pack', RULE],
  ['objects', RULE],
  ['logs', RULE],
];

/**
 * Checks at most `limits.special_files_entries_max` entries of each folder and of each worktree's record, upper levels
 * first. Entries that cannot be removed stay, as does everything created in the meantime. Sockets stay, because git
 * cannot open them, and git's own fsmonitor has one there. Idempotent.
 */
export async function removeSpecialFiles(common_dir: string): Promise<void> {
  const held = await holdFolder(common_dir);
  try {
    for (const [name, rule] of FOLDERS) await clear(held, name.split('/').filter(Boolean), rule);
    for (const name of await readdir(join(common_dir, 'worktrees')).catch(() => [])) {
      await clear(held, ['worktrees', name], RECORD);
    }
  } finally {
    await held.close();
  }
}

async function clear(common: HeldFolder, top: readonly string[], rule: Rule): Promise<void> {
  const folders = [top];
  let left = limits.special_files_entries_max;
  for (let segments = folders.shift(); segments !== undefined; segments = folders.shift()) {
    const folder = await descend(common, segments);
    if (folder === null) continue;
    try {
      for await (const entry of await opendir(folder.fd_path, { bufferSize: 256 })) {
        if (left-- === 0) return;
        if (!entry.isDirectory()) await removeObstacle(join(folder.fd_path, entry.name), entry, rule);
        else if (rule.deep) folders.push([...segments, entry.name]);
      }
    } catch {
      // The folder cannot be read or no longer exists.
    } finally {
      if (folder !== common) await folder.close();
    }
  }
}

/**
 * Opens a folder without following links, because agents can create one at any time. Null if there is no such folder.
 */
async function descend(common: HeldFolder, segments: readonly string[]): Promise<HeldFolder | null> {
  let held = common;
  for (const name of segments) {
    const outer = held;
    const inner = await outer.enter(name).catch(() => null);
    if (outer !== common) await outer.close();
    if (inner === null) return null;
    held = inner;
  }
  return held;
}

async function removeObstacle(path: string, entry: Dirent, rule: Rule): Promise<void> {
  if (await isObstacle(path, entry, rule)) await rm(path, { force: true }).catch(() => {});
}

async function isObstacle(path: string, entry: Dirent, rule: Rule): Promise<boolean> {
  if (isSpecial(entry)) return true;
  const short = rule.isShort(entry.name);
  if (!entry.isSymbolicLink() && !short) return false;
  if (entry.isSymbolicLink() && short && rule.removes_links) return true;
  // Git follows links.
  const info = await stat(path).catch(() => null);
  return info !== null && (isSpecial(info) || (short && info.size > limits.git_short_file_bytes_max));
}

function isSpecial(found: Pick<Dirent, 'isFIFO' | 'isBlockDevice' | 'isCharacterDevice'>): boolean {
  return found.isFIFO() || found.isBlockDevice() || found.isCharacterDevice();
}
