/**
 * Paths at which worktrees are being created, so that two requests do not both find the same path free. They are kept only
 * in memory, because a request does not outlive its plane, a node belongs to one plane, and the agent's row reserves the
 * path once it exists.
 */
import { KeyedQueue } from '../../base/async.ts';
import { problems } from '../../core/problem.ts';

export class WorktreePaths {
  readonly #held = new Map<string, { agent_id: string; count: number }>();

  readonly #queue = new KeyedQueue();

  /**
   * Runs one work at a time on a worktree, so that parallel steps of a run create their shared worktree only once.
   * `worktree_id`: the id for which the node makes it.
   */
  run<T>(worktree_id: string, work: () => Promise<T>): Promise<T> {
    return this.#queue.run(worktree_id, work);
  }

  /**
   * Runs `work` while the path is reserved for the agent. Throws `workdir is not safe` if it is reserved for another agent;
   * the same agent may reserve it several times. `path`: a real path.
   */
  async hold<T>(node_id: string, path: string, agent_id: string, work: () => Promise<T>): Promise<T> {
    const key = `${node_id} ${path}`;
    const held = this.#held.get(key) ?? { agent_id, count: 0 };
    if (held.agent_id !== agent_id) throw problems.workdirNotSafe();
    this.#held.set(key, held);
    held.count++;
    try {
      return await work();
    } finally {
      if (--held.count === 0) this.#held.delete(key);
    }
  }
}
