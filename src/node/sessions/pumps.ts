/**
 * Whether the pumps of a session have stored what was written, and how they end. A careful pump is a shell that starts a
 * `dd` to read a piece, and another to copy it to the spool; any other pump is one `cat` (`shell-scripts.ts`).
 */
import { sleep } from '../../base/async.ts';
import {
  commandLine,
  isAlive,
  isStopped,
  type ProcessRef,
  type ProcessStat,
  readChildren,
  readStat,
} from '../../base/proc.ts';
import type { StreamName } from '../../core/event.ts';
import { limits } from '../limits.ts';
import { spoolNames } from './session-files.ts';

/** The file that exists if the stream's pump is careful. Its `dd` writes to it what it has read. */
export function pieceOf(stream: StreamName): string {
  return `${spoolNames[stream]}.piece`;
}

/** Observes whether a pump has stored everything that was in its FIFO at the first look. */
export class PumpWatch {
  readonly #careful: boolean;
  readonly #copies = new Set<number>();
  #asleep = 0;
  #emptied = false;

  constructor(careful: boolean) {
    this.#careful = careful;
  }

  get drained(): boolean {
    return this.#asleep >= 2 || this.#emptied;
  }

  /** The pump's state, as a letter of `ps`; `S` if it waits for its FIFO, and `T` if it was stopped. Null if it has ended. */
  look(pump: ProcessRef): string | null {
    const stat = readStat(pump.pid);
    if (stat?.start !== pump.start || stat.is_dead) return null;
    const state = this.#careful && stat.state === 'S' ? this.#carefulState(pump) : stat.state;
    if (state === 'S') this.#asleep++;
    return state;
  }

  /** The shell sleeps while a `dd` reads, and also while one copies. */
  #carefulState(pump: ProcessRef): 'S' | 'R' {
    const started = startedBy(pump);
    const copies = started.flatMap((stat) => {
      const bytes = / bs=(\d+) count=1 if=\w+\.piece$/.exec(commandLine(stat))?.[1];
      return bytes === undefined ? [] : { pid: stat.pid, bytes: Number(bytes) };
    });
    for (const { pid, bytes } of copies) {
      this.#copies.add(pid);
      // While another process keeps writing, the pump rarely sleeps. But a `dd` that reads less than a piece has emptied the FIFO.
      // What the second copy contains was read after the first look.
      const short = bytes < limits.careful_piece_bytes;
      const most = this.#copies.size > limits.pipe_bytes_max / limits.careful_piece_bytes + 1;
      this.#emptied ||= most || (short && this.#copies.size >= 2);
    }
    return started.some((stat) => readsFifo(stat) && stat.state === 'S') ? 'S' : 'R';
  }
}

/** Kills a pump. Afterwards nothing writes to the spool for it, unless the disk did not respond for a second. */
export async function killPump(pump: ProcessRef): Promise<void> {
  // The shell of a careful pump starts nothing more once it is stopped.
  send(pump, 'SIGSTOP');
  await waitBriefly(() => isStopped(pump) || !isAlive(pump));
  const started = startedBy(pump);
  // A `dd` that copies ends by itself.
  for (const ref of [pump, ...started.filter(readsFifo)]) send(ref, 'SIGKILL');
  await waitBriefly(() => ![pump, ...started].some(isAlive));
}

/** Waits until the condition is true, for about a second at most. */
export async function waitBriefly(condition: () => boolean): Promise<void> {
  for (let tries = 0; tries < 100 && !condition(); tries++) await sleep(10);
}

function startedBy({ pid }: ProcessRef): ProcessStat[] {
  return readChildren(pid).flatMap((child) => [child, ...startedBy(child)]);
}

/** Whether this is the `dd` of a careful pump that reads the FIFO. */
function readsFifo(stat: ProcessStat): boolean {
  return / of=\w+\.piece$/.test(commandLine(stat));
}

function send(ref: ProcessRef, signal: NodeJS.Signals): void {
  if (!isAlive(ref)) return;
  try {
    process.kill(ref.pid, signal);
  } catch {
    // It has just ended.
  }
}
