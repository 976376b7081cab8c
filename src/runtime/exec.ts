/**
 * Runs short programs (git, mostly) by argv and gives back what they said. It owns the bounds: time, output, the whole
 * process group at the end. It knows no shell. `Exec` is a seam: a launcher process can run the same thing, because a
 * fork costs in proportion to the memory of who forks.
 */
import { spawn } from 'node:child_process';
import { limits } from '../base/limits.ts';

export interface ExecOptions {
  cwd: string;
  /** The whole environment; nothing is inherited. */
  env: Record<string, string>;
  /** Bytes for standard input; without them it is /dev/null. */
  stdin?: Uint8Array;
  /** Kept of each stream; what comes after it is read and thrown away. */
  output_bytes_max: number;
  /** After it the program and its process group get KILL. */
  timeout_ms: number;
}

export interface ExecResult {
  /** Null when a signal ended it. */
  code: number | null;
  signal: string | null;
  stdout: Buffer;
  stderr: Buffer;
  /** True when either stream was longer than `output_bytes_max`. */
  truncated: boolean;
  timed_out: boolean;
}

export interface Exec {
  /**
   * Resolves once the program has ended, whatever its exit code. Rejects, with an Error whose `code` is an errno name
   * (`ENOENT`, `EACCES`), only when it could not be started.
   */
  run(argv: readonly [string, ...string[]], options: ExecOptions): Promise<ExecResult>;
}

/** Starts programs from this very process. */
export const directExec: Exec = {
  run: ([program, ...args], options) =>
    new Promise((resolve, reject) => {
      // A session of its own: the timeout reaches helpers too, and nothing can prompt on a terminal.
      const child = spawn(program, args, {
        cwd: options.cwd,
        env: options.env,
        stdio: [options.stdin ? 'pipe' : 'ignore', 'pipe', 'pipe'],
        detached: true,
      });
      const stdout = new Capped(options.output_bytes_max);
      const stderr = new Capped(options.output_bytes_max);
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
        // Something that it left behind may hold the pipes open for ever.
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
    // Already gone.
  }
}

class Capped {
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
