/** The main thread's side of the store's worker: started at the first task, one task of a kind at a time. */
import { Worker } from 'node:worker_threads';
import type { WorkerAnswer, WorkerTask } from './worker.ts';

const ENTRY = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url);

export class StoreWorker {
  readonly #path: string;
  #worker: Worker | null = null;
  #next_id = 1;
  readonly #waiting = new Map<number, { resolve(problems: string[]): void; reject(error: Error): void }>();
  readonly #running = new Map<WorkerTask['kind'], Promise<string[]>>();

  constructor(path: string) {
    this.#path = path;
  }

  /** Joins a task of the same kind that is under way. */
  run(kind: WorkerTask['kind']): Promise<string[]> {
    let running = this.#running.get(kind);
    if (!running) {
      running = this.#send(kind).finally(() => this.#running.delete(kind));
      this.#running.set(kind, running);
    }
    return running;
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#running.values()]);
    await this.#worker?.terminate();
  }

  #send(kind: WorkerTask['kind']): Promise<string[]> {
    const worker = this.#start();
    const id = this.#next_id++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      worker.postMessage({ id, kind } satisfies WorkerTask);
    });
  }

  #start(): Worker {
    if (this.#worker) return this.#worker;
    const worker = new Worker(ENTRY, { workerData: { path: this.#path }, execArgv: [] });
    worker.unref();
    worker.on('message', ({ id, problems, error }: WorkerAnswer) => {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(problems);
      else waiting?.reject(new Error(error));
    });
    worker.on('error', (error) => this.#lose(error as Error));
    worker.on('exit', () => this.#lose(new Error('the store worker ended')));
    this.#worker = worker;
    return worker;
  }

  #lose(error: Error): void {
    this.#worker = null;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
