/**
 * Paths at which worktrees are being created, so that two requests do not both find the same path free. Kept in memory: a
 * request does not outlive its plane, a node belongs to one plane, and once the agent's row exists, it holds the path.
 */
import { problems } from '../../core/problem.ts';

export class WorktreePaths {
  readonly #held = new Map<string, { agent_id: string; count: number }>();

  /**
   * Runs `work` while the agent holds the path. Throws `workdir is not safe` if another agent holds it; the same agent may
   * hold it several times. `path`: a real path.
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
