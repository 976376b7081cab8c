/**
 * Runs short programs (mostly git) by argv, never through a shell, and returns their output. It limits their time and
 * output, and ends the whole process group. There are two implementations of `Exec`: this one and the launcher, which forks
 * in less time.
 */
import { spawn } from 'node:child_process';
import { limits } from '../limits.ts';

export interface ExecOptions {
  cwd: string;
  /** All environment variables of the program; it inherits no others. */
  env: Record<string, string>;
  /** Bytes for standard input. Default: standard input is /dev/null. */
  stdin?: Uint8Array;
  /** How many bytes of each stream to return. The rest is read and discarded. */
  output_bytes_max: number;
  /** The program and its process group are killed after this time. */
  timeout_ms: number;
}

export interface ExecResult {
  /** Null if a signal ended the program. */
  code: number | null;
  signal: string | null;
  stdout: Buffer;
  stderr: Buffer;
  /** True if either stream was longer than `output_bytes_max`. */
  truncated: boolean;
  timed_out: boolean;
}

export interface Exec {
  /**
   * Resolves when the program has ended, whatever its exit code. Rejects only if it could not be started, with an Error
   * whose `code` is an errno name (`ENOENT`, `EACCES`).
   */
  run(argv: readonly [string, ...string[]], options: ExecOptions): Promise<ExecResult>;
}

/** The process groups that `directExec` has started and whose first process is still running. */
const running = new Set<number>();

/** Kills every program that `directExec` is running, with its process group. */
export function killRunning(): void {
  for (const pid of running) killGroup(pid);
}

/** Starts programs directly from this process. */
export const directExec: Exec = {
  run: ([program, ...args], options) =>
    new Promise((resolve, reject) => {
      // `detached` creates a new session, so that the timeout also ends helper processes and nothing can prompt on a
      // terminal.
      const child = spawn(program, args, {
        cwd: options.cwd,
        env: options.env,
        stdio: [options.stdin ? 'pipe' : 'ignore', 'pipe', 'pipe'],
        detached: true,
      });
      const { pid } = child;
      if (pid !== undefined) running.add(pid);
      const stdout = new CappedBuffer(options.output_bytes_max);
      const stderr = new CappedBuffer(options.output_bytes_max);
      let timed_out = false;
      let late: NodeJS.Timeout | undefined;

      const timer = setTimeout(() => {
        timed_out = true;
        killGroup(child.pid);
      }, options.timeout_ms);

      child.stdout?.on('data', (bytes: Buffer) => stdout.add(bytes));
      child.stderr?.on('data', (bytes: Buffer) => stderr.add(bytes));
      // A program may end without reading its input.
      child.stdin?.on('error', () => {});
      child.stdin?.end(options.stdin);

      child.on('error', (error) => {
        if (child.pid !== undefined) return;
        clearTimeout(timer);
        reject(error);
      });
      child.on('exit', () => {
        running.delete(pid!);
        // A process that the program left behind may hold the pipes open indefinitely.
        late = setTimeout(() => {
          child.stdout?.destroy();
          child.stderr?.destroy();
        }, limits.exec_drain_ms);
      });
      child.on('close', (code, signal) => {
        clearTimeout(timer);
        clearTimeout(late);
        resolve({
          code,
          signal,
          stdout: stdout.bytes(),
          stderr: stderr.bytes(),
          truncated: stdout.truncated || stderr.truncated,
          timed_out,
        });
      });
    }),
};

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has already ended.
  }
}

class CappedBuffer {
  truncated = false;
  readonly #chunks: Buffer[] = [];
  #left: number;

  constructor(bytes_max: number) {
    this.#left = bytes_max;
  }

  add(bytes: Buffer): void {
    if (bytes.length > this.#left) this.truncated = true;
    const kept = bytes.subarray(0, this.#left);
    if (kept.length === 0) return;
    this.#left -= kept.length;
    this.#chunks.push(kept);
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }
}
