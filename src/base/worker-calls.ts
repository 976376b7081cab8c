/**
 * Calls into a worker thread, for heavy work that would block the event loop. The thread starts at the first call and
 * ends when idle, to free its memory. Errors are passed to the caller. If the worker crashes, its pending calls are
 * rejected and the next call starts a new worker.
 */
import { parentPort, Worker } from 'node:worker_threads';
import { limits } from './limits.ts';

type Task = (data: never) => unknown;
export type Tasks = Record<string, Task>;

interface Request {
  id: number;
  kind: string;
  data: unknown;
}
type Answer = { id: number; value: unknown } | { id: number; error: unknown };

export class WorkerCalls<T extends Tasks> {
  readonly #entry: URL;
  readonly #data: unknown;
  /** Time without a call after which the thread ends, in milliseconds. */
  readonly #idle_ms: number;
  #worker: Worker | null = null;
  #next_id = 1;
  #idle: NodeJS.Timeout | undefined;
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>();

  constructor(entry: URL, data: unknown, idle_ms: number = limits.worker_idle_ms) {
    this.#idle_ms = idle_ms;
    this.#entry = entry;
    this.#data = data;
  }

  /** Runs a task in the worker. Throws what the task throws, or an Error if the worker ends first. */
  call<K extends keyof T & string>(kind: K, data: Parameters<T[K]>[0]): Promise<Awaited<ReturnType<T[K]>>> {
    clearTimeout(this.#idle);
    const worker = this.#start();
    const id = this.#next_id++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      worker.postMessage({ id, kind, data } satisfies Request);
    });
  }

  /** Ends the worker and rejects its pending calls. Idempotent; a later call starts a new worker. */
  async close(): Promise<void> {
    clearTimeout(this.#idle);
    const worker = this.#worker;
    // Detach the worker first, because a call during the shutdown must start another one.
    if (worker) this.#rejectAll(worker, new Error('the worker thread ended'));
    await worker?.terminate();
  }

  #start(): Worker {
    if (this.#worker) return this.#worker;
    const worker = new Worker(this.#entry, {
      workerData: this.#data,
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: limits.worker_young_mib },
    });
    worker.unref();
    worker.on('message', (answer: Answer) => {
      const waiting = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if ('error' in answer) waiting?.reject(answer.error);
      else waiting?.resolve(answer.value);
      if (this.#waiting.size === 0) {
        clearTimeout(this.#idle);
        this.#idle = setTimeout(() => void this.close(), this.#idle_ms).unref();
      }
    });
    worker.on('error', (error) => this.#rejectAll(worker, error));
    worker.on('exit', () => this.#rejectAll(worker, new Error('the worker thread ended')));
    this.#worker = worker;
    return worker;
  }

  #rejectAll(worker: Worker, error: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(error);
  }
}

/** Runs in the worker: answers calls with the results of the tasks. */
export function serveCalls(tasks: Tasks): void {
  const port = parentPort!;
  port.on('message', async ({ id, kind, data }: Request) => {
    try {
      port.postMessage({ id, value: await tasks[kind]!(data as never) } satisfies Answer);
    } catch (error) {
      port.postMessage({ id, error } satisfies Answer);
    }
  });
}
