/**
 * The helpers of one session: the service's processes that carry its bytes. Any of them can be killed, so this module
 * checks whether they are alive, replaces dead ones, and waits for the pumps at the end of the session.
 * `shell-scripts.ts` describes what each helper does.
 */
import { sleep } from '../../base/async.ts';
import { isAlive, type ProcessRef, readStat, stateOf } from '../../base/proc.ts';
import { type StreamName, streamNames } from '../../core/event.ts';
import type { WarningCode } from '../../core/node.ts';
import { limits } from '../limits.ts';
import type { Launcher } from '../processes/launcher-client.ts';
import type { Tools } from '../processes/tools.ts';
import { killPump, PumpWatch, pieceOf, waitBriefly } from './pumps.ts';
import { type HandleFile, type SessionFiles, spoolNames } from './session-files.ts';
import type { SessionProcesses } from './session-processes.ts';
import { DEVNULL_PUMP, REPLACEMENT_KEEPER, shellScript } from './shell-scripts.ts';

export interface SessionHelpersOptions {
  agent_id: string;
  files: SessionFiles;
  processes: SessionProcesses;
  launcher: Launcher;
  tools: Tools;
  /** How long `drain` waits for the pumps, in ms. */
  drain_ms: number;
  /** The disk is nearly full and the guard has stopped the pumps. */
  isPaused(): boolean;
  /** The state of the session may have changed. */
  scheduleUpdate(): void;
  /** Records a warning as a fact of the session. */
  warn(code: WarningCode, message: string, details: Record<string, unknown>): Promise<void>;
}

export class SessionHelpers {
  readonly #options: SessionHelpersOptions;
  /** When the main process was first seen to have ended while the init of its namespace was still running. */
  #headless_since: number | null = null;
  /** Pumps whose replacement was requested but is not yet reported. The session may end before the report. */
  readonly #pumps_requested = new Set<StreamName>();

  constructor(options: SessionHelpersOptions) {
    this.#options = options;
  }

  /**
   * Whether the main process and all helpers are alive. Continues helpers that are stopped, because a guard that is killed
   * after it has stopped pumps would leave the agent blocked.
   */
  areAlive({ main, wrapper, keeper, pumps, feeder }: HandleFile): boolean {
    let all_alive = isAlive(main);
    const may_continue = !this.#options.isPaused();
    for (const ref of [wrapper, keeper, pumps.stdout, pumps.stderr, ...(feeder ? [feeder] : [])]) {
      // Each process is looked up once: that is most of what the service does while agents are idle.
      const state = stateOf(ref);
      if (state === 'ended') all_alive = false;
      if (state === 'stopped' && may_continue) continueProcess(ref);
    }
    return all_alive;
  }

