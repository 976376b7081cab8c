/**
 * The node's side of the launcher. It starts the launcher on demand and ends it when it is idle. If a launcher is
 * killed, its open requests go to a new one. Repeating them is safe: a second start finds the session claimed, scans
 * and signals have the same effect again, and git commands find what already exists.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ProcessRef } from '../../base/proc.ts';
import { entryPoint } from '../../base/program-files.ts';
import { problems } from '../../core/problem.ts';
import { limits } from '../limits.ts';
import type { Exec, ExecOptions, ExecResult } from './exec.ts';
import { type LauncherAnswer, type LauncherTask, lineOf } from './launcher-wire.ts';
import type { SessionOwned, TreeAnswer, TreeRequest } from './process-tree.ts';

interface Pending {
  line: string;
  tries_left: number;
  /** True if the request is always answered quickly, so that a launcher that does not answer it must be stuck. */
  quick: boolean;
  late: NodeJS.Timeout | undefined;
  resolve(value: unknown): void;
  reject(error: Error): void;
}

const entry = fileURLToPath(entryPoint('node/processes/launcher'));

export class Launcher implements Exec {
  readonly #pending = new Map<number, Pending>();
  /** The living sessions, whose helpers a scan must not take for processes of another session. */
  readonly sessions = new Set<{ readonly owned: SessionOwned | null }>();
  #child: ChildProcess | null = null;
  #next_id = 1;
  #idle: NodeJS.Timeout | undefined;
  #closed = false;
  readonly #answer_ms: number;
  #queued: { request: TreeRequest; resolve(answer: TreeAnswer): void; reject(error: Error): void }[] = [];
  #sweeping = false;

  constructor(options: { answer_ms?: number } = {}) {
    this.#answer_ms = options.answer_ms ?? limits.launcher_answer_ms;
  }

