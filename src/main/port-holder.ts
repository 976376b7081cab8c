/**
 * Finds the process that listens on a TCP port of this machine, for the error message of a failed start. Works on
 * Linux, and only for processes that this user may inspect; otherwise the message names no process.
 */
import { readdir, readFile, readlink } from 'node:fs/promises';
import { basename } from 'node:path';

export interface PortHolder {
  pid: number;
  /** Short name of the program. */
  program: string;
}

/** Null if no process listens on the port, or if it cannot be determined. */
export async function portHolder(port: number): Promise<PortHolder | null> {
  const sockets = new Set<string>();
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const inode of listeners(await readFile(table, 'utf8').catch(() => ''), port)) {
      sockets.add(`socket:[${inode}]`);
    }
  }
  if (sockets.size === 0) return null;
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  for (const pid of pids) {
    if (!(await listensOn(pid, sockets))) continue;
    const program = await readlink(`/proc/${pid}/exe`).catch(() => '');
    return { pid: Number(pid), program: basename(program) || 'unknown program' };
  }
  return null;
}

const LISTEN = '0A';

/** Inodes of the sockets that listen on `port`, from a table in the format of `/proc/net/tcp`. */
export function listeners(table: string, port: number): string[] {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return table.split('\n').flatMap((line) => {
    const [, local, , state, , , , , , inode] = line.trim().split(/\s+/);
    return state === LISTEN && local?.endsWith(wanted) && inode ? [inode] : [];
  });
}

async function listensOn(pid: string, sockets: ReadonlySet<string>): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  for (const fd of await readdir(folder).catch(() => [])) {
    if (sockets.has(await readlink(`${folder}/${fd}`).catch(() => ''))) return true;
  }
  return false;
}
