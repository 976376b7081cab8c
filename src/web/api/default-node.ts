/** Which node new work gets in forms. The list of nodes lacks the main node if no agents run there. Pure. */
import { MAIN_NODE } from '../../core/node.ts';

/** The wanted node if it is listed; otherwise the main node, or without it the first one. `nodes`: empty until loaded. */
export function defaultNode(nodes: readonly { id: string }[], wanted?: string): string {
  if (wanted !== undefined && (nodes.length === 0 || nodes.some(({ id }) => id === wanted))) return wanted;
  return nodes.find(({ id }) => id === MAIN_NODE)?.id ?? nodes[0]?.id ?? MAIN_NODE;
}
