/** The rows of a conversation (pure): items, and reads that follow on each other as one row. */
import type { Item, Tool } from '../../../transcript/items.ts';
import { noticeTone, stopWords } from '../../../transcript/words.ts';

export type Row =
  | { readonly type: 'item'; readonly key: string; readonly item: Item }
  | { readonly type: 'reads'; readonly key: string; readonly reads: readonly Tool[] };

export function rowsOf(items: readonly Item[]): Row[] {
  const rows: Row[] = [];
  let reads: Tool[] = [];
  const close = () => {
    if (reads.length > 1) rows.push({ type: 'reads', key: `reads ${reads[0]!.key}`, reads });
    else for (const item of reads) rows.push({ type: 'item', key: item.key, item });
    reads = [];
  };
  for (const item of items) {
    if (isQuietRead(item)) {
      reads.push(item);
      continue;
    }
    close();
    rows.push({ type: 'item', key: item.key, item });
  }
  close();
  return rows;
}

/** What runs or has failed stands for itself. */
function isQuietRead(item: Item): item is Tool {
  return item.kind === 'tool' && item.call.tool_kind === 'read' && item.status === 'completed';
}

/** Whether both show the same: rows are made anew each time, items only when they change. */
export function sameRow(a: Row, b: Row): boolean {
  if (a.type === 'item') return b.type === 'item' && a.item === b.item;
  return (
    b.type === 'reads' &&
    a.reads.length === b.reads.length &&
    a.reads.every((item, at) => item === b.reads[at])
  );
}

/** The item that an event is part of: the last one that began with it or before. Null: it stands before all of them. */
export function itemAt(items: readonly Item[], seq: number): Item | null {
  return items.findLast((item) => item.seq <= seq) ?? null;
}

/** What went wrong: a tool, a turn, a process, or what the agent was asked for. */
export function isFailure(item: Item): boolean {
  switch (item.kind) {
    case 'tool':
    case 'status':
      return item.status === 'failed';
    case 'stop':
      return stopWords(item.reason).tone !== 'plain';
    case 'notice':
      return noticeTone(item.code) === 'failure';
    default:
      return false;
  }
}

/** The failure next to an event, or, from nowhere, the newest or the first one. */
export function failureNextTo(items: readonly Item[], seq: number | null, direction: 1 | -1): Item | null {
  const failures = items.filter(isFailure);
  if (direction === 1) return failures.find((item) => item.seq > (seq ?? -1)) ?? null;
  return failures.findLast((item) => item.seq < (seq ?? Number.POSITIVE_INFINITY)) ?? null;
}

/** `#e1843` names an event. */
export function seqIn(hash: string): number | null {
  const [, digits] = /^#?e(\d{1,15})$/.exec(hash) ?? [];
  return digits === undefined ? null : Number(digits);
}

/** So many items are shown at first, and so many more at a time. */
export const PAGE = 150;

/** The place of the first item that is shown, where `first` counts from the very first of the log, as `left_out` does. */
export function startOf(
  first: number | null,
  { left_out, total }: { left_out: number; total: number },
): number {
  if (first === null) return Math.max(0, total - PAGE);
  return Math.min(Math.max(0, first - left_out), total);
}
