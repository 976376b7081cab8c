/**
 * The processes of one session: the process tree of its command, and the service's helpers that the `handle` file
 * names. This module lists the tree and ends it; `session-helpers.ts` replaces helpers that were killed.
 */
import { sleep } from '../../base/async.ts';
import { isAlive, type ProcessRef } from '../../base/proc.ts';
import { problems } from '../../core/problem.ts';
import type { Cleanup } from '../../core/session.ts';
import { limits } from '../limits.ts';
import { isCgroupOf, isPopulated, removeCgroup } from '../processes/cgroup.ts';
import type { Launcher } from '../processes/launcher-client.ts';
import type {
  SessionOwned,
  Terminated,
  TreeAnswer,
  TreeMember,
  TreeRequest,
} from '../processes/process-tree.ts';
import type { HandleFile, SessionFiles } from './session-files.ts';

/** Options for listing or ending a tree. */
interface TreeOptions {
  /** Seconds since boot when the main process ended; null if unknown. */
  exit_uptime_s?: number | null;
  /** The helpers count as part of the tree. */
  with_helpers?: boolean;
  /** No process holds the session's FIFOs. */
  pipes_free?: boolean;
}

export class SessionProcesses {
  readonly #session_id: string;
  readonly #files: SessionFiles;
  /** The cgroup that `launch.json` names. It may be any folder. */
  readonly #recorded_cgroup: string | null;
  readonly #launcher: Launcher;
  readonly #agents_uid: number | null;
  #handle: HandleFile | null = null;
  /** Members that earlier listings found. */
  #known: ProcessRef[] = [];
  #closed = false;

  constructor(
    session_id: string,
    {
      files,
      cgroup,
      launcher,
      agents_uid,
    }: { files: SessionFiles; cgroup: string | null; launcher: Launcher; agents_uid: number | null },
  ) {
    this.#session_id = session_id;
    this.#files = files;
    this.#recorded_cgroup = cgroup;
    this.#launcher = launcher;
    this.#agents_uid = agents_uid;
  }

  /** The `handle` file as last read; null until the wrapper has written it. */
  get handle(): HandleFile | null {
    return this.#handle;
  }

  /** Reads `handle` again. If it cannot be read, the last known content stays. */
  readHandle(): void {
    this.#handle = this.#files.readHandle() ?? this.#handle;
    if (this.#handle && !this.#closed) this.#launcher.sessions.add(this);
  }

  /** The service's own processes for this session; null until the wrapper has written the handle. */
  get owned(): SessionOwned | null {
    const handle = this.#handle;
    return handle && { session_id: this.#session_id, helpers: helpersOf(handle), init: handle.init };
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Ends all waits in progress. Affects no process. */
  close(): void {
    this.#closed = true;
    this.#launcher.sessions.delete(this);
  }

  /** The cgroup that contains all processes of the command, or null. */
  get cgroup(): string | null {
    const folder = this.#recorded_cgroup;
    if (!folder || this.#handle?.no_cgroup || !isCgroupOf(folder, this.#session_id)) return null;
    return folder;
  }

  /** For a session that has ended. Removes the cgroup's folder, unless it still contains a process that was kept. */
  async removeCgroup(): Promise<void> {
    this.#launcher.sessions.delete(this);
    const folder = this.#recorded_cgroup;
    if (folder && isCgroupOf(folder, this.#session_id)) await removeCgroup(folder);
  }

  /** The init of the agent's pid namespace, while it is alive. */
  get liveInit(): ProcessRef | null {
    const init = this.#handle?.init;
    return init && isAlive(init) ? init : null;
  }

  /**
   * Lists the tree. Later listings include these processes even if their parents no longer show that they belong to the
   * tree.
   */
  list(options: Omit<TreeOptions, 'with_helpers'> = {}): Promise<TreeAnswer> {
    return this.#sweep(null, [], options);
  }

  async #sweep(
    signal: TreeRequest['signal'],
    terminated: Terminated[],
    { exit_uptime_s = null, with_helpers = false, pipes_free = false }: TreeOptions,
  ): Promise<TreeAnswer> {
    const handle = with_helpers ? null : this.#handle;
    const answer = await this.#launcher.sweep({
      session_id: this.#session_id,
      pipes: pipes_free ? null : this.#files.path('pipes'),
      cgroup: this.cgroup,
      main: handle?.main ?? null,
      init: handle?.init ?? null,
      wrapper: handle?.wrapper ?? null,
      // Helpers run as the service's user.
      agents_uid: with_helpers ? null : this.#agents_uid,
      helpers: handle ? helpersOf(handle) : [],
      known: this.#known,
      exit_uptime_s,
      signal,
      terminated,
    });
    this.#known = answer.members.map(({ pid, start }) => ({ pid, start }));
    return answer;
  }

  /**
   * Ends the tree: sends TERM and CONT, then KILL after `grace_ms`, until two scans find no process (or the cgroup is
   * empty) and the init of its pid namespace has ended. Gives up `limits.kill_wait_ms` after the grace period and
   * returns the survivors. Throws `node_unreachable` if the node closes first.
   */
  async end(
    grace_ms: number,
    options: TreeOptions = {},
  ): Promise<{ cleanup: Cleanup | null; survivors: TreeMember[] }> {
    const begun = performance.now();
    let terminated: Terminated[] = [];
    let empty = 0;
    let empty_since = begun;
    for (let wait_ms = 5; ; wait_ms = Math.min(wait_ms * 2, 100)) {
      if (!options.with_helpers && empty > 0 && this.#isProvenEmpty()) break;
      const now = performance.now();
      const past_ms = now - begun;
      if (empty === 0) empty_since = now;
      // An init without other processes ends immediately, unless something blocks it.
      const blocked = now - empty_since > limits.init_end_ms;
      const signal = past_ms >= grace_ms || blocked ? 'SIGKILL' : 'SIGTERM';
      const answer = await this.#sweep(signal, terminated, options);
      terminated = answer.terminated;
      empty = answer.members.length === 0 ? empty + 1 : 0;
      const init = this.liveInit;
      if (empty >= 2 && !init) break;
      if (past_ms > grace_ms + limits.kill_wait_ms && (empty === 0 || init)) {
        const held = init ? [{ ...init, ppid: 0, command: 'init of the pid namespace' }] : [];
        return { cleanup: null, survivors: [...answer.members, ...held] };
      }
      const left_ms = grace_ms - past_ms;
      await sleep(left_ms > 0 ? Math.min(wait_ms, left_ms) : wait_ms);
      // Returning now would report a living tree as ended. The caller must ask the next service process instead.
      if (this.#closed) throw problems.nodeUnreachable();
    }
    return { cleanup: this.#isProvenEmpty() ? 'proven' : 'swept', survivors: [] };
  }

  /**
   * True if the kernel reports that no process is left: the cgroup is empty, or the init of the pid namespace has
   * ended.
   */
  #isProvenEmpty(): boolean {
    return (this.#handle?.init != null && !this.liveInit) || isPopulated(this.cgroup) === false;
  }
}

function helpersOf({ wrapper, keeper, pumps, feeder }: HandleFile): ProcessRef[] {
  return [wrapper, keeper, ...Object.values(pumps), ...(feeder ? [feeder] : [])];
}
