/**
 * Finds the system's small programs by absolute path. System folders come before those in PATH, because agents may be
 * able to add programs to the latter. Nothing that runs with the service's rights is looked up by name. Git is an
 * exception, because operators choose theirs by PATH; if agents are confined, it runs only with the agents' rights.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { join } from 'node:path';

export interface Tools {
  sh: string;
  cat: string;
  mkfifo: string;
  mv: string;
  rm: string;
  ps: string | null;
  df: string;
  dd: string;
  sleep: string;
  stat: string | null;
  chown: string | null;
  setsid: string | null;
  setpriv: string | null;
  fallocate: string | null;
  bwrap: string | null;
  unshare: string | null;
}

const fixedFolders = ['/usr/bin', '/bin', '/usr/sbin', '/sbin'];

/**
 * The absolute path of a program that comes with every system. If it is missing, returns its usual path, so that
 * starting it fails with ENOENT.
 */
export function systemTool(name: string): string {
  const path = known.get(name) ?? find(name);
  if (path === null) return join(fixedFolders[0]!, name);
  known.set(name, path);
  return path;
}

const known = new Map<string, string>();

/** Finds all programs. Those that are optional may be null. Throws if a required one is missing. */
export function findTools(): Tools {
  const needed = (name: string) => {
    const path = find(name);
    if (!path) throw new Error(`${name} was not found: sessions need it`);
    return path;
  };
  return {
    sh: '/bin/sh',
    cat: needed('cat'),
    mkfifo: needed('mkfifo'),
    mv: needed('mv'),
    rm: needed('rm'),
    df: needed('df'),
    dd: needed('dd'),
    sleep: needed('sleep'),
    stat: find('stat'),
    ps: find('ps'),
    chown: find('chown'),
    setsid: find('setsid'),
    setpriv: find('setpriv'),
    fallocate: find('fallocate'),
    bwrap: find('bwrap'),
    unshare: find('unshare'),
  };
}

/** The absolute folders of a PATH. */
export function pathFolders(path: string | undefined): string[] {
  return (path ?? '').split(':').filter((folder) => folder.startsWith('/'));
}

function find(name: string): string | null {
  for (const folder of [...fixedFolders, ...pathFolders(process.env.PATH)]) {
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      if (statSync(path).isFile()) return path;
    } catch {
      // It is not in this folder.
    }
  }
  return null;
}
