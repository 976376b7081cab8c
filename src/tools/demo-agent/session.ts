import type { SessionFiles, SessionLine, SessionState } from './session-files.ts';

/** An open conversation: its state, its folder, and the turn in progress. */
export class Session {
  readonly id: string;
  readonly cwd: string;
  readonly #files: SessionFiles;
  #state: SessionState;
  #turn: { cancel: AbortController; done: Promise<unknown> } | null = null;

  constructor(id: string, cwd: string, state: SessionState, files: SessionFiles) {
    this.id = id;
    this.cwd = cwd;
    this.#state = state;
    this.#files = files;
  }

  get state(): Readonly<SessionState> {
    return this.#state;
  }

  get busy(): boolean {
    return this.#turn !== null;
  }

  async change(changes: Partial<SessionState>): Promise<void> {
    this.#state = { ...this.#state, ...changes };
    await this.keep({ state: this.#state });
  }

  keep(line: SessionLine): Promise<void> {
    return this.#files.append(this.id, line);
  }

  /** Runs a turn; its signal aborts on `cancel`. */
  async turn<T>(run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const cancel = new AbortController();
    const done = run(cancel.signal);
    this.#turn = { cancel, done };
    try {
      return await done;
    } finally {
      this.#turn = null;
    }
  }

  cancel(): void {
    this.#turn?.cancel.abort();
  }

  /** Resolves when no turn is in progress. */
  async idle(): Promise<void> {
    await this.#turn?.done.catch(() => {});
  }
}
