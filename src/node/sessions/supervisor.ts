/**
 * Checks all live sessions of a node at regular intervals: polls those that are not watched, checks their helpers,
 * reports when the guard has paused or resumed the pumps, and records process trees that no cgroup contains.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../../base/log.ts';
import { hasProc } from '../../base/proc.ts';
import { limits } from '../limits.ts';
import type { LocalNodeOptions } from '../options.ts';
import type { Disk } from './disk.ts';
import type { LocalSession } from './session.ts';

export class Supervisor {
  readonly #root: string;
  readonly #sessions: ReadonlyMap<string, LocalSession>;
  readonly #disk: Disk;
  readonly #log: Logger;
  readonly #sweep_ms: number;
  readonly #helper_check_ms: number;
  readonly #tree_read_ms: number;
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> | null = null;
  /** Ids of the sessions whose helpers have not been checked in this round. */
  #unchecked: string[] = [];
  #last_disk_check = Number.NEGATIVE_INFINITY;
  #next_recording = 0;
  #paused = false;
  #closed = false;

  /** `root`: the folder of all session directories. */
  constructor(
    root: string,
    sessions: ReadonlyMap<string, LocalSession>,
    disk: Disk,
    options: Pick<LocalNodeOptions, 'log' | 'sweep_ms' | 'helper_check_ms' | 'tree_read_ms'>,
  ) {
    this.#root = root;
    this.#sessions = sessions;
    this.#disk = disk;
    this.#log = options.log;
    this.#sweep_ms = options.sweep_ms ?? limits.sweep_ms;
    this.#helper_check_ms = options.helper_check_ms ?? limits.helper_check_ms;
    this.#tree_read_ms = options.tree_read_ms ?? limits.tree_read_ms;
  }

  /** Whether the guard had paused the pumps at the last check. */
  get paused(): boolean {
    return this.#paused;
  }

  set paused(paused: boolean) {
    this.#paused = paused;
  }

  start(): void {
    this.#timer = setInterval(() => this.#sweep(), this.#sweep_ms);
    this.#timer.unref();
  }

  /** Starts no more sweeps and logs no more errors. */
  close(): void {
    this.#closed = true;
    clearInterval(this.#timer);
  }

  /** Resolves when no sweep is in progress. Never rejects. */
  async idle(): Promise<void> {
    await this.#sweeping;
  }

  /** Logs an error, unless the node is closing. */
  logError(message: string, error: unknown, session_id?: string): void {
    if (!this.#closed) this.#log.error({ error: String(error), ...(session_id && { session_id }) }, message);
  }

  #sweep(): void {
    if (this.#sweeping !== null) return;
    this.#sweeping = this.#sweepOnce()
      .catch((error) => this.logError('cannot check the sessions', error))
      .finally(() => {
        this.#sweeping = null;
      });
  }

  async #sweepOnce(): Promise<void> {
    const live = [...this.#sessions.values()].filter((session) => !session.end);
    if (live.length === 0) return;
    for (const session of live) {
      await this.#isolated(session, () => {
        if (session.polled) session.poll();
        else if (session.orphaned) session.scheduleUpdate();
      });
    }
    await this.#checkDisk(live);
    await this.#checkNextHelpers(live);
    await this.#recordTrees(live);
  }

  /** An error in one session must not affect the others. */
  async #isolated(session: LocalSession, check: () => Promise<void> | void): Promise<void> {
    try {
      await check();
    } catch (error) {
      this.logError('cannot check a session', error, session.id);
    }
  }

  /**
   * Checks the helpers of each session once per `helper_check_ms` (less often with very many sessions), some in each
   * sweep.
   */
  async #checkNextHelpers(live: LocalSession[]): Promise<void> {
    const share = Math.min(
      Math.ceil((live.length * this.#sweep_ms) / this.#helper_check_ms),
      limits.helper_checks_per_sweep,
    );
    if (this.#unchecked.length === 0) this.#unchecked = live.map((session) => session.id);
    for (const id of this.#unchecked.splice(0, share)) {
      const session = this.#sessions.get(id);
      if (session) await this.#isolated(session, () => session.checkHelpers());
      if (this.#closed) return;
    }
  }

  async #checkDisk(live: LocalSession[]): Promise<void> {
    const paused = await stat(join(this.#root, '.paused')).then(
      () => true,
      () => false,
    );
    this.#paused = paused;
    for (const session of live) {
      const reported = session.lastWarning(['output_paused', 'output_resumed']) === 'output_paused';
      if (reported === paused || session.phase !== 'running') continue;
      const { free_bytes, total_bytes } = this.#disk.space();
      const details = { free_bytes, total_bytes };
      await this.#isolated(session, () =>
        paused
          ? session.warn('output_paused', 'the disk is nearly full: output is held back', details)
          : session.warn('output_resumed', 'the disk has space again', details),
      );
    }
    const now = performance.now();
    if (now - this.#last_disk_check < this.#helper_check_ms) return;
    this.#last_disk_check = now;
    await this.#disk.ensureGuard();
  }

  /** Without a cgroup, a process is found only through its parents, so it is recorded while they still exist. */
  async #recordTrees(live: LocalSession[]): Promise<void> {
    const now = performance.now();
    if (!hasProc || now < this.#next_recording) return;
    const without_cgroup = live.filter((session) => !session.hasCgroup);
    await Promise.all(without_cgroup.map((session) => session.recordProcesses()));
    const took_ms = performance.now() - now;
    // This limits the work to 2 % of the time.
    this.#next_recording = now + Math.max(this.#tree_read_ms, took_ms * 50);
  }
}
