/**
 * One session on this machine: from what lies in its directory to what is known of it. All steps are taken from the
 * files alone and may be taken again, so a node that was killed anywhere goes on from there. It decides nothing about
 * agents; it says what it observed, as numbered facts, and ends processes when told or when the main one has ended.
 */
import { type FSWatcher, watch } from 'node:fs';
import { sleep } from '../base/async.ts';
import type { Clock } from '../base/clock.ts';
import { failpoint } from '../base/failpoint.ts';
import { limits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import { isAlive, isStopped, type ProcessRef, readStat } from '../base/proc.ts';
import { type StreamName, streamNames } from '../domain/event.ts';
import type { SessionEnd, SessionFact, SessionView, StopReport, TroubleCode } from '../domain/node.ts';
import { problems } from '../domain/problem.ts';
import { type Cleanup, type Exit, type Leftover, START_INTERRUPTED } from '../domain/session.ts';
import { isCgroupOf, isPopulated, removeCgroup } from './cgroup.ts';
import { explainExit, failed } from './exit-status.ts';
import type { Launcher } from './launcher-client.ts';
import {
  type HandleFile,
  type LaunchFile,
  type SessionFiles,
  type SpawnFile,
  spoolNames,
} from './session-files.ts';
import { DEVNULL_PUMP, KEEPER_AGAIN } from './texts.ts';
import type { Tools } from './tools.ts';
import type { Told, TreeAnswer, TreeMember, TreeRequest } from './tree.ts';

/** What a node gives to its sessions. */
export interface SessionHost {
  readonly boot_id: string;
  readonly launcher: Launcher;
  readonly tools: Tools;
  readonly log: Logger;
  readonly clock: Clock;
  readonly leftover_grace_ms: number;
  readonly drain_ms: number;
  /** The guard holds the pumps back: the disk is nearly full. */
  isPaused(): boolean;
  fact(fact: SessionFact): void;
  wake(session_id: string): void;
}

interface Outcome {
  exit: Exit;
  ended_at_ms: number;
  /** Seconds since boot, when the wrapper saw the end. */
  uptime_s: number | null;
  /** False when no process of it can be left: another boot, or none was made. */
  processes: boolean;
}

export class LocalSession {
  readonly id: string;
  readonly files: SessionFiles;
  readonly facts: SessionFact[];
  readonly #host: SessionHost;
  readonly #file: LaunchFile;
  #handle: HandleFile | null = null;
  #spawn: SpawnFile | null = null;
  #known: ProcessRef[] = [];
  /** True while the launcher is asked, then the wrapper on its way to its claim. */
  #launching: boolean | ProcessRef = false;
  #launch_error: string | null = null;
  #wrapper_gone = false;
  #finishing = false;
  #stop: Promise<StopReport> | null = null;
  #watch: FSWatcher | null = null;
  #watch_failed = false;
  #run: Promise<void> | null = null;
  #again = false;
  #closed = false;
  #stdin_bytes = 0;
  #seen: Record<StreamName, number | null> = { stdout: null, stderr: null };
  #waiters: (() => void)[] = [];
  #recording: Promise<void> = Promise.resolve();
  /** Pumps that were asked to be replaced, and are not told of yet: the end may come between. */
  readonly #pumps_asked = new Set<StreamName>();

  constructor(id: string, files: SessionFiles, file: LaunchFile, facts: SessionFact[], host: SessionHost) {
    this.id = id;
    this.files = files;
    this.#file = file;
    this.facts = facts;
    this.#host = host;
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

  get polled(): boolean {
    return this.#watch === null;
  }

  get hasCgroup(): boolean {
    return this.#cgroup !== null;
  }

  /** Started by this very process, and perhaps not claimed by its wrapper yet. */
  get launching(): boolean {
    return this.#launching !== false && this.phase === 'starting';
  }

  /** Nobody waits for the main process any more; its end has to be looked for. */
  get orphaned(): boolean {
    return this.#wrapper_gone;
  }

  get handle(): HandleFile | null {
    return this.#handle;
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

  /** Watches the directory and looks at it once. `launching`: a start by this very process is under way. */
  async open(launching: boolean, watches: boolean): Promise<void> {
    this.#launching = launching;
    this.#stdin_bytes = await this.files.size('stdin');
    if (this.end) return;
    if (watches) this.#openWatch();
    this.poke();
  }

  /** The launcher answered; null: no wrapper came of it. */
  launched(wrapper: ProcessRef | null, error?: Error): void {
    this.#launching = wrapper ?? false;
    this.#launch_error = error?.message ?? null;
    this.poke();
  }

  /** Stops watching. No process is touched. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#watch?.close();
    this.#watch = null;
    this.#notify();
    await this.#run;
  }

  /** Something may have changed: looks at the files, now or once the present look is over. */
  poke(): void {
    this.#again = true;
    if (this.#run || this.#closed || this.end) return;
    this.#run = this.#looks().finally(() => {
      this.#run = null;
    });
  }

  /** Resolves once the phase is another than `starting`. Throws `node_unreachable` when the node closes before. */
  async started(): Promise<void> {
    while (this.phase === 'starting') {
      if (this.#closed) throw problems.nodeUnreachable();
      await this.#change();
    }
  }

  /** Compares sizes with those of the last time: a watch can lose an event, and there may be no watch. */
  poll(): void {
    if (this.end) return;
    const stdout = this.files.sizeNow('out');
    const stderr = this.files.sizeNow('err');
    if (stdout !== this.#seen.stdout || stderr !== this.#seen.stderr) {
      this.#seen = { stdout, stderr };
      this.#host.wake(this.id);
    }
    if (this.phase === 'starting' || this.#wrapper_gone || this.files.sizeNow('exit') !== null) this.poke();
  }

  /** The journal's new length, once the feeder was told. */
  async fed(length: number): Promise<void> {
    this.#stdin_bytes = length;
    await this.files.tell('wake', '');
  }

  // --- looking at the files -------------------------------------------------------------------------------------

  #openWatch(): void {
    try {
      this.#watch = watch(this.files.dir, { persistent: false }, (_event, name) => this.#changed(name));
      this.#watch.on('error', () => this.#watchLost());
    } catch (error) {
      this.#watchLost(error);
    }
  }

  /** The limit of watches is reached (or the file system has none): polled from now on. */
  #watchLost(error?: unknown): void {
    this.#watch?.close();
    this.#watch = null;
    if (this.#watch_failed) return;
    this.#watch_failed = true;
    this.#host.log.debug({ session_id: this.id, error: String(error ?? '') }, 'no watch, polling');
  }

  #changed(name: string | Buffer | null): void {
    if (name === 'out' || name === 'err') this.#host.wake(this.id);
    else if (name === 'exit' || name === 'handle' || name === 'spawn') this.poke();
    else if (name === null) {
      this.#host.wake(this.id);
      this.poke();
    }
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  #notify(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter();
  }

  async #looks(): Promise<void> {
    while (this.#again && !this.#closed && !this.end) {
      this.#again = false;
      try {
        await this.#look();
      } catch (error) {
        if (this.#closed) return;
        this.#host.log.error({ session_id: this.id, error: String(error) }, 'session_look_failed');
      }
    }
  }

  async #look(): Promise<void> {
    const exit = await this.files.readExit();
    this.#handle = (await this.files.readHandle()) ?? this.#handle;
    this.#spawn ??= await this.files.readSpawn();
    const handle = this.#handle;
    const same_boot = (handle?.boot_id ?? this.#file.boot_id) === this.#host.boot_id;
    if (handle && this.#spawn?.ok && same_boot && this.phase === 'starting') {
      failpoint('handle');
      // The command has it; nobody else needs the values.
      await this.files.dropEnvironment();
      const started_at_ms = this.#host.clock.now();
      await this.#record({ kind: 'started', pid: handle.main.pid, started_at_ms });
    }
    if (exit) {
      failpoint('exit');
      const verdict = await explainExit(exit, this.#spawn, this.launch.workdir, () => this.#complaint());
      return this.#finish({
        exit: verdict,
        ended_at_ms: exit.at_ms,
        uptime_s: exit.uptime_s,
        processes: same_boot,
      });
    }
    if (handle && !same_boot) return this.#finish(this.#dead(failed('host_restarted', null)));
    if (!(await this.files.exist())) return this.#lookWithoutFiles(handle);
    if (await this.files.isAliveHeld()) return;
    if (handle) return this.#lookWithoutWrapper(handle);
    if (this.#launching === true) return;
    if (this.#launching && isAlive(this.#launching)) {
      await sleep(5);
      this.#again = true;
      return;
    }
    if (this.#launching && (await this.files.readHandle())) {
      this.#again = true;
      return;
    }
    await this.#lookForNobody();
  }

  /** Somebody has deleted the directory: no exit will ever be read there. */
  async #lookWithoutFiles(handle: HandleFile | null): Promise<void> {
    if (this.#launching === true) return;
    this.#wrapper_gone = true;
    if (handle ? isAlive(handle.main) : this.#launching && isAlive(this.#launching)) return;
    const exit = failed('session_lost', 'the session directory is gone');
    await this.#finish({ ...this.#dead(exit), processes: handle !== null });
  }

  /** Handle, no exit, nobody at `alive`. */
  async #lookWithoutWrapper(handle: HandleFile): Promise<void> {
    if (await this.files.has('exit')) {
      this.#again = true;
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

  /** No handle, nobody at `alive`, no start under way: after this, none will ever come of it. */
  async #lookForNobody(): Promise<void> {
    const unclaimed = await this.files.claim();
    if (!unclaimed) {
      // The wrapper died between claim and handle; what it had begun must not go on unseen.
      await this.#killTree(0, true);
      if (await this.files.readHandle()) {
        this.#again = true;
        return;
      }
    }
    await this.#finish(this.#dead(failed('spawn_failed', this.#launch_error ?? START_INTERRUPTED)));
  }

  #dead(exit: Exit): Outcome {
    return { exit, ended_at_ms: this.#host.clock.now(), uptime_s: null, processes: false };
  }

  /** Last line that a failed start left on stderr. */
  async #complaint(): Promise<string> {
    const text = await this.files.readTail('err', 1024);
    return (text.trim().split('\n').at(-1) ?? '').replace(/[\x00-\x1f\x7f]+/g, ' ');
  }

  // --- the end ---------------------------------------------------------------------------------------------------

  async #finish(outcome: Outcome): Promise<void> {
    this.#finishing = true;
    const { cleanup, leftovers } = outcome.processes
      ? await this.#endTree(outcome.uptime_s)
      : { cleanup: null, leftovers: [] };
    if (this.#closed) return;
    if (outcome.processes) {
      // The wrapper said it too, unless it was killed.
      await this.files.tell('ctl', 'end');
      await this.#drain(leftovers.length > 0);
      await this.#tellLatePumps();
    }
    if (this.#closed) return;
    await this.files.dropEnvironment().catch(() => {});
    const sizes = await this.files.sizes();
    failpoint('ended');
    await this.#record({
      kind: 'ended',
      end: { exit: outcome.exit, sizes, cleanup, leftovers, ended_at_ms: outcome.ended_at_ms },
    });
    await this.files.mark('ended').catch(() => {});
    this.#watch?.close();
    this.#watch = null;
    await this.removeCgroup();
  }

  /** Stays while something that was kept lives there. */
  async removeCgroup(): Promise<void> {
    const { cgroup } = this.#file;
    if (cgroup && isCgroupOf(cgroup, this.id)) await removeCgroup(cgroup);
  }

  /** What the command left behind is killed, or listed and kept. */
  async #endTree(uptime_s: number | null): Promise<{ cleanup: Cleanup | null; leftovers: Leftover[] }> {
    const stopped = await this.#stop;
    if (stopped?.cleanup) return { cleanup: stopped.cleanup, leftovers: [] };
    if (this.launch.on_exit === 'keep' && !stopped) {
      const answer = await this.#sweep(null, uptime_s);
      const leftovers = answer.members.map(({ pid, command }) => ({ pid, command }));
      const empty = answer.populated === false ? 'proven' : 'swept';
      return { cleanup: leftovers.length === 0 ? empty : null, leftovers };
    }
    const { cleanup, survivors } = await this.#killTree(this.#host.leftover_grace_ms, false, uptime_s);
    return { cleanup, leftovers: survivors.map(({ pid, command }) => ({ pid, command })) };
  }

  /**
   * Waits until both pumps have reached the end. Where something still holds the FIFOs, the bytes of the command itself
   * are waited for; what comes later goes to /dev/null.
   */
  async #drain(held: boolean): Promise<void> {
    const begun = performance.now();
    const asleep = streamNames.map(() => 0);
    let pumps: ProcessRef[] = [];
    for (let wait_ms = 2; ; wait_ms = Math.min(wait_ms * 2, 50)) {
      // The keeper puts another in the place of a killed one, also now, and stays until all have ended.
      this.#handle = (await this.files.readHandle()) ?? this.#handle;
      pumps = this.#handle ? Object.values(this.#handle.pumps) : [];
      const states = pumps.map((ref) => {
        const stat = readStat(ref.pid);
        return stat?.start === ref.start && stat.state !== 'Z' ? stat.state : null;
      });
      const over = states.every((state) => state === null) && !(this.#handle && isAlive(this.#handle.keeper));
      if (over || this.#closed) return;
      for (const [index, state] of states.entries()) if (state === 'S') asleep[index]!++;
      const late = performance.now() - begun > this.#host.drain_ms;
      // A pump that sleeps has emptied its FIFO; one that is held back (T) has not.
      const through = states.every((state, index) => state === null || asleep[index]! >= 2);
      if (!states.includes('T') && ((held && through) || late)) break;
      await sleep(wait_ms);
    }
    await this.#replacePumps(pumps);
  }

  async #tellLatePumps(): Promise<void> {
    for (const stream of streamNames) {
      const late = await this.files.has(`${spoolNames[stream]}.again`);
      if (late || this.#pumps_asked.has(stream)) await this.#tellPump(stream);
    }
  }

  #tellPump(stream: StreamName): Promise<void> {
    this.#pumps_asked.delete(stream);
    const error = `the process that stores ${stream} was killed; up to 128 KiB may be missing`;
    return this.trouble('pump_restarted', error, { stream });
  }

  async #replacePumps(pumps: ProcessRef[]): Promise<void> {
    const { sh, cat } = this.#host.tools;
    for (const name of Object.values(spoolNames)) {
      const argv: [string, ...string[]] = [sh, '-c', DEVNULL_PUMP, 'svc', cat, `pipes/${name}`];
      const { pid } = await this.#host.launcher.spawn(argv, this.files.dir, { LC_ALL: 'C' });
      // Its FIFO is open once the shell has become `cat`; the other reader may go then.
      for (let tries = 0; tries < 100 && /sh$/.test(readStat(pid)?.name ?? ''); tries++) await sleep(10);
    }
    for (const ref of pumps) if (isAlive(ref)) process.kill(ref.pid, 'SIGKILL');
  }

  // --- the tree --------------------------------------------------------------------------------------------------

  get #cgroup(): string | null {
    const { cgroup } = this.#file;
    if (!cgroup || this.#handle?.no_cgroup || !isCgroupOf(cgroup, this.id)) return null;
    return cgroup;
  }

  async #sweep(
    signal: TreeRequest['signal'],
    exit_uptime_s: number | null = null,
    told: Told[] = [],
    everything = false,
  ): Promise<TreeAnswer> {
    const handle = everything ? null : this.#handle;
    const helpers = handle
      ? [
          handle.wrapper,
          handle.keeper,
          ...Object.values(handle.pumps),
          ...(handle.feeder ? [handle.feeder] : []),
        ]
      : [];
    const answer = await this.#host.launcher.sweep({
      session_id: this.id,
      pipes: this.files.path('pipes'),
      cgroup: this.#cgroup,
      main: handle?.main ?? null,
      init: handle?.init ?? null,
      wrapper: handle?.wrapper ?? null,
      helpers,
      known: this.#known,
      exit_uptime_s,
      signal,
      told,
    });
    this.#known = answer.members.map(({ pid, start }) => ({ pid, start }));
    return answer;
  }

  /** Notes who belongs to the tree, so that one that hides later is known. */
  async note(): Promise<void> {
    if (this.#handle && !this.end && !this.#finishing) await this.#sweep(null);
  }

  /**
   * TERM and CONT, KILL after the grace, until two looks found nobody (or the cgroup says so). `everything`: helpers too.
   * Throws `node_unreachable` when the node closes meanwhile.
   */
  async #killTree(
    grace_ms: number,
    everything: boolean,
    uptime_s: number | null = null,
  ): Promise<{ cleanup: Cleanup | null; survivors: TreeMember[] }> {
    const begun = performance.now();
    let told: Told[] = [];
    let empty = 0;
    for (let wait_ms = 5; ; wait_ms = Math.min(wait_ms * 2, 100)) {
      if (!everything && empty > 0 && (await this.#isProvenEmpty())) break;
      const past_ms = performance.now() - begun;
      const signal = past_ms >= grace_ms ? 'SIGKILL' : 'SIGTERM';
      const answer = await this.#sweep(signal, uptime_s, told, everything);
      told = answer.told;
      empty = answer.members.length === 0 ? empty + 1 : 0;
      if (empty >= 2) break;
      if (past_ms > grace_ms + limits.kill_wait_ms && empty === 0) {
        return { cleanup: null, survivors: answer.members };
      }
      const left_ms = grace_ms - past_ms;
      await sleep(left_ms > 0 ? Math.min(wait_ms, left_ms) : wait_ms);
      // Whoever asked must not take a tree that lives for one that is gone: the next process is asked again.
      if (this.#closed) throw problems.nodeUnreachable();
    }
    return { cleanup: (await this.#isProvenEmpty()) ? 'proven' : 'swept', survivors: [] };
  }

  /** The kernel says that nothing is left: the cgroup is empty, or the pid namespace has lost its init. */
  async #isProvenEmpty(): Promise<boolean> {
    const init = this.#handle?.init;
    return (init != null && !isAlive(init)) || (await isPopulated(this.#cgroup)) === false;
  }

  /** Ends the whole tree; concurrent calls join. On an ended session it tells how that ended. */
  stop(grace_ms: number): Promise<StopReport> {
    const { end } = this;
    if (end) return Promise.resolve({ cleanup: end.cleanup ?? 'swept', survivors: [] });
    this.#stop ??= this.#stopNow(grace_ms).finally(() => {
      this.#stop = null;
      this.poke();
    });
    return this.#stop;
  }

  async #stopNow(grace_ms: number): Promise<StopReport> {
    for (let waited_ms = 0; this.phase === 'starting' && waited_ms < limits.start_wait_ms; waited_ms += 20) {
      await sleep(20);
    }
    if (this.end) return { cleanup: this.end.cleanup ?? 'swept', survivors: [] };
    const handle_missing = this.#handle === null;
    // No one may start it any more; a wrapper that comes late loses the claim.
    if (handle_missing) await this.files.claim();
    const { cleanup, survivors } = await this.#killTree(grace_ms, handle_missing);
    return { cleanup, survivors: survivors.map(({ pid }) => pid) };
  }

  // --- the helpers -----------------------------------------------------------------------------------------------

  /** Puts another in the place of a killed keeper, pump or feeder; notices a killed wrapper. */
  async checkHelpers(): Promise<void> {
    const handle = this.#handle;
    if (this.end) return;
    this.poll();
    if (handle && handle.boot_id === this.#host.boot_id && !this.#host.isPaused()) wakeStopped(handle);
    if (!handle || this.#finishing || handle.boot_id !== this.#host.boot_id) return this.poke();
    const { main, wrapper, keeper, pumps, feeder } = handle;
    const needed = [main, wrapper, keeper, pumps.stdout, pumps.stderr, ...(feeder ? [feeder] : [])];
    if (needed.every(isAlive)) return;
    if (!isAlive(wrapper)) this.poke();
    if (!isAlive(main) || (await this.files.has('exit'))) return this.poke();
    if (!isAlive(keeper)) await this.#restartKeeper(handle);
    for (const stream of streamNames) {
      if (isAlive(pumps[stream]) || this.#host.isPaused()) continue;
      await this.#endOrphanedReader(stream);
      this.#pumps_asked.add(stream);
      if (!(await this.#restart(spoolNames[stream], (now) => isAlive(now.pumps[stream])))) continue;
      await this.#tellPump(stream);
    }
    if (!feeder || isAlive(feeder) || (await this.files.has('stdin.eof'))) return;
    // A copy that the dead feeder began must end first, or two would mix their bytes.
    if ((await this.#sweep(null)).feeding) return;
    if (this.#handle?.again) {
      await this.files.mark('stdin.eof');
      await this.trouble('feeder_restarted', 'stdin has ended: keeper and feeder were both killed', {});
      await this.files.tell('ctl', 'eof');
    } else if (await this.#restart('feed', (now) => now.feeder !== null && isAlive(now.feeder))) {
      await this.trouble('feeder_restarted', 'the process that feeds stdin was killed', {});
    }
  }

  /** True once the keeper has done it. */
  async #restart(command: string, done: (handle: HandleFile) => boolean): Promise<boolean> {
    if (!(await this.files.tell('ctl', command))) return false;
    for (let tries = 0; tries < 100; tries++) {
      await sleep(20);
      this.#handle = (await this.files.readHandle()) ?? this.#handle;
      if (this.#closed || (await this.files.has('exit'))) return false;
      if (this.#handle && done(this.#handle)) return true;
    }
    return false;
  }

  /** A killed careful pump leaves its `dd` behind, which would take the next bytes and bring them nowhere. */
  async #endOrphanedReader(stream: StreamName): Promise<void> {
    const piece = `${spoolNames[stream]}.piece`;
    if (!(await this.files.has(piece))) return;
    const { dd } = this.#host.tools;
    for (const { pid, start, command } of (await this.#sweep(null)).members) {
      if (command.startsWith(`${dd} `) && command.includes(` of=${piece}`) && isAlive({ pid, start })) {
        process.kill(pid, 'SIGKILL');
      }
    }
  }

  async #restartKeeper(handle: HandleFile): Promise<void> {
    const { sh, mv, cat, ps, dd, sleep: sleepTool } = this.#host.tools;
    const refs = [handle.wrapper, handle.pumps.stdout, handle.pumps.stderr];
    const words = refs.flatMap((ref) => [String(ref.pid), ref.start]);
    const feeder = handle.feeder ? [String(handle.feeder.pid), handle.feeder.start] : ['', ''];
    const main = [String(handle.main.pid), handle.main.start];
    const init = handle.init ? [String(handle.init.pid), handle.init.start] : ['', ''];
    const first = [mv, cat, ps ?? '', handle.boot_id, handle.no_cgroup ? '1' : '', dd, sleepTool];
    await this.#host.launcher.spawn(
      [sh, '-c', KEEPER_AGAIN, 'svc', ...first, ...words, ...feeder, ...main, ...init],
      this.files.dir,
      { LC_ALL: 'C' },
    );
    for (let tries = 0; tries < 100; tries++) {
      await sleep(20);
      this.#handle = (await this.files.readHandle()) ?? this.#handle;
      if (this.#closed || (this.#handle && isAlive(this.#handle.keeper))) return;
    }
  }

  // --- facts -----------------------------------------------------------------------------------------------------

  async trouble(code: TroubleCode, error: string, details: Record<string, unknown>): Promise<void> {
    if (this.end || this.facts.length > limits.session_troubles_max) return;
    await this.#record({ kind: 'trouble', code, error, details });
  }

  /** The last of these troubles that was told, if any. */
  lastTrouble(codes: readonly TroubleCode[]): TroubleCode | null {
    const told = (fact: SessionFact) => fact.body.kind === 'trouble' && codes.includes(fact.body.code);
    const body = this.facts.findLast(told)?.body;
    return body?.kind === 'trouble' ? body.code : null;
  }

  /** One after the other: numbers have no hole and lines do not mix. */
  #record(body: SessionFact['body']): Promise<void> {
    const done = this.#recording.then(() => this.#recordNow(body));
    this.#recording = done.catch(() => {});
    return done;
  }

  async #recordNow(body: SessionFact['body']): Promise<void> {
    const number = this.facts.length + 1;
    const fact: SessionFact = { session_id: this.id, number, at_ms: this.#host.clock.now(), body };
    await this.files.appendFact(fact).catch(async (error: unknown) => {
      // An end is told even where it cannot be kept: the next process finds no directory, and says the same.
      if (body.kind !== 'ended' || (await this.files.exist())) throw error;
    });
    this.facts.push(fact);
    this.#host.fact(fact);
    this.#notify();
  }
}

/** The guard stops pumps and lets them go; one that is killed in between leaves them stopped, and the agent blocked. */
function wakeStopped({ wrapper, keeper, pumps, feeder }: HandleFile): void {
  for (const ref of [wrapper, keeper, pumps.stdout, pumps.stderr, ...(feeder ? [feeder] : [])]) {
    if (!isStopped(ref)) continue;
    try {
      process.kill(ref.pid, 'SIGCONT');
    } catch {
      // Gone meanwhile.
    }
  }
}
