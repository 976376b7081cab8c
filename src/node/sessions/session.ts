/**
 * One session on this machine. The files of its directory determine its state, and every step can be repeated, so that
 * a node that was killed at any point continues from there. A session decides nothing about agents: it reports what it
 * observes as numbered facts, and ends processes on request or after the main process has ended.
 *
 *   launch.json ─▶ starting ── handle, and spawn says `run` ─▶ running
 *                     │                                           │
 *                     │  exit · another boot · deleted directory  │  exit · another boot · deleted directory
 *                     │  no wrapper, so the node claims it        │  wrapper and main process are gone
 *                     ▼                                           ▼
 *                  finishing: end the tree, drain the pumps ─▶ fact `ended`, file `ended`
 *
 * The facts `started` and `ended` in the file `facts` determine the phase. `finishing` is not stored: a node that is
 * killed there finds the same files and repeats it.
 */
import { type FSWatcher, watch } from 'node:fs';
import { nextTurn, sleep } from '../../base/async.ts';
import type { Clock } from '../../base/clock.ts';
import { failpoint } from '../../base/failpoint.ts';
import { ignoreErrors } from '../../base/files.ts';
import type { Logger } from '../../base/log.ts';
import { isAlive, type ProcessRef } from '../../base/proc.ts';
import type { StreamName } from '../../core/event.ts';
import { boundFact } from '../../core/fact-bounds.ts';
import type { SessionEnd, SessionFact, SessionView, StopReport, WarningCode } from '../../core/node.ts';
import { problems } from '../../core/problem.ts';
import { type Cleanup, type Exit, type Leftover, START_INTERRUPTED } from '../../core/session.ts';
import { limits } from '../limits.ts';
import type { Launcher } from '../processes/launcher-client.ts';
import type { Tools } from '../processes/tools.ts';
import { failed, interpretExit, neverStarted, type Outcome } from './exit-status.ts';
import type { HandleFile, LaunchFile, SessionFiles, SpawnFile } from './session-files.ts';
import { SessionHelpers } from './session-helpers.ts';
import { SessionProcesses } from './session-processes.ts';

/** The services that a node provides to its sessions. */
export interface SessionHost {
  readonly boot_id: string;
  readonly launcher: Launcher;
  readonly agents_uid: number | null;
  readonly tools: Tools;
  readonly log: Logger;
  readonly clock: Clock;
  /** Time between TERM and KILL for processes that the main process leaves behind. */
  readonly leftover_grace_ms: number;
  /** How long the end of a session waits for the pumps. */
  readonly drain_ms: number;
  /** The disk is nearly full and the guard has stopped the pumps. */
  isPaused(): boolean;
  /** Called with each new fact, once it is in the file `facts`. */
  fact(fact: SessionFact): void;
  /** Called when a spool may have grown. */
  wake(session_id: string, stream?: StreamName): void;
}

/** What is known about the wrapper before it has claimed the session. */
type LaunchState =
  /** This process is not starting the session, or the launcher failed to. */
  | { kind: 'none' }
  /** The launcher has not answered yet. */
  | { kind: 'spawning' }
  | { kind: 'spawned'; wrapper: ProcessRef };

export class LocalSession {
  readonly id: string;
  readonly files: SessionFiles;
  readonly facts: SessionFact[];
  readonly #host: SessionHost;
  readonly #file: LaunchFile;
  readonly #processes: SessionProcesses;
  readonly #helpers: SessionHelpers;
  #spawn: SpawnFile | null = null;
  #launch_state: LaunchState = { kind: 'none' };
  #launch_error: string | null = null;
  #wrapper_gone = false;
  #finishing = false;
  #stop: Promise<StopReport> | null = null;
  #watch: FSWatcher | null = null;
  #watch_failed = false;
  #updating: Promise<void> | null = null;
  #update_requested = false;
  #closed = false;
  #stdin_bytes = 0;
  #last_sizes: Record<StreamName, number | null> = { stdout: null, stderr: null };
  #waiters: (() => void)[] = [];
  #recording: Promise<void> = Promise.resolve();

