/**
 * The disk that contains the sessions: determines whether there is space for another start, and runs the guard. The
 * guard is a shell script that pauses the pumps while the disk is nearly full. It is a separate process because it must
 * keep running when the service does not.
 */
import { readFileSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { sleep } from '../../base/async.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import { isAlive, type ProcessRef } from '../../base/proc.ts';
import { limits } from '../limits.ts';
import type { Launcher } from '../processes/launcher-client.ts';
import type { Tools } from '../processes/tools.ts';
import { GUARD, shellScript } from './shell-scripts.ts';

export interface DiskLimits {
  /**
   * No session starts if the free space is below the smaller of these two values: bytes, and a share (0 to 1) of the
   * disk.
   */
  no_start_bytes: number;
  no_start_share: number;
  /** The guard pauses the pumps if the free space is below the smaller of these two values. */
  pause_bytes: number;
  pause_share: number;
  /** With this much more than the limit free, no writer can fill the disk within `guard_ample_s`. */
  guard_ample_bytes: number;
  /** How often the guard checks, in seconds: with that much free, with 4 times the limit free, and below that. */
  guard_ample_s: number;
  guard_far_s: number;
  guard_near_s: number;
}

export const diskDefaults: DiskLimits = {
  no_start_bytes: sharedLimits.disk_no_start_bytes,
  no_start_share: sharedLimits.disk_no_start_share,
  pause_bytes: limits.disk_pause_bytes,
  pause_share: limits.disk_pause_share,
  guard_ample_bytes: limits.guard_ample_bytes,
  guard_ample_s: limits.guard_ample_s,
  guard_far_s: limits.guard_far_s,
  guard_near_s: limits.guard_near_s,
};

export interface DiskSpace {
  path: string;
  free_bytes: number;
  total_bytes: number;
  starts_allowed: boolean;
}

export class Disk {
  readonly #folder: string;
  readonly #limits: DiskLimits;
  readonly #launcher: Launcher;
  readonly #tools: Tools;
  #starting: Promise<void> | null = null;

  constructor(folder: string, disk_limits: DiskLimits, launcher: Launcher, tools: Tools) {
    this.#folder = folder;
    this.#limits = disk_limits;
    this.#launcher = launcher;
    this.#tools = tools;
  }

  /** Free and total space. Throws errno errors. */
  space(): DiskSpace {
    const { bavail, blocks, bsize } = statfsSync(this.#folder);
    const total_bytes = blocks * bsize;
    const free_bytes = bavail * bsize;
    const { no_start_bytes, no_start_share } = this.#limits;
    const least = Math.min(no_start_bytes, no_start_share * total_bytes);
    return { path: this.#folder, free_bytes, total_bytes, starts_allowed: free_bytes >= least };
  }

  /** True if a fast writer could fill the remaining space between two checks of the guard. */
  isSmall(): boolean {
    const { total_bytes } = this.space();
    return total_bytes * this.#limits.pause_share < limits.careful_below_bytes;
  }

  /** Pid and start time of the guard; null if it is not running. */
  guard(): ProcessRef | null {
    let text: string;
    try {
      text = readFileSync(join(this.#folder, '.guard'), 'utf8');
    } catch {
      return null;
    }
    const match = /^(\d+) (.+) end$/m.exec(text);
    if (!match?.[1] || !match[2]) return null;
    const ref = { pid: Number(match[1]), start: match[2].replace(/\s+/g, ' ').trim() };
    return isAlive(ref) ? ref : null;
  }

  /** Starts the guard unless it is running, and waits up to 1 s for it. Concurrent calls share one start. */
  ensureGuard(): Promise<void> {
    this.#starting ??= this.#ensure().finally(() => {
      this.#starting = null;
    });
    return this.#starting;
  }

  async #ensure(): Promise<void> {
    if (this.guard()) return;
    const { total_bytes } = this.space();
    const { pause_bytes, pause_share, guard_ample_bytes } = this.#limits;
    const { guard_near_s, guard_far_s, guard_ample_s } = this.#limits;
    const pause_kib = Math.floor(Math.min(pause_bytes, pause_share * total_bytes) / 1024);
    const plenty_kib = pause_kib + Math.floor(guard_ample_bytes / 1024);
    const { sh, df, rm, mv, ps } = this.#tools;
    const numbers = [pause_kib, pause_kib * 2, plenty_kib, guard_near_s, guard_far_s, guard_ample_s];
    const { options, env } = shellScript('disk guard', GUARD);
    const argv: [string, ...string[]] = [
      sh,
      ...options,
      'svc-guard',
      df,
      this.#tools.sleep,
      rm,
      mv,
      ps ?? '',
      ...numbers.map(String),
    ];
    await this.#launcher.spawn(argv, this.#folder, { ...env, LC_ALL: 'C' });
    for (let tries = 0; tries < 50 && !this.guard(); tries++) await sleep(20);
  }
}
