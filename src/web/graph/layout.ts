/** The layout of a step graph, from left to right, each step after those it depends on. Pure. */
import { Graph, layout } from '@dagrejs/dagre';
import { GAP, type GraphStep, NODE } from './step.ts';

export interface Point {
  x: number;
  y: number;
}

export interface Arrow {
  from: string;
  to: string;
  /** Where it passes between the steps of other columns. */
  via: Point[];
}

export interface Plan {
  /** The center of each step, and an id for it that is safe in any document. */
  at: Map<string, { name: string; x: number; y: number }>;
  arrows: Arrow[];
}

/** With more steps, avoiding crossings takes too long. */
const CAREFUL_STEPS = 100;

/** Accepts incomplete definitions: unknown dependencies, duplicate step keys and cycles. */
export function layoutSteps(steps: readonly GraphStep[]): Plan {
  const isLarge = steps.length > CAREFUL_STEPS;
  const graph = new Graph();
  graph.setGraph({
    ...(isLarge && { ranker: 'longest-path' }),
    rankdir: 'LR',
    nodesep: GAP.row,
    ranksep: GAP.column,
    marginx: GAP.margin,
    marginy: GAP.margin,
  });
  graph.setDefaultEdgeLabel(() => ({}));
  // Step keys are arbitrary text, so the library gets numbers instead.
  const names = new Map<string, string>();
  for (const { step_key } of steps) if (!names.has(step_key)) names.set(step_key, String(names.size));
  for (const name of names.values()) graph.setNode(name, { ...NODE });
  const arrows = new Map<string, { from: string; to: string }>();
  for (const { step_key, depends_on } of steps) {
    for (const from of depends_on) {
      if (names.has(from) && from !== step_key) {
        arrows.set(JSON.stringify([from, step_key]), { from, to: step_key });
      }
    }
  }
  for (const { from, to } of arrows.values()) graph.setEdge(names.get(from)!, names.get(to)!);
  layout(graph, { disableOptimalOrderHeuristic: isLarge });
  const at = new Map(
    [...names].map(([step_key, name]) => {
      const { x, y } = graph.node(name) as Point;
      return [step_key, { name, x, y }];
    }),
  );
  const columns = [...new Set([...at.values()].map(({ x }) => x))];
  return {
    at,
    arrows: [...arrows.values()].map(({ from, to }) => {
      const { points = [] } = graph.edge(names.get(from)!, names.get(to)!) as { points?: Point[] };
      // The first and the last point are on the borders of its own steps; those between two columns are not needed.
      const via = points.slice(1, -1).filter(({ x }) => columns.some((column) => Math.abs(column - x) < 1));
      return { from, to, via };
    }),
  };
}

/** The SVG path of an arrow: straight where it passes a column, and curved between columns. */
export function arrowPath({ from, to, via }: Arrow, at: Plan['at']): string {
  const start = at.get(from)!;
  const end = at.get(to)!;
  const half = (start.x <= end.x ? 1 : -1) * (NODE.width / 2);
  let { y } = start;
  let x = start.x + half;
  let path = `M${x},${y}`;
  const curve = (to_x: number, to_y: number) => {
    const middle = (x + to_x) / 2;
    path += to_y === y ? `L${to_x},${to_y}` : `C${middle},${y} ${middle},${to_y} ${to_x},${to_y}`;
    [x, y] = [to_x, to_y];
  };
  for (const point of via) {
    curve(point.x - half, point.y);
    curve(point.x + half, point.y);
  }
  curve(end.x - half, end.y);
  return path;
}

/** Steps with the same text have the same layout. Statuses, which change often, are not part of it. */
export function graphKey(steps: readonly GraphStep[]): string {
  return JSON.stringify(steps.map(({ step_key, depends_on }) => [step_key, depends_on]));
}