  /** Pid of the current launcher; null if none is running. */
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /**
   * Starts a program detached from the service, with exactly the variables `env`. Rejects if it cannot be started, and
   * with `node_unreachable` once the launcher is closed. A launcher that is killed may start the program twice.
   */
  async spawn(argv: [string, ...string[]], cwd: string, env: Record<string, string>): Promise<ProcessRef> {
    return (await this.#ask({ op: 'spawn', argv, cwd, env })) as ProcessRef;
  }

  /** See `Exec.run`. Also rejects with `node_unreachable` once the launcher is closed. */
  async run(argv: readonly [string, ...string[]], options: ExecOptions): Promise<ExecResult> {
    const result = (await this.#ask({
      op: 'run',
      argv: [...argv],
      cwd: options.cwd,
      env: options.env,
      stdin: options.stdin ? Buffer.from(options.stdin).toString('base64') : null,
      output_bytes_max: options.output_bytes_max,
      timeout_ms: options.timeout_ms,
    })) as Omit<ExecResult, 'stdout' | 'stderr'> & { stdout: string; stderr: string };
    return {
      ...result,
      stdout: Buffer.from(result.stdout, 'base64'),
      stderr: Buffer.from(result.stderr, 'base64'),
    };
  }

  /** Scans for one session's process tree. Requests that arrive during a scan share the next scan. */
  sweep(request: TreeRequest): Promise<TreeAnswer> {
    return new Promise((resolve, reject) => {
      this.#queued.push({ request, resolve, reject });
      if (!this.#sweeping) void this.#sweepAll();
    });
  }

  /** Rejects open requests and ends the launcher. Processes that it spawned keep running. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#idle);
    for (const pending of this.#pending.values()) {
      clearTimeout(pending.late);
      pending.reject(problems.nodeUnreachable());
    }
    this.#pending.clear();
    this.#child?.stdin?.destroy();
  }

  async #sweepAll(): Promise<void> {
    this.#sweeping = true;
    while (this.#queued.length > 0) {
      // Waits for one turn of the event loop, so that stops requested at the same time share a scan.
      await new Promise((resolve) => setImmediate(resolve));
      const batch = this.#queued;
      this.#queued = [];
      try {
        const answers = (await this.#ask({
          op: 'sweep',
          trees: batch.map(({ request }) => request),
          owned: [...this.sessions].flatMap(({ owned }) => owned ?? []),
        })) as TreeAnswer[];
        for (const [index, { resolve }] of batch.entries()) resolve(answers[index] as TreeAnswer);
      } catch (error) {
        for (const { reject } of batch) reject(error as Error);
      }
    }
    this.#sweeping = false;
  }

  #ask(task: LauncherTask): Promise<unknown> {
    if (this.#closed) return Promise.reject(problems.nodeUnreachable());
    return new Promise((resolve, reject) => {
      const id = this.#next_id++;
      const line = lineOf({ id, ...task });
      const pending = {
        line,
        tries_left: limits.launcher_tries,
        quick: task.op !== 'run',
        late: undefined,
        resolve,
        reject,
      };
      this.#pending.set(id, pending);
      clearTimeout(this.#idle);
      if (this.#child) this.#send(this.#child, pending);
      else this.#open();
    });
  }

  #send(child: ChildProcess, pending: Pending): void {
    clearTimeout(pending.late);
    if (pending.quick) pending.late = setTimeout(() => child.kill('SIGKILL'), this.#answer_ms).unref();
    child.stdin?.write(pending.line);
  }

  /** Starts a launcher and sends it all open requests. */
  #open(): void {
    const env: Record<string, string> = {};
    for (const [name, value] of Object.entries(process.env)) {
      if (value !== undefined && !name.startsWith('SVC_') && !name.startsWith('NODE_')) env[name] = value;
    }
    let child: ChildProcess;
    try {
      child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', entry], {
        cwd: '/',
        env,
        stdio: ['pipe', 'pipe', 'ignore'],
      });
    } catch (error) {
      this.#failed(error as Error);
      return;
    }
    this.#child = child;
    child.on('error', (error) => this.#ended(child, error));
    child.on('exit', (code, signal) => this.#ended(child, new Error(`launcher ended: ${signal ?? code}`)));
    // If no descriptors are left, the child has no pipes, and `error` follows.
    if (!child.stdin || !child.stdout) return;
    child.stdin.on('error', () => {});
    const answers = createInterface({ input: child.stdout, crlfDelay: Number.POSITIVE_INFINITY });
    answers.on('line', (line) => {
      const answer = parseAnswer(line);
      if (answer) this.#answered(answer);
    });
    for (const pending of this.#pending.values()) this.#send(child, pending);
  }

  #answered(answer: LauncherAnswer): void {
    const pending = this.#pending.get(answer.id);
    if (!pending) return;
    this.#pending.delete(answer.id);
    clearTimeout(pending.late);
    if ('ok' in answer) pending.resolve(answer.ok);
    else pending.reject(Object.assign(new Error(answer.error.message), { code: answer.error.code }));
    if (this.#pending.size === 0) {
      clearTimeout(this.#idle);
      this.#idle = setTimeout(() => this.#release(), limits.launcher_idle_ms);
      this.#idle.unref();
    }
  }

  #release(): void {
    const child = this.#child;
    this.#child = null;
    child?.stdin?.end();
  }

  #ended(child: ChildProcess, error: Error): void {
    if (this.#child !== child) return;
    this.#child = null;
    if (!this.#closed) this.#failed(error);
  }

  /** Sends open requests to a new launcher, up to `limits.launcher_tries` times each. */
  #failed(error: Error): void {
    for (const [id, pending] of this.#pending) {
      clearTimeout(pending.late);
      if (--pending.tries_left > 0) continue;
      this.#pending.delete(id);
      pending.reject(error);
    }
    if (this.#pending.size > 0) this.#open();
  }
}

/** Returns null for an incomplete last line of a killed launcher. The next launcher gets that request again. */
function parseAnswer(line: string): LauncherAnswer | null {
  try {
    return JSON.parse(line) as LauncherAnswer;
  } catch {
    return null;
  }
}
