/**
 * Everything that the service executes with its own rights: its package, imported packages, Node, compiled code, and small
 * system programs. An agent that can change any of these gains the rights of the service.
 */
import { existsSync, realpathSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { dirname, join } from 'node:path';
import { isInside } from '../node/folders/paths.ts';
import { findTools, pathFolders, systemTool } from '../node/processes/tools.ts';
import { binFolder } from '../node/sessions/environment.ts';

const root = dirname(binFolder);

/** Absolute paths of files and folders. A folder includes everything in it. */
export function listOwnPrograms(env: Readonly<Record<string, string | undefined>>): string[] {
  const modules = moduleFolders();
  const tools = Object.values(findTools()).filter((path) => path !== null);
  const bundled = modules.some((folder) => isInside(realpathSync(folder), process.execPath));
  return [
    root,
    ...modules,
    process.execPath,
    ...[getCompileCacheDir() ?? []].flat(),
    ...new Set([...tools, ...['getent', 'test'].map(systemTool)]),
    ...(bundled ? [] : foldersBeforeNode(env.PATH)),
  ];
}

/** If the package contains no Node, `bin/svc` uses the first one in PATH. */
function foldersBeforeNode(path: string | undefined): string[] {
  const folders = pathFolders(path);
  const first = folders.findIndex((folder) => existsSync(join(folder, 'node')));
  return first < 0 ? folders : folders.slice(0, first + 1);
}

/** Folders in which Node looks for imported packages, if they exist. */
function moduleFolders(): string[] {
  const found: string[] = [];
  for (let folder = root; ; folder = dirname(folder)) {
    found.push(join(folder, 'node_modules'));
    if (folder === dirname(folder)) return found.filter((path) => existsSync(path));
  }
}
