/** Bounds the elements that the colors of a diff add to the page (pure). */
import type { TokenNode } from 'react-diff-view';

/** In one diff. Code has about 15 in a line. */
export const COLORED_MAX = 30_000;

/** The colored parts of a text, and their parts. */
export function countColored(nodes: readonly TokenNode[]): number {
  return nodes.reduce((sum, { children }) => sum + (children ? 1 + countColored(children) : 0), 0);
}
