/** The file `node.json`: the state that a remote node keeps across restarts. */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { KeyedQueue } from '../base/async.ts';
import { isDiskError, writeFileAtomic } from '../base/files.ts';
import type { Logger } from '../base/log.ts';
import type { LinkPosition } from '../link/wire.ts';
import { limits } from './limits.ts';

const stateSchema = z.object({
  disk_id: z.string(),
  latest: z.object({ plane_id: z.string(), incarnation: z.number(), epoch: z.number() }).nullable(),
});

/** The id of the node's disk, and the position of the latest link. */
export class NodeState {
  readonly #path: string;
  readonly #log: Logger;
  readonly #writes = new KeyedQueue();
  #state: z.infer<typeof stateSchema>;
  #retry: NodeJS.Timeout | undefined;
  #closed = false;

  private constructor(path: string, log: Logger, state: z.infer<typeof stateSchema>) {
    this.#path = path;
    this.#log = log;
    this.#state = state;
  }

  /** Throws if the file exists but cannot be read, because a new identity would look like another disk. */
  static async open(path: string, log: Logger): Promise<NodeState> {
    const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
    if (text !== null) return new NodeState(path, log, stateSchema.parse(JSON.parse(text)));
    const state = new NodeState(path, log, { disk_id: randomUUID(), latest: null });
    await state.#write();
    return state;
  }

  get disk_id(): string {
    return this.#state.disk_id;
  }

  get(): LinkPosition | null {
    return this.#state.latest;
  }

  /**
   * Stores the position, and resolves when it or a later one is on disk. Also resolves if the disk is full or fails,
   * because a plane must be able to stop agents then. It tries again until the position is stored: if the node restarts
   * before that, it accepts links that come after the last stored position.
   */
  async set(latest: LinkPosition): Promise<void> {
    this.#state = { ...this.#state, latest };
    await this.#store();
  }

  /**
   * Forgets the position if it is another plane's, because a position only orders the incarnations of one plane. Throws if
   * that cannot be stored.
   */
  async forgetOthers(plane_id: string): Promise<void> {
    if (this.#state.latest?.plane_id === plane_id) return;
    this.#state = { ...this.#state, latest: null };
    await this.#write();
  }

  /** Stops trying to store the position. Resolves when no write is in progress. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#retry);
    await this.#writes.run(this.#path, async () => {});
  }

  async #store(): Promise<void> {
    try {
      await this.#write();
    } catch (error) {
      if (!isDiskError(error)) throw error;
      this.#log.error({ err: error }, 'cannot store the position of the link; trying again');
      this.#storeAgain();
    }
  }

  #storeAgain(): void {
    clearTimeout(this.#retry);
    if (this.#closed) return;
    const store = () =>
      this.#store().catch((err: unknown) =>
        this.#log.error({ err }, 'cannot store the position of the link'),
      );
    this.#retry = setTimeout(store, limits.node_state_retry_ms).unref();
  }

  /** One at a time, so that the file never goes back to an earlier position. */
  #write(): Promise<void> {
    return this.#writes.run(this.#path, () =>
      writeFileAtomic(this.#path, `${JSON.stringify(this.#state)}\n`),
    );
  }
}
