/** The layout of a step graph, from left to right, each step after those it depends on. Pure. */
import { Graph, layout } from '@dagrejs/dagre';

export interface GraphStep {
  step_key: string;
  member_id: string;
  depends_on: readonly string[];
}

export interface Arrow {
  from: string;
  to: string;
}

export interface Plan {
  /** The center of each step, and an id for it that is safe in any document. */
  at: Map<string, { name: string; x: number; y: number }>;
  arrows: Arrow[];
}

/** With more steps, avoiding crossings takes too long. */
const CAREFUL_STEPS = 100;

export const NODE = { width: 168, height: 44 } as const;

/** Accepts incomplete definitions: unknown dependencies, duplicate step keys and cycles. */
export function layoutSteps(steps: readonly GraphStep[]): Plan {
  const isLarge = steps.length > CAREFUL_STEPS;
  const graph = new Graph();
  graph.setGraph({
    ...(isLarge && { ranker: 'longest-path' }),
    rankdir: 'LR',
    nodesep: 16,
    ranksep: 48,
    marginx: 8,
    marginy: 8,
  });
  graph.setDefaultEdgeLabel(() => ({}));
  // Step keys are arbitrary text, so the library gets numbers instead.
  const names = new Map<string, string>();
  for (const { step_key } of steps) if (!names.has(step_key)) names.set(step_key, String(names.size));
  for (const name of names.values()) graph.setNode(name, { ...NODE });
  const arrows = new Map<string, Arrow>();
  for (const { step_key, depends_on } of steps) {
    for (const from of depends_on) {
      if (names.has(from) && from !== step_key) {
        arrows.set(JSON.stringify([from, step_key]), { from, to: step_key });
      }
    }
  }
  for (const { from, to } of arrows.values()) graph.setEdge(names.get(from)!, names.get(to)!);
  layout(graph, { disableOptimalOrderHeuristic: isLarge });
  return {
    at: new Map(
      [...names].map(([step_key, name]) => {
        const { x, y } = graph.node(name) as { x: number; y: number };
        return [step_key, { name, x, y }];
      }),
    ),
    arrows: [...arrows.values()],
  };
}

/** Steps with the same text have the same layout. Statuses, which change often, are not part of it. */
export function graphKey(steps: readonly GraphStep[]): string {
  return JSON.stringify(steps.map(({ step_key, depends_on }) => [step_key, depends_on]));
}
