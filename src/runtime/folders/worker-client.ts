/**
 * The node's end of folder workers. Each view of the machine has a worker of its own, started on demand and let go when
 * idle. A worker is as little to be believed as an agent: its answers are bounded and their shapes checked.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Semaphore } from '../../base/async.ts';
import { limits } from '../../base/limits.ts';
import { Problem, problems } from '../../domain/problem.ts';
import { lineOf } from '../launcher-wire.ts';
import { asUser, type RunAs } from '../run-as.ts';
import type { Confinement, FolderView, Sandbox } from '../sandbox.ts';
import { type JobAnswer, type JobContext, type JobName, type JobRequest, jobs } from './jobs.ts';
import { answerSchemas, lineSchema } from './worker-answers.ts';
import type { WorkerAnswer, WorkerHello, WorkerRequest } from './worker-wire.ts';

/** Does a job where `view` is seen. Throws the job's Problem; `unavailable` when it could not be done at all. */
export type RunJob = <Name extends JobName>(
  view: FolderView,
  job: Name,
  request: JobRequest<Name>,
) => Promise<JobAnswer<Name>>;

/** Without confinement there is nothing to keep a job from. */
export function inThisProcess(context: JobContext): RunJob {
  return (_view, job, request) => (jobs[job] as (...args: unknown[]) => Promise<never>)(context, request);
}

export interface FolderWorkersOptions {
  /** The service's environment. */
  env: Readonly<Record<string, string | undefined>>;
  run_as: RunAs | null;
  sandbox: Sandbox | null;
  repo_roots: () => Promise<string[]>;
}

