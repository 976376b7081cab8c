/** Where the system's small programs are: found once, by absolute path, since an agent's PATH is not ours. */
import { accessSync, constants, statSync } from 'node:fs';
import { join } from 'node:path';

export interface Tools {
  sh: string;
  cat: string;
  mkdir: string;
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
}

const fixedFolders = ['/usr/bin', '/bin', '/usr/sbin', '/sbin'];

/** Throws when one that no session can do without is missing. */
export function findTools(): Tools {
  const needed = (name: string) => {
    const path = find(name);
    if (!path) throw new Error(`${name} was not found: sessions need it`);
    return path;
  };
  return {
    sh: '/bin/sh',
    cat: needed('cat'),
    mkdir: needed('mkdir'),
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
  };
}

function find(name: string): string | null {
  const folders = [...fixedFolders, ...(process.env.PATH ?? '').split(':')].filter((path) =>
    path.startsWith('/'),
  );
  for (const folder of folders) {
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      if (statSync(path).isFile()) return path;
    } catch {
      // Not here.
    }
  }
  return null;
}
