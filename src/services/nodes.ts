/** The places that execute agents. So far one: the Main Node, on the plane's own machine. */
import { MAIN_NODE, type Node } from '../domain/node.ts';

export interface NodeSummary {
  id: string;
  name: string;
  status: 'connecting' | 'connected' | 'suspect' | 'unreachable';
  /** Can make a worktree without being told where. */
  has_default_root: boolean;
}

export class Nodes {
  readonly #nodes: ReadonlyMap<string, Node>;

  constructor(nodes: readonly Node[]) {
    this.#nodes = new Map(nodes.map((node) => [node.id, node]));
  }

  /** Null for an id that is not registered. */
  get(id: string): Node | null {
    return this.#nodes.get(id) ?? null;
  }

  list(): NodeSummary[] {
    return [...this.#nodes.keys()].map((id) => ({
      id,
      name: id === MAIN_NODE ? 'Main Node' : id,
      status: 'connected',
      has_default_root: true,
    }));
  }
}
