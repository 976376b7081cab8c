/** How much room a step graph needs, before the library that lays it out is loaded. Pure. */
import { GAP, type GraphStep, NODE } from './step.ts';

/** The size of the steps in columns, each one column after the last of its dependencies. */
export function estimateSize(steps: readonly GraphStep[]): { width: number; height: number } {
  const columns = assignColumns(steps);
  const rows: number[] = [];
  for (const column of columns.values()) rows[column] = (rows[column] ?? 0) + 1;
  // An edge that passes a column needs room between its steps.
  for (const { step_key, depends_on } of steps) {
    for (const from of depends_on) {
      for (let at = (columns.get(from) ?? Infinity) + 1; at < columns.get(step_key)!; at++) rows[at]! += 0.4;
    }
  }
  const most = rows.reduce((max, count) => Math.max(max, count), 1);
  const length = Math.max(rows.length, 1);
  return {
    width: length * NODE.width + (length - 1) * GAP.column + 2 * GAP.margin,
    height: Math.ceil(most * NODE.height + (most - 1) * GAP.row + 2 * GAP.margin),
  };
}

/** Accepts cycles: a step in one counts as if it had no dependencies left. */
function assignColumns(steps: readonly GraphStep[]): Map<string, number> {
  const waiting = new Map(steps.map((step) => [step.step_key, step]));
  const columns = new Map<string, number>();
  for (let column = 0; waiting.size > 0; column++) {
    const free = [...waiting.values()].filter(({ step_key, depends_on }) =>
      depends_on.every((from) => from === step_key || !waiting.has(from)),
    );
    for (const { step_key } of free.length > 0 ? free : [...waiting.values()]) {
      columns.set(step_key, column);
      waiting.delete(step_key);
    }
  }
  return columns;
}