  constructor(id: string, files: SessionFiles, file: LaunchFile, facts: SessionFact[], host: SessionHost) {
    this.id = id;
    this.files = files;
    this.#file = file;
    this.facts = facts;
    this.#host = host;
    const { launcher, tools, drain_ms, agents_uid } = host;
    this.#processes = new SessionProcesses(id, { files, cgroup: file.cgroup, launcher, agents_uid });
    this.#helpers = new SessionHelpers({
      agent_id: file.launch.agent_id,
      files,
      processes: this.#processes,
      launcher,
      tools,
      drain_ms,
      isPaused: () => host.isPaused(),
      scheduleUpdate: () => this.scheduleUpdate(),
      warn: (code, message, details) => this.warn(code, message, details),
    });
  }

  get launch(): SessionView['launch'] {
    return this.#file.launch;
  }

  get end(): SessionEnd | null {
    const body = this.facts.findLast((fact) => fact.body.kind === 'ended')?.body;
    return body?.kind === 'ended' ? body.end : null;
  }

  get phase(): SessionView['phase'] {
    if (this.end) return 'ended';
    return this.facts.some((fact) => fact.body.kind === 'started') ? 'running' : 'starting';
  }

  /** The session must be polled, because its directory is not watched. */
  get polled(): boolean {
    return this.#watch === null;
  }

  get hasCgroup(): boolean {
    return this.#processes.cgroup !== null;
  }

  /** This process started the session, and its wrapper may not have claimed it yet. */
  get launching(): boolean {
    return this.#launch_state.kind !== 'none' && this.phase === 'starting';
  }

  /** The wrapper has ended, so nothing reports the end of the main process, which must be polled. */
  get orphaned(): boolean {
    return this.#wrapper_gone;
  }

  view(): SessionView {
    const started = this.facts.find((fact) => fact.body.kind === 'started')?.body;
    return {
      session_id: this.id,
      launch: this.launch,
      phase: this.phase,
      pid: started?.kind === 'started' ? started.pid : null,
      started_at_ms: started?.kind === 'started' ? started.started_at_ms : null,
      end: this.end,
      stdin_bytes: this.#stdin_bytes,
      facts: [...this.facts],
    };
  }

  /** Watches the directory and reads it once. `launching`: this process is starting the session. */
  async open(launching: boolean, watches: boolean): Promise<void> {
    if (launching) this.#launch_state = { kind: 'spawning' };
    this.#stdin_bytes = this.files.size('stdin') ?? 0;
    if (this.end) return;
    if (watches) this.#openWatch();
    this.scheduleUpdate();
  }

  /** Records the launcher's answer; `wrapper` is null if it could not be started. */
  launched(wrapper: ProcessRef | null, error?: Error): void {
    this.#launch_state = wrapper ? { kind: 'spawned', wrapper } : { kind: 'none' };
    this.#launch_error = error?.message ?? null;
    this.scheduleUpdate();
  }

  /** Stops watching. Affects no process. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#processes.close();
    this.#watch?.close();
    this.#watch = null;
    this.#notify();
    await this.#updating;
  }

  /** Reads the files again, now or when the current read has finished. Call it when something may have changed. */
  scheduleUpdate(): void {
    this.#update_requested = true;
    if (this.#updating || this.#closed || this.end) return;
    this.#updating = this.#update().finally(() => {
      this.#updating = null;
    });
  }

  /** Resolves when the files have been read that had changed before this call. */
  async settled(): Promise<void> {
    await this.#updating;
  }

  /** Resolves when the phase is no longer `starting`. Throws `node_unreachable` if the node closes first. */
  async started(): Promise<void> {
    while (this.phase === 'starting') {
      if (this.#closed) throw problems.nodeUnreachable();
      await this.#change();
    }
  }

  /** Compares sizes with the last ones, because a watch can miss an event, and there may be no watch. */
  poll(): void {
    if (this.end) return;
    const stdout = this.files.size('out');
    const stderr = this.files.size('err');
    if (stdout !== this.#last_sizes.stdout || stderr !== this.#last_sizes.stderr) {
      this.#last_sizes = { stdout, stderr };
      this.#host.wake(this.id);
    }
    if (this.phase === 'starting' || this.#wrapper_gone || this.files.readExit()) this.scheduleUpdate();
  }

  /** Records that the stdin journal has `length` bytes, and wakes the feeder. */
  async stdinGrew(length: number): Promise<void> {
    this.#stdin_bytes = length;
    this.files.sendLine('wake', '');
  }

  // --- reading the files -------------------------------------------------------------------------------------

  #openWatch(): void {
    try {
      this.#watch = watch(this.files.dir, { persistent: false }, (_event, name) => this.#changed(name));
      this.#watch.on('error', () => this.#watchLost());
    } catch (error) {
      this.#watchLost(error);
    }
  }

  /** Polls the session from now on, because there are too many watches or the file system does not support them. */
  #watchLost(error?: unknown): void {
    this.#watch?.close();
    this.#watch = null;
    if (this.#watch_failed) return;
    this.#watch_failed = true;
    this.#host.log.debug(
      { session_id: this.id, error: String(error ?? '') },
      'cannot watch the session directory; polling it',
    );
  }

  #changed(name: string | Buffer | null): void {
    const stream = this.files.streamOf(name);
    if (stream || name === null) this.#host.wake(this.id, stream);
    if (name === null || name === 'exit' || name === 'handle' || name === 'spawn') this.scheduleUpdate();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  #notify(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter();
  }

  async #update(): Promise<void> {
    while (this.#update_requested && !this.#closed && !this.end) {
      // Sessions take turns, because they read their files synchronously.
      await nextTurn();
      if (this.#closed) return;
      this.#update_requested = false;
      try {
        await this.#updateOnce();
      } catch (error) {
        if (this.#closed) return;
        this.#host.log.error({ session_id: this.id, error: String(error) }, 'cannot read the session');
      }
    }
  }

  async #updateOnce(): Promise<void> {
    const exit = this.files.readExit();
    this.#processes.readHandle();
    this.#spawn ??= this.files.readSpawn();
    const { handle } = this.#processes;
    const same_boot = (handle?.boot_id ?? this.#file.boot_id) === this.#host.boot_id;
    if (handle && this.#spawn?.ok && same_boot && this.phase === 'starting') {
      failpoint('handle');
      // The command has its variables now, and nothing else needs the file.
      this.files.dropEnvironment();
      const started_at_ms = this.#host.clock.now();
      await this.#record({ kind: 'started', pid: handle.main.pid, started_at_ms });
    }
    if (exit) {
      failpoint('exit');
      const explained = await interpretExit(exit, this.#spawn, this.launch.workdir);
      const { at_ms: ended_at_ms, uptime_s } = exit;
      return this.#finish({ exit: explained, ended_at_ms, uptime_s, processes: same_boot });
    }
    if (handle && !same_boot) return this.#finish(this.#withoutProcesses(failed('host_restarted', null)));
    if (!this.files.directoryExists()) return this.#updateWithoutFiles(handle);
    if (this.files.isAliveHeld()) return;
    if (handle) return this.#updateWithoutWrapper(handle);
    const launch = this.#launch_state;
    if (launch.kind === 'spawning') return;
    const is_alive = launch.kind === 'spawned' && isAlive(launch.wrapper);
    if (is_alive) await sleep(5);
    // If the start failed before the command, there is no handle, and `exit` contains the reason.
    if (is_alive || (launch.kind === 'spawned' && (this.files.readHandle() ?? this.files.readExit()))) {
      this.#update_requested = true;
      return;
    }
    await this.#endUnstarted();
  }

  /** Handles a deleted directory, in which `exit` will never appear. */
  async #updateWithoutFiles(handle: HandleFile | null): Promise<void> {
    const launch = this.#launch_state;
    if (launch.kind === 'spawning') return;
    this.#wrapper_gone = true;
    const waits_for = handle?.main ?? (launch.kind === 'spawned' ? launch.wrapper : null);
    if (waits_for && isAlive(waits_for)) return;
    const exit = failed('session_lost', 'the session directory is gone');
    await this.#finish({ ...this.#withoutProcesses(exit), processes: handle !== null });
  }

  /** Handles a killed wrapper: there is a handle but no exit, and no process holds `alive`. */
  async #updateWithoutWrapper(handle: HandleFile): Promise<void> {
    if (this.files.readExit()) {
      this.#update_requested = true;
      return;
    }
    this.#wrapper_gone = true;
    if (isAlive(handle.main)) return;
    const exit = this.#spawn?.ok === false ? failed(this.#spawn.reason, this.#spawn.message) : null;
    await this.#finish({
      exit: exit ?? failed('exit_status_unknown', 'the process that waits for the command was killed'),
      ended_at_ms: this.#host.clock.now(),
      uptime_s: null,
      processes: true,
    });
  }

  /**
   * If there is no handle, no process holds `alive`, and no start is in progress, claims the session so that it can
   * never start.
   */
  async #endUnstarted(): Promise<void> {
    const unclaimed = this.files.claim();
    if (!unclaimed && this.#file.boot_id !== this.#host.boot_id) {
      // The command may have run: a power failure can lose the handle and keep the claim.
      return this.#finish(this.#withoutProcesses(failed('host_restarted', null)));
    }
    if (!unclaimed) {
      // The wrapper died between claim and handle. Whatever it had started must not keep running unnoticed.
      await this.#processes.end(0, { with_helpers: true });
      if (this.files.readHandle() ?? this.files.readExit()) {
        this.#update_requested = true;
        return;
      }
    }
    await this.#finish(
      this.#withoutProcesses(failed('spawn_failed', this.#launch_error ?? START_INTERRUPTED)),
    );
  }

  #withoutProcesses(exit: Exit): Outcome {
    return { exit, ended_at_ms: this.#host.clock.now(), uptime_s: null, processes: false };
  }

  // --- the end ---------------------------------------------------------------------------------------------------

  async #finish(outcome: Outcome): Promise<void> {
    this.#finishing = true;
    const { cleanup, leftovers } = outcome.processes
      ? await this.#endTree(outcome.uptime_s)
      : { cleanup: null, leftovers: [] };
    if (this.#closed) return;
    if (outcome.processes) {
      // The wrapper sends this too, unless it was killed.
      this.files.sendLine('ctl', 'end');
      await this.#helpers.drain(leftovers.length > 0);
      await this.#helpers.reportLatePumps();
    }
    if (this.#closed) return;
    ignoreErrors(() => this.files.dropEnvironment());
    const sizes = this.files.sizes();
    // Only now, because the pump may just have stored the reason.
    const exit = outcome.exit ?? neverStarted(this.files.readTail('err', 1024));
    failpoint('ended');
    await this.#record({
      kind: 'ended',
      end: { exit, sizes, cleanup, leftovers, ended_at_ms: outcome.ended_at_ms },
    });
    ignoreErrors(() => this.files.mark('ended'));
    this.#watch?.close();
    this.#watch = null;
    await this.removeCgroup();
  }

  /** Removes the cgroup, unless it still contains a process that was kept. */
  async removeCgroup(): Promise<void> {
    await this.#processes.removeCgroup();
  }

  /** Ends the processes that the command left behind, or lists them if the agent's `on_exit` is `keep`. */
  async #endTree(uptime_s: number | null): Promise<{ cleanup: Cleanup | null; leftovers: Leftover[] }> {
    const stopped = await this.#stop;
    if (stopped?.cleanup) return { cleanup: stopped.cleanup, leftovers: [] };
    const options = { exit_uptime_s: uptime_s, pipes_free: await this.#helpers.freesPipes() };
    // Without a handle, the command never ran, and the only processes are helpers that are about to end.
    if (this.launch.on_exit === 'keep' && !stopped && this.#processes.handle) {
      const answer = await this.#processes.list(options);
      const leftovers = answer.members.map(({ pid, command }) => ({ pid, command }));
      const empty = answer.populated === false ? 'proven' : 'swept';
      return { cleanup: leftovers.length === 0 ? empty : null, leftovers };
    }
    const { leftover_grace_ms } = this.#host;
    const { cleanup, survivors } = await this.#processes.end(leftover_grace_ms, options);
    return { cleanup, leftovers: survivors.map(({ pid, command }) => ({ pid, command })) };
  }

  /** Lists the process tree, so that its members stay known even if their parents end. */
  async recordProcesses(): Promise<void> {
    if (this.#processes.handle && !this.end && !this.#finishing) await this.#processes.list();
  }

  /**
   * Ends the whole tree; see `Node.stop`. Idempotent: concurrent calls share one result. For an ended session, returns
   * how it was cleaned up.
   */
  stop(grace_ms: number): Promise<StopReport> {
    const { end } = this;
    if (end) return Promise.resolve({ cleanup: end.cleanup ?? 'swept', survivors: [] });
    this.#stop ??= this.#stopNow(grace_ms).finally(() => {
      this.#stop = null;
      this.scheduleUpdate();
    });
    return this.#stop;
  }

  async #stopNow(grace_ms: number): Promise<StopReport> {
    for (let waited_ms = 0; this.phase === 'starting' && waited_ms < limits.start_wait_ms; waited_ms += 20) {
      await sleep(20);
    }
    if (this.end) return { cleanup: this.end.cleanup ?? 'swept', survivors: [] };
    const handle_missing = this.#processes.handle === null;
    // From now on, nothing can start the session: a late wrapper finds that it is claimed.
    if (handle_missing) this.files.claim();
    const { cleanup, survivors } = await this.#processes.end(grace_ms, {
      with_helpers: handle_missing,
    });
    return { cleanup, survivors: survivors.map(({ pid }) => pid) };
  }

  /** Checks that the helpers are alive and not stopped, and replaces dead ones. */
  async checkHelpers(): Promise<void> {
    const { handle } = this.#processes;
    if (this.end) return;
    this.poll();
    const same_boot = handle?.boot_id === this.#host.boot_id;
    if (!handle || !same_boot) return this.scheduleUpdate();
    const all_alive = this.#helpers.areAlive(handle);
    if (this.#finishing) return this.scheduleUpdate();
    if (!all_alive) await this.#helpers.replaceKilled(handle);
  }

  // --- facts -----------------------------------------------------------------------------------------------------

  /** Records a warning, up to `limits.session_warnings_max` per session. Does nothing on an ended session. */
  async warn(code: WarningCode, error: string, details: Record<string, unknown>): Promise<void> {
    if (this.end || this.facts.length > limits.session_warnings_max) return;
    await this.#record({ kind: 'trouble', code, error, details });
  }

  /** The last recorded warning with one of these codes, or null. */
  lastWarning(codes: readonly WarningCode[]): WarningCode | null {
    for (let i = this.facts.length - 1; i >= 0; i--) {
      const { body } = this.facts[i]!;
      if (body.kind === 'trouble' && codes.includes(body.code)) return body.code;
    }
    return null;
  }

  /** Records facts one after the other, so that their numbers have no gaps and their lines do not mix. */
  #record(body: SessionFact['body']): Promise<void> {
    const done = this.#recording.then(() => this.#recordNow(body));
    this.#recording = done.catch(() => {});
    return done;
  }

  async #recordNow(body: SessionFact['body']): Promise<void> {
    // The session ended while a warning waited for its turn. The end is the last fact.
    if (this.end) return;
    const number = this.facts.length + 1;
    const fact = boundFact({ session_id: this.id, number, at_ms: this.#host.clock.now(), body });
    await this.files.appendFact(fact).catch(async (error: unknown) => {
      // The end is reported even if it cannot be stored. The next process finds no directory and reports the same.
      if (body.kind !== 'ended' || this.files.directoryExists()) throw error;
    });
    this.facts.push(fact);
    this.#host.fact(fact);
    this.#notify();
  }
}
