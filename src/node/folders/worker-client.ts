/**
 * The node's side of folder workers. Each view of the machine has its own worker, which is started on demand and ended
 * when it is idle. A worker is trusted no more than an agent: the size and format of its answers are checked.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { sleep } from '../../base/async.ts';
import { isExhausted } from '../../base/files.ts';
import {
  isAlive,
  type ProcessRef,
  type ProcessStat,
  readAllStats,
  readChildren,
  readStat,
  readVariable,
  runningThread,
} from '../../base/proc.ts';
import { entryPoint } from '../../base/program-files.ts';
import { Problem, problems } from '../../core/problem.ts';
import { asUser, type RunAs } from '../confinement/run-as.ts';
import type { Confinement, FolderView, Sandbox } from '../confinement/sandbox.ts';
import { seccompFilter } from '../confinement/seccomp-filter.ts';
import { limits } from '../limits.ts';
import { endCgroup, endWorkersOfOthers, findCgroupParent, makeWorkerCgroup } from '../processes/cgroup.ts';
import { lineOf } from '../processes/launcher-wire.ts';
import { type JobAnswer, type JobContext, type JobName, type JobRequest, jobs } from './jobs.ts';
import { answerSchemas, lineSchema } from './worker-answers.ts';
import { MARK, type WorkerAnswer, type WorkerHello, type WorkerRequest } from './worker-wire.ts';

/**
 * Runs a job with a view of the machine. Throws the job's Problem, or `unavailable` if the job could not run at all.
 */
export type RunJob = <Name extends JobName>(
  view: FolderView,
  job: Name,
  request: JobRequest<Name>,
) => Promise<JobAnswer<Name>>;

/** Runs jobs in this process, for agents without confinement. */
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

