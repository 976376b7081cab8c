/** The file descriptors of this process: how many it can have, and those that it inherited from its parent. */
import { closeSync, readdirSync, readFileSync } from 'node:fs';
import { limits } from './limits.ts';
import { hasProc } from './proc.ts';

/** O_CLOEXEC, as /proc shows it on every Linux that Node supports. */
const CLOSE_ON_EXEC = 0o2000000;

/**
 * Closes inherited descriptors above stderr that child processes would inherit too. Terminals and editors leak
 * descriptors, and a descriptor of a folder bypasses every mount. Node sets close-on-exec only on the lowest inherited
 * descriptors. Those that Node opens have the flag and stay open. Idempotent. Does nothing outside Linux.
 */
export function closeInheritedDescriptors(): void {
  if (!hasProc) return;
  for (const name of readdirSync('/proc/self/fd')) {
    if (Number(name) <= 2) continue;
    try {
      const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, 'latin1'))?.[1];
      if (flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0) closeSync(Number(name));
    } catch {
      // This was the descriptor with which readdir listed the folder.
    }
  }
}

/** How many descriptors this process can have open. */
export function descriptorsMax(): number {
  if (!hasProc) return limits.descriptors_assumed;
  const max = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1];
  return max === undefined ? limits.descriptors_assumed : Number(max);
}
