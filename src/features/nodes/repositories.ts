/** Lists the git repositories that agents can use on a node, and when agents last used them. */
import { basename } from 'node:path/posix';
import { rfc3339OrNull } from '../../base/clock.ts';
import { limits } from '../../base/limits.ts';
import { authorize, viewOf } from '../../core/policy.ts';
import type { Store } from '../../store/store.ts';
import type { Caller } from '../accounts/rules.ts';
import type { NodeDirectory } from '../feature.ts';
import { lastUsesOfFolders } from './queries.ts';
import type { RepositoryList } from './rules.ts';

export class Repositories {
  readonly #store: Store;
  readonly #nodes: Pick<NodeDirectory, 'get' | 'choose'>;

  constructor({ store, nodes }: { store: Store; nodes: Pick<NodeDirectory, 'get' | 'choose'> }) {
    this.#store = store;
    this.#nodes = nodes;
  }

  /**
   * Last used first, then by name. Other users' agents do not count, because the order would reveal where they work. `path`:
   * also checks this `worktree_repo`, and throws the error of creating an agent with it. Throws `node not found`,
   * `no_local_node`, and `node_unreachable` if the node does not answer.
   */
  async list(caller: Caller, node_id: string, path: string | null = null): Promise<RepositoryList> {
    authorize(caller, 'repositories.list');
    const node = this.#nodes.get(this.#nodes.choose(node_id));
    const uses = await this.#store.read((reader) => lastUsesOfFolders(reader, viewOf(caller), node_id));
    const used_at = new Map(uses.map(({ path, used_at_ms }) => [path, used_at_ms]));
    const first = uses.slice(0, limits.used_repositories_max).map(({ path }) => path);
    const { roots, repositories, truncated } = await node.folders.repositories({
      ...{ first, path },
      owner: caller.user_id,
    });
    const records = repositories.map(({ path, branch, dirty }) => ({
      ...{ path, name: basename(path) || path, branch, dirty },
      used_at_ms: used_at.get(path) ?? null,
    }));
    records.sort(
      (one, other) =>
        (other.used_at_ms ?? 0) - (one.used_at_ms ?? 0) ||
        compare(one.name, other.name) ||
        compare(one.path, other.path),
    );
    return {
      roots,
      repositories: records.map(({ used_at_ms, ...record }) => ({
        ...record,
        last_used_at: rfc3339OrNull(used_at_ms),
      })),
      truncated,
    };
  }
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
