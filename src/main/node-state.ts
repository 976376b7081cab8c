/** The file `node.json`: the state that a remote node keeps across restarts. */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { KeyedQueue } from '../base/async.ts';
import { writeFileAtomic } from '../base/files.ts';
import type { LinkPosition } from '../link/wire.ts';

const stateSchema = z.object({
  disk_id: z.string(),
  latest: z.object({ plane_id: z.string(), incarnation: z.number(), epoch: z.number() }).nullable(),
});

/** The id of the node's disk, and the position of the latest link. */
export class NodeState {
  readonly #path: string;
  readonly #writes = new KeyedQueue();
  #state: z.infer<typeof stateSchema>;

  private constructor(path: string, state: z.infer<typeof stateSchema>) {
    this.#path = path;
    this.#state = state;
  }

  /** Throws if the file exists but cannot be read, because a new identity would look like another disk. */
  static async open(path: string): Promise<NodeState> {
    const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
    if (text !== null) return new NodeState(path, stateSchema.parse(JSON.parse(text)));
    const state = new NodeState(path, { disk_id: randomUUID(), latest: null });
    await state.#write();
    return state;
  }

  get disk_id(): string {
    return this.#state.disk_id;
  }

  get(): LinkPosition | null {
    return this.#state.latest;
  }

  /** Stores the position, and resolves when it or a later one is on disk. */
  async set(latest: LinkPosition): Promise<void> {
    this.#state = { ...this.#state, latest };
    await this.#write();
  }

  /** One at a time, so that the file never goes back to an earlier position. */
  #write(): Promise<void> {
    return this.#writes.run(this.#path, () =>
      writeFileAtomic(this.#path, `${JSON.stringify(this.#state)}\n`),
    );
  }
}
