/**
 * Keeps compiled code between starts, which halves the startup time. Anyone who can write to that folder can run code as
 * this user, so the folder is used only if it belongs to this user alone. (Node's default is below `/tmp`, where another
 * user may have created it first.)
 */
import { existsSync, lstatSync, mkdirSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

export function setUpCompileCache(env: NodeJS.ProcessEnv): void {
  // The operator has set a folder, which Node then uses.
  if (env.NODE_COMPILE_CACHE) return;
  const dir = ownFolder(env);
  if (dir !== null) enableCompileCache(dir);
}

/** Null if there is no folder that belongs to this user alone. */
export function ownFolder({ XDG_CACHE_HOME }: NodeJS.ProcessEnv): string | null {
  const base = XDG_CACHE_HOME && isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(homedir(), '.cache');
  const dirs = [base, join(base, 'svc'), join(base, 'svc', 'compiled')];
  try {
    for (const dir of dirs) if (!existsSync(dir)) mkdirSync(dir, { mode: 0o700 });
    return dirs.every(isOurs) ? dirs.at(-1)! : null;
  } catch {
    return null;
  }
}

function isOurs(dir: string): boolean {
  const found = lstatSync(dir);
  return found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0;
}