/** `worker.ts` in the tree, `worker.js` in the built package. */
const entry = fileURLToPath(
  new URL(`./worker${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
);
const VARIABLES = ['PATH', 'HOME', 'XDG_CONFIG_HOME', 'TMPDIR', 'USER', 'LOGNAME'];
const NO_CONFINEMENT: Confinement = {
  argv: [],
  places: [],
  ids: [],
  masks: [],
  entries: [],
  pid_namespace: false,
  release: async () => {},
};

export class FolderWorkers {
  readonly #options: FolderWorkersOptions;
  readonly #workers = new Map<string, Worker>();
  readonly #turns = new Semaphore(limits.folder_workers_max);
  #closed = false;

  constructor(options: FolderWorkersOptions) {
    this.#options = options;
  }

  readonly run: RunJob = (view, job, request) =>
    this.#turns.run(async () => {
      const { sandbox } = this.#options;
      await sandbox?.check();
      if (this.#closed) throw problems.nodeUnreachable();
      const confinement = sandbox ? await sandbox.folders(view).catch(gone) : NO_CONFINEMENT;
      try {
        const answer = await (await this.#worker(confinement)).ask(job, request);
        return answerSchemas[job].parse(answer) as never;
      } finally {
        await confinement.release();
      }
    });

  /** Ends every worker. What git began, it ends by itself. */
  close(): void {
    this.#closed = true;
    for (const worker of this.#workers.values()) worker.close();
    this.#workers.clear();
  }

  async #worker({ argv, places, ids, masks, entries }: Confinement): Promise<Worker> {
    const { run_as, env } = this.#options;
    const repo_roots = await this.#options.repo_roots();
    const key = JSON.stringify([argv, ids, repo_roots]);
    const found = this.#workers.get(key);
    if (found && !found.ended) return found;
    const program = [process.execPath, '--disable-warning=ExperimentalWarning', entry];
    const confined = argv.length > 0;
    const kept = VARIABLES.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]));
    const variables = Object.fromEntries(kept) as Record<string, string>;
    const command = confined ? asUser([...argv, ...program] as [string, ...string[]], run_as) : program;
    const hello = {
      places,
      ids,
      masks,
      entries,
      run_as,
      drop: run_as !== null && !confined,
      env: variables,
      repo_roots,
    };
    const worker = new Worker(command, hello, () => {
      if (this.#workers.get(key) === worker) this.#workers.delete(key);
    });
    this.#workers.set(key, worker);
    return worker;
  }
}

/** The folder is not what it was a moment ago. */
function gone(error: NodeJS.ErrnoException): never {
  if (error instanceof Problem) throw error;
  throw error.code === 'ENOENT' ? problems.workdirMissing() : problems.workdirNotSafe();
}

interface Pending {
  resolve(value: unknown): void;
  reject(error: Error): void;
  late: NodeJS.Timeout;
}

class Worker {
  readonly #child: ChildProcess;
  readonly #pending = new Map<number, Pending>();
  readonly #onEnd: () => void;
  #next_id = 1;
  #idle: NodeJS.Timeout | undefined;
  #unread: Buffer[] = [];
  #unread_bytes = 0;
  #complaint = '';
  ended = false;

  constructor(command: readonly string[], hello: WorkerHello, onEnd: () => void) {
    this.#onEnd = onEnd;
    const [program, ...args] = command as [string, ...string[]];
    const { PATH = '/usr/bin:/bin' } = hello.env;
    // A group of its own, so that all of it can be ended.
    this.#child = spawn(program, args, { cwd: '/', env: { PATH }, stdio: 'pipe', detached: true });
    const { stdin, stdout, stderr } = this.#child;
    this.#child.on('error', (error) => this.#end(error.message));
    this.#child.on('close', () => this.#end(this.#complaint.trim().split('\n').at(-1) || 'it ended'));
    stdin?.on('error', () => {});
    stdin?.write(lineOf(hello));
    stdout?.on('data', (bytes: Buffer) => this.#read(bytes));
    stderr?.on('data', (bytes: Buffer) => {
      this.#complaint = (this.#complaint + bytes.toString()).slice(-2_000);
    });
  }

  ask(job: JobName, request: unknown): Promise<unknown> {
    clearTimeout(this.#idle);
    return new Promise((resolve, reject) => {
      const id = this.#next_id++;
      // Everything that a job starts has its own, shorter time.
      const late = setTimeout(() => this.#kill('it did not answer in time'), limits.folder_job_ms);
      this.#pending.set(id, { resolve, reject, late });
      if (this.ended) this.#end('it ended');
      else this.#child.stdin?.write(lineOf({ id, job, request } satisfies WorkerRequest));
    });
  }

  close(): void {
    this.#end('the node is closing');
  }

  /** Lines of JSON; one that gets too long is the end of the worker. */
  #read(bytes: Buffer): void {
    let rest = bytes;
    for (let end = rest.indexOf(0x0a); end !== -1; end = rest.indexOf(0x0a)) {
      const line = Buffer.concat([...this.#unread, rest.subarray(0, end)]);
      rest = rest.subarray(end + 1);
      this.#unread = [];
      this.#unread_bytes = 0;
      this.#answered(line);
    }
    if (rest.length === 0) return;
    this.#unread.push(rest);
    this.#unread_bytes += rest.length;
    if (this.#unread_bytes > limits.folder_answer_bytes_max) this.#kill('its answer is too long');
  }

  #answered(line: Buffer): void {
    let answer: WorkerAnswer;
    try {
      answer = lineSchema.parse(JSON.parse(line.toString())) as WorkerAnswer;
    } catch {
      this.#kill('its answer is malformed');
      return;
    }
    const pending = this.#pending.get(answer.id);
    if (!pending) return;
    this.#pending.delete(answer.id);
    clearTimeout(pending.late);
    if ('ok' in answer) pending.resolve(answer.ok);
    else if ('problem' in answer) {
      const { kind, code, message } = answer.problem;
      pending.reject(new Problem(kind, code, message));
    } else pending.reject(Object.assign(new Error(answer.failure.message), { code: answer.failure.code }));
    if (this.#pending.size > 0) return;
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#end('it was idle'), limits.launcher_idle_ms).unref();
  }

  #kill(why: string): void {
    const { pid } = this.#child;
    this.#end(why);
    try {
      if (pid !== undefined) process.kill(-pid, 'SIGKILL');
    } catch {
      // Gone already.
    }
  }

  #end(why: string): void {
    this.ended = true;
    clearTimeout(this.#idle);
    this.#child.stdin?.end();
    for (const { reject, late } of this.#pending.values()) {
      clearTimeout(late);
      reject(
        new Problem('unavailable', 'folder_worker_failed', `the agent's folder cannot be worked in: ${why}`),
      );
    }
    this.#pending.clear();
    this.#onEnd();
  }
}
