/** Items as rows of a list: tools that only read and are done stand together as one row. */
import type { Item, Tool } from './items.ts';

export interface Reads {
  readonly kind: 'reads';
  readonly key: string;
  readonly seq: number;
  readonly ts: number;
  readonly tools: readonly Tool[];
}

export type Row = Item | Reads;

/** Rows of before, by their first tool, so that what did not change is the same object. */
const known = new WeakMap<Tool, Reads>();

export function rowsOf(items: readonly Item[]): Row[] {
  const rows: Row[] = [];
  let reads: Tool[] = [];
  const close = () => {
    if (reads.length > 1) rows.push(readsRow(reads));
    else rows.push(...reads);
    reads = [];
  };
  for (const item of items) {
    if (isDoneRead(item)) reads.push(item);
    else {
      close();
      rows.push(item);
    }
  }
  close();
  return rows;
}

function isDoneRead(item: Item): item is Tool {
  return item.kind === 'tool' && item.call.tool_kind === 'read' && item.status === 'completed';
}

function readsRow(tools: Tool[]): Reads {
  const [first] = tools as [Tool];
  const before = known.get(first);
  const same = before?.tools.length === tools.length && before.tools.every((tool, at) => tool === tools[at]);
  if (same) return before;
  const row: Reads = { kind: 'reads', key: `reads ${first.key}`, seq: first.seq, ts: first.ts, tools };
  known.set(first, row);
  return row;
}