  /** Replaces a killed keeper, pump or feeder, and reports a killed wrapper. */
  async replaceKilled(handle: HandleFile): Promise<void> {
    const { files, processes, isPaused, scheduleUpdate } = this.#options;
    const { main, wrapper, keeper, pumps, feeder } = handle;
    if (!isAlive(wrapper)) scheduleUpdate();
    if (!isAlive(main) || files.readExit()) {
      await this.#endBlockedInit(main);
      return scheduleUpdate();
    }
    if (!isAlive(keeper)) await this.#restartKeeper(handle);
    for (const stream of streamNames) {
      if (isAlive(pumps[stream]) || isPaused()) continue;
      await this.#endOrphanedReader(stream);
      this.#pumps_requested.add(stream);
      if (!(await this.#restart(spoolNames[stream], (now) => isAlive(now.pumps[stream])))) continue;
      await this.#reportPump(stream);
    }
    if (!feeder || isAlive(feeder) || files.has('stdin.eof')) return;
    // A `cat` that the dead feeder started must finish first. Otherwise, the bytes of two feeders would mix.
    if ((await processes.list()).feeding) return;
    if (processes.handle?.is_replacement) {
      files.mark('stdin.eof');
      await this.#options.warn('feeder_restarted', 'stdin has ended: keeper and feeder were both killed', {});
      files.sendLine('ctl', 'eof');
    } else if (await this.#restart('feed', (now) => now.feeder !== null && isAlive(now.feeder))) {
      await this.#options.warn('feeder_restarted', 'the process that feeds stdin was killed', {});
    }
  }

  /**
   * Waits a moment for the pumps and the keeper to end, as they do if the command leaves no process behind that holds
   * the FIFOs. Returns true if the kernel then reports that no process holds one of them, so that no search is needed.
   */
  async freesPipes(): Promise<boolean> {
    const { files, processes } = this.#options;
    const { handle } = processes;
    if (!handle) return false;
    const helpers = [
      handle.keeper,
      ...Object.values(handle.pumps),
      ...(handle.feeder ? [handle.feeder] : []),
    ];
    for (let waited_ms = 0; helpers.some(isAlive); waited_ms += 2) {
      if (waited_ms >= limits.pipes_wait_ms || processes.closed) return false;
      await sleep(2);
    }
    return !['in', 'out', 'err'].some((name) => files.isHeld(name));
  }

  /**
   * Waits until both pumps have reached the end of their FIFOs. `held`: another process still holds the FIFOs, so only
   * the bytes of the command itself are waited for, and later bytes go to /dev/null.
   */
  async drain(held: boolean): Promise<void> {
    const { files, processes, drain_ms } = this.#options;
    const begun = performance.now();
    const watches = streamNames.map((stream) => new PumpWatch(files.has(pieceOf(stream))));
    let pumps: ProcessRef[] = [];
    for (let wait_ms = 2; ; wait_ms = Math.min(wait_ms * 2, 50)) {
      // The keeper keeps replacing killed pumps until all of them have ended.
      processes.readHandle();
      const { handle } = processes;
      pumps = handle ? streamNames.map((stream) => handle.pumps[stream]) : [];
      const states = pumps.map((ref, index) => watches[index]!.look(ref));
      const over = states.every((state) => state === null) && !(handle && isAlive(handle.keeper));
      if (over || processes.closed) return;
      const late = performance.now() - begun > drain_ms;
      const drained = states.every((state, index) => state === null || watches[index]!.drained);
      if (!states.includes('T') && ((held && drained) || late)) break;
      await sleep(wait_ms);
    }
    await this.#discardRest(pumps);
  }

  /** Warns about pumps that were replaced during the end of the session. */
  async reportLatePumps(): Promise<void> {
    for (const stream of streamNames) {
      const late = this.#options.files.has(`${spoolNames[stream]}.again`);
      if (late || this.#pumps_requested.has(stream)) await this.#reportPump(stream);
    }
  }

  #reportPump(stream: StreamName): Promise<void> {
    this.#pumps_requested.delete(stream);
    const message = `the process that stores ${stream} was killed; up to 128 KiB may be missing`;
    return this.#options.warn('pump_restarted', message, { stream });
  }

  /** Replaces the pumps with processes that discard what they read. */
  async #discardRest(pumps: ProcessRef[]): Promise<void> {
    const { files, launcher, tools } = this.#options;
    for (const name of Object.values(spoolNames)) {
      const argv: [string, ...string[]] = [tools.sh, '-c', DEVNULL_PUMP, 'svc', tools.cat, `pipes/${name}`];
      const { pid } = await launcher.spawn(argv, files.dir, { LC_ALL: 'C' });
      // The FIFO is open once the shell has become `cat`. The other reader may end only after that.
      await waitBriefly(() => !/sh$/.test(readStat(pid)?.name ?? ''));
    }
    await Promise.all(pumps.map(killPump));
  }

  /**
   * The namespace's init reports the end to the wrapper. An agent can block the init with ptrace, so that the end would
   * never be noticed. If the init is killed, the kernel ends the rest, and the wrapper writes `exit`.
   */
  async #endBlockedInit(main: ProcessRef): Promise<void> {
    const { files, processes } = this.#options;
    if (!processes.liveInit || isAlive(main) || files.readExit()) return;
    this.#headless_since ??= performance.now();
    if (performance.now() - this.#headless_since > limits.init_end_ms) await processes.end(0);
  }

  /** Sends the keeper a command. Returns true once `done` accepts the new handle, false after about 2 s. */
  async #restart(command: string, done: (handle: HandleFile) => boolean): Promise<boolean> {
    const { files, processes } = this.#options;
    if (!files.sendLine('ctl', command)) return false;
    for (let tries = 0; tries < 100; tries++) {
      await sleep(20);
      processes.readHandle();
      if (processes.closed || files.readExit()) return false;
      if (processes.handle && done(processes.handle)) return true;
    }
    return false;
  }

  /** A killed careful pump leaves its `dd` running, which would read the next bytes and lose them. */
  async #endOrphanedReader(stream: StreamName): Promise<void> {
    const { files, processes, tools } = this.#options;
    const piece = pieceOf(stream);
    if (!files.has(piece)) return;
    for (const { pid, start, command } of (await processes.list()).members) {
      if (command.startsWith(`${tools.dd} `) && command.includes(` of=${piece}`) && isAlive({ pid, start })) {
        process.kill(pid, 'SIGKILL');
      }
    }
  }

  async #restartKeeper(handle: HandleFile): Promise<void> {
    const { agent_id, files, processes, launcher, tools } = this.#options;
    const { sh, mv, cat, ps, dd, sleep: sleepTool } = tools;
    const refs = [handle.wrapper, handle.pumps.stdout, handle.pumps.stderr];
    const helper_refs = refs.flatMap((ref) => [String(ref.pid), ref.start]);
    const feeder = handle.feeder ? [String(handle.feeder.pid), handle.feeder.start] : ['', ''];
    const main = [String(handle.main.pid), handle.main.start];
    const init = handle.init ? [String(handle.init.pid), handle.init.start] : ['', ''];
    const { options, env } = shellScript(`session of ${agent_id}`, REPLACEMENT_KEEPER);
    const first = [mv, cat, ps ?? '', handle.boot_id, handle.no_cgroup ? '1' : '', dd, sleepTool];
    await launcher.spawn(
      [sh, ...options, 'svc', ...first, ...helper_refs, ...feeder, ...main, ...init],
      files.dir,
      { ...env, LC_ALL: 'C' },
    );
    for (let tries = 0; tries < 100; tries++) {
      await sleep(20);
      processes.readHandle();
      if (processes.closed || (processes.handle && isAlive(processes.handle.keeper))) return;
    }
  }
}

function continueProcess({ pid }: ProcessRef): void {
  try {
    process.kill(pid, 'SIGCONT');
  } catch {
    // It has ended in the meantime.
  }
}
