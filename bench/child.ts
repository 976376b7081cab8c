/** Helper programs of the bench, each in its own process. They exchange messages with the bench, which ends them. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const running = new Set<Child>();

export class Child {
  readonly #name: string;
  readonly #process: ChildProcess;
  readonly #messages: unknown[] = [];
  #wake: (() => void) | null = null;
  #ended = false;

  constructor(name: string, args: object) {
    const file = fileURLToPath(new URL(`./processes/${name}.ts`, import.meta.url));
    this.#name = name;
    this.#process = fork(file, [], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    this.#process.send(args);
    running.add(this);
    this.#process.on('message', (message) => {
      this.#messages.push(message);
      this.#wake?.();
    });
    this.#process.on('exit', () => {
      this.#ended = true;
      running.delete(this);
      this.#wake?.();
    });
  }

  get pid(): number {
    return this.#process.pid!;
  }

  /** The next message; rejects if the process ends without one. */
  async next<T>(): Promise<T> {
    while (this.#messages.length === 0) {
      if (this.#ended) throw new Error(`${this.#name} ended`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#messages.shift() as T;
  }

  send(message: object): void {
    this.#process.send(message);
  }

  request<T>(message: object): Promise<T> {
    this.send(message);
    return this.next<T>();
  }

  async end(): Promise<void> {
    if (this.#ended) return;
    const ended = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await ended;
  }
}

/** Ends the helpers that a failed row left behind. */
export async function endChildren(): Promise<void> {
  await Promise.all([...running].map((child) => child.end()));
}
