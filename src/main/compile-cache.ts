/**
 * Compiled code is kept between starts, which halves what a start costs. Whoever can write there can run code as us: it is
 * a folder of our own, or there is none. (Node's own choice is below `/tmp`, where anybody may have been first.)
 */
import { existsSync, lstatSync, mkdirSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

export function keepCompiled(env: NodeJS.ProcessEnv): void {
  // Whoever sets this has chosen, and Node follows it by itself.
  if (env.NODE_COMPILE_CACHE) return;
  const dir = ownFolder(env);
  if (dir !== null) enableCompileCache(dir);
}

/** Null where there is none that is ours alone. */
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