const entry = fileURLToPath(entryPoint('node/folders/worker'));
/** The service's limit of V8's memory for new objects. */
const HEAP = process.execArgv.filter((arg) => arg.startsWith('--max-semi-space-size='));
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
  readonly #cgroups: Promise<string | null>;
  /**
   * Each promise resolves when everything that an ended worker started has ended too, and never rejects. Jobs wait for them,
   * because otherwise two git processes could work in one repository.
   */
  readonly #ending = new Set<Promise<void>>();
  #closed = false;

  constructor(options: FolderWorkersOptions) {
    this.#options = options;
    this.#cgroups = findCgroupParent();
    this.#trackEnd(this.#cgroups.then(endWorkersOfOthers).catch(() => {}));
  }

  readonly run: RunJob = async (view, job, request) => {
    const { sandbox } = this.#options;
    await sandbox?.check();
    await Promise.all(this.#ending);
    if (this.#closed) throw problems.nodeUnreachable();
    const confinement = sandbox ? await sandbox.folders(view).catch(throwFolderProblem) : NO_CONFINEMENT;
    try {
      const answer = await (await this.#worker(confinement)).ask(job, request);
      return answerSchemas[job].parse(answer) as never;
    } finally {
      await confinement.release();
    }
  };

  /**
   * Ends every worker and everything it started. Whatever git left incomplete is cleaned up later, as after a crash.
   */
  async close(): Promise<void> {
    this.#closed = true;
    for (const worker of this.#workers.values()) worker.close();
    await Promise.all(this.#ending);
  }

  #trackEnd(end: Promise<void>): void {
    this.#ending.add(end);
    void end.then(() => this.#ending.delete(end));
  }

  async #worker(confinement: Confinement): Promise<Worker> {
    const { argv, places, ids, masks, entries, pid_namespace } = confinement;
    const { run_as, env } = this.#options;
    const repo_roots = await this.#options.repo_roots();
    const key = JSON.stringify([argv, ids, repo_roots]);
    const found = this.#workers.get(key);
    if (found && !found.ended) return found;
    const cgroup = await makeWorkerCgroup(await this.#cgroups);
    // Agents of the same user can send signals to it, and SIGUSR1 would open Node's inspector.
    const program = [
      process.execPath,
      ...HEAP,
      '--disable-warning=ExperimentalWarning',
      '--disable-sigusr1',
      entry,
    ];
    const confined = argv.length > 0;
    const pairs = VARIABLES.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]));
    const variables = Object.fromEntries(pairs) as Record<string, string>;
    const command = confined ? asUser([...argv, ...program] as [string, ...string[]], run_as) : program;
    const hello = {
      places,
      ids,
      masks,
      entries,
      mark: randomBytes(16).toString('hex'),
      run_as,
      drop: run_as !== null && !confined,
      env: variables,
      repo_roots,
    };
    const worker = new Worker(command, { cgroup, confined, pid_namespace }, hello, {
      ended: () => {
        if (this.#workers.get(key) === worker) this.#workers.delete(key);
      },
      killed: (end) => this.#trackEnd(end),
    });
    this.#workers.set(key, worker);
    return worker;
  }
}

/** Throws the Problem for a folder that was changed or removed in the meantime. */
function throwFolderProblem(error: NodeJS.ErrnoException): never {
  if (error instanceof Problem || isExhausted(error)) throw error;
  throw error.code === 'ENOENT' ? problems.workdirMissing() : problems.workdirNotSafe();
}

interface Pending {
  resolve(value: unknown): void;
  reject(error: Error): void;
  timeout: NodeJS.Timeout;
}

interface WorkerEvents {
  /** The worker accepts no more requests. */
  ended(): void;
  /** The worker was killed. The promise resolves when everything it started has ended, or after `kill_wait_ms`. */
  killed(end: Promise<void>): void;
}

/** Joins the cgroup, if there is one, and becomes the command. Arguments: `svc cgroup command…`. */
const JOIN_CGROUP = '[ -z "$1" ] || echo 0 2>/dev/null >"$1/cgroup.procs"; shift; exec "$@"';

class Worker {
  readonly #child: ChildProcess;
  readonly #cgroup: string | null;
  readonly #confined: boolean;
  /** The init process of its pid namespace. */
  #init: ProcessRef | null = null;
  #info = '';
  readonly #mark: string;
  #exited = false;
  readonly #pending = new Map<number, Pending>();
  readonly #on: WorkerEvents;
  #next_id = 1;
  #idle: NodeJS.Timeout | undefined;
  #watch: NodeJS.Timeout | undefined;
  #unread: Buffer[] = [];
  #unread_bytes = 0;
  #stderr = '';
  ended = false;

  /** `confined`: bubblewrap reads a filter from descriptor 4, and reports the init of its `pid_namespace` on 5. */
  constructor(
    command: readonly string[],
    { cgroup, confined, pid_namespace }: { cgroup: string | null; confined: boolean; pid_namespace: boolean },
    hello: WorkerHello,
    on: WorkerEvents,
  ) {
    this.#on = on;
    this.#cgroup = cgroup;
    this.#confined = confined;
    this.#mark = hello.mark;
    const { env, run_as, drop } = hello;
    const { PATH = '/usr/bin:/bin' } = env;
    // The service has already compiled most of what a worker loads. The cache is not used if the agents' user cannot
    // read it, because Node would create another one.
    const cache = run_as && !drop ? undefined : getCompileCacheDir();
    // `detached` creates a process group, so that everything in it can be ended.
    this.#child = spawn('/bin/sh', ['-c', JOIN_CGROUP, 'svc', cgroup ?? '', ...command], {
      cwd: '/',
      env: { PATH, ...(cache !== undefined && { NODE_COMPILE_CACHE: dirname(cache) }) },
      stdio: [
        'pipe',
        'pipe',
        'pipe',
        'ignore',
        ...[confined, pid_namespace].map((used) => (used ? 'pipe' : 'ignore')),
      ],
      detached: true,
    });
    const { stdin, stdout, stderr, stdio } = this.#child;
    this.#child.on('error', (error) => this.#end(error.message));
    this.#child.on('exit', () => {
      this.#exited = true;
      // Remaining processes would keep its pipes open, and may be hard to find later.
      this.#killAll();
      setTimeout(() => this.#end('the worker ended'), limits.exec_drain_ms).unref();
    });
    this.#child.on('close', () => this.#end(this.#stderr.trim().split('\n').at(-1) || 'the worker ended'));
    // Contrary to its type, it is missing if there was no free descriptor for the pipes.
    const [filter, info] = (stdio ?? []).slice(4) as [Writable?, Readable?];
    filter?.on('error', () => {});
    filter?.end(seccompFilter());
    info?.on('data', (bytes: Buffer) => this.#findInit(bytes));
    stdin?.on('error', () => {});
    stdin?.write(lineOf(hello));
    stdout?.on('data', (bytes: Buffer) => this.#read(bytes));
    stderr?.on('data', (bytes: Buffer) => {
      this.#stderr = (this.#stderr + bytes.toString()).slice(-2_000);
    });
  }

  ask(job: JobName, request: unknown): Promise<unknown> {
    clearTimeout(this.#idle);
    this.#watch ??= setInterval(() => this.#endIfStopped(), limits.folder_worker_check_ms).unref();
    return new Promise((resolve, reject) => {
      const id = this.#next_id++;
      // Everything that a job starts has its own, shorter time limit.
      const timeout = setTimeout(() => this.#end('the worker did not answer in time'), limits.folder_job_ms);
      this.#pending.set(id, { resolve, reject, timeout });
      if (this.ended) this.#end('the worker ended');
      else this.#child.stdin?.write(lineOf({ id, job, request } satisfies WorkerRequest));
    });
  }

  close(): void {
    this.#end('the node is closing');
  }

  /** Reads lines of JSON. A line that is too long ends the worker. */
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
    if (this.#unread_bytes > limits.folder_answer_bytes_max) this.#end('the answer is too long');
  }

  #answered(line: Buffer): void {
    let answer: WorkerAnswer;
    try {
      answer = lineSchema.parse(JSON.parse(line.toString())) as WorkerAnswer;
    } catch {
      this.#end('the answer is malformed');
      return;
    }
    const pending = this.#pending.get(answer.id);
    if (!pending) return;
    this.#pending.delete(answer.id);
    clearTimeout(pending.timeout);
    if ('ok' in answer) pending.resolve(answer.ok);
    else if ('problem' in answer) {
      const { kind, code, message } = answer.problem;
      pending.reject(new Problem(kind, code, message));
    } else pending.reject(Object.assign(new Error(answer.failure.message), { code: answer.failure.code }));
    if (this.#pending.size > 0) return;
    clearInterval(this.#watch);
    this.#watch = undefined;
    this.#idle = setTimeout(() => this.#end('the worker was idle'), limits.launcher_idle_ms).unref();
  }

  /** Bubblewrap reports the pid before anything runs inside, so the report cannot be forged. */
  #findInit(bytes: Buffer): void {
    if (this.#init) return;
    this.#info = (this.#info + bytes.toString()).slice(0, 1_000);
    const found = /"child-pid": (\d+)/.exec(this.#info)?.[1];
    const stat = found === undefined ? null : known(() => readStat(Number(found)), null);
    if (stat?.ppid === this.#child.pid) this.#init = stat;
  }

  /**
   * Ends a worker that a signal has stopped. Agents of the same user, and programs that git runs, can send such
   * signals.
   */
  #endIfStopped(): void {
    const { pid } = this.#child;
    // In a sandbox, the worker is a child: of the namespace's init, or of bubblewrap itself.
    const parent = this.#init?.pid ?? (this.#confined ? pid : undefined);
    const pids = [
      pid,
      parent,
      ...(parent === undefined ? [] : known(() => readChildren(parent), []).map((child) => child.pid)),
    ];
    const states = known(
      () => pids.map((each) => (each === undefined ? undefined : readStat(each)?.state)),
      [],
    );
    if (states.some((state) => state === 'T' || state === 't')) this.#end('the worker was stopped');
  }

  /** Kills the worker with everything it started, including programs that a repository made git run. */
  #killAll(): void {
    const { pid } = this.#child;
    const busy = this.#pending.size > 0;
    // The kernel ends a namespace with its init, and a cgroup as a whole. Without either, a process that left the
    // process group and cleared its environment survives.
    const init = this.#init;
    if (init && known(() => isAlive(init), false)) kill(init.pid);
    if (pid !== undefined) kill(-pid);
    if (this.#cgroup) this.#on.killed(endCgroup(this.#cgroup));
    else if (!init && busy) this.#on.killed(killMarked(this.#mark));
    if (init) this.#on.killed(whenEnded(init));
  }

  #end(why: string): void {
    if (!this.ended && !this.#exited) this.#killAll();
    this.ended = true;
    clearTimeout(this.#idle);
    clearInterval(this.#watch);
    this.#child.stdin?.end();
    for (const { reject, timeout } of this.#pending.values()) {
      clearTimeout(timeout);
      reject(
        new Problem('unavailable', 'folder_worker_failed', `a job in the agent's folder failed: ${why}`),
      );
    }
    this.#pending.clear();
    this.#on.ended();
  }
}

/** Waits for the init process of a pid namespace, which ends after all other processes in it. */
async function whenEnded(init: ProcessRef): Promise<void> {
  const begun = performance.now();
  while (known(() => isAlive(init), true) && performance.now() - begun < limits.kill_wait_ms) await sleep(5);
}

/** Kills processes with this mark until none are left. Gives up after `limits.kill_wait_ms`. */
async function killMarked(mark: string): Promise<void> {
  const begun = performance.now();
  do {
    const hasMark = (stat: ProcessStat) => readVariable(runningThread(stat), MARK) === mark;
    const found = known(() => readAllStats().filter(hasMark), null);
    if (found?.length === 0) return;
    for (const { pid } of found ?? []) kill(pid);
    await sleep(20);
  } while (performance.now() - begun < limits.kill_wait_ms);
}

/** What is known about processes, or `otherwise` if no descriptor is free to read it. */
function known<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has already ended.
  }
}
