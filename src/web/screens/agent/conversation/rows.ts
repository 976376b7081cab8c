/** The rows of a conversation (pure): items, consecutive reads as one row, and sub-agents' items below their row. */
import type { Delegation, Item, Tool } from '../../../../acp/transcript/items.ts';
import { noticeTone, stopText } from '../../../transcript/status-text.ts';
import { type Group, groupItems } from './groups.ts';

export type Row =
  | { readonly type: 'item'; readonly key: string; readonly item: Item }
  | { readonly type: 'reads'; readonly key: string; readonly reads: readonly Tool[] }
  | SubagentRow;

export interface SubagentRow {
  readonly type: 'subagent';
  readonly key: string;
  readonly head: Delegation;
  readonly rows: readonly Row[];
}

/** For the items from `start` to `end`; rows of sub-agents may be before. */
export function buildRows(items: readonly Item[], start = 0, end = items.length): Row[] {
  return toRows(groupItems(items, start, end));
}

function toRows(parts: readonly (Item | Group)[]): Row[] {
  const rows: Row[] = [];
  let reads: Tool[] = [];
  const close = () => {
    if (reads.length > 1) rows.push({ type: 'reads', key: `reads ${reads[0]!.key}`, reads });
    else for (const item of reads) rows.push({ type: 'item', key: item.key, item });
    reads = [];
  };
  for (const part of parts) {
    if (part.kind !== 'group' && isQuietRead(part)) {
      reads.push(part);
      continue;
    }
    close();
    if (part.kind !== 'group') rows.push({ type: 'item', key: part.key, item: part });
    else {
      const { head } = part;
      rows.push({ type: 'subagent', key: `subagent ${head.key}`, head, rows: toRows(part.parts) });
    }
  }
  close();
  return rows;
}

/** The first item of a row. */
export function getItem(row: Row): Item {
  if (row.type === 'item') return row.item;
  return row.type === 'reads' ? row.reads[0]! : row.head;
}

/** Whether the row contains the item of this event. */
export function holds(row: Row, seq: number): boolean {
  switch (row.type) {
    case 'item':
      return row.item.seq === seq;
    case 'reads':
      return row.reads.some((item) => item.seq === seq);
    case 'subagent':
      return row.head.seq === seq || row.rows.some((row) => holds(row, seq));
  }
}

/** Unanswered requests in the row, as far as the log shows: an elicitation's answer is only in its record. */
export function listWaiting(row: Row): Row[] {
  if (row.type === 'subagent') return row.rows.flatMap(listWaiting);
  if (row.type !== 'item') return [];
  const { item } = row;
  const waits = item.kind === 'elicitation' || (item.kind === 'permission' && item.outcome === null);
  return waits ? [row] : [];
}

/** A read that runs or failed has its own row. */
function isQuietRead(item: Item): item is Tool {
  return item.kind === 'tool' && item.call.tool_kind === 'read' && item.status === 'completed';
}

/** Whether both rows show the same. Rows are new objects each time; items only when they change. */
export function sameRow(a: Row, b: Row): boolean {
  if (a.type === 'item') return b.type === 'item' && a.item === b.item;
  if (a.type === 'subagent') {
    if (b.type !== 'subagent' || a.head !== b.head || a.rows.length !== b.rows.length) return false;
    return a.rows.every((row, at) => sameRow(row, b.rows[at]!));
  }
  return (
    b.type === 'reads' &&
    a.reads.length === b.reads.length &&
    a.reads.every((item, at) => item === b.reads[at])
  );
}

/** The item that contains an event: the last one that began with it or before. Null: the event is before all items. */
export function findItem(items: readonly Item[], seq: number): Item | null {
  return items.findLast((item) => item.seq <= seq) ?? null;
}

/** Whether the item is a failed tool, turn, process or request. */
export function isFailure(item: Item): boolean {
  switch (item.kind) {
    case 'tool':
    case 'status':
      return item.status === 'failed';
    case 'stop':
      return stopText(item.reason).tone !== 'plain';
    case 'notice':
      return noticeTone(item.code) === 'failure';
    default:
      return false;
  }
}

/** The next or previous failure from an event; without an event, the first or the newest one. */
export function failureNextTo(items: readonly Item[], seq: number | null, direction: 1 | -1): Item | null {
  const failures = items.filter(isFailure);
  if (direction === 1) return failures.find((item) => item.seq > (seq ?? -1)) ?? null;
  return failures.findLast((item) => item.seq < (seq ?? Number.POSITIVE_INFINITY)) ?? null;
}

/** The event number in a hash such as `#e1843`. */
export function parseSeq(hash: string): number | null {
  const [, digits] = /^#?e(\d{1,15})$/.exec(hash) ?? [];
  return digits === undefined ? null : Number(digits);
}

/** How many items are shown at first, and added at a time. */
export const PAGE = 150;

/** The index of the first shown item. `first` and `left_out` count from the beginning of the log. */
export function windowStart(
  first: number | null,
  { left_out, total }: { left_out: number; total: number },
): number {
  if (first === null) return Math.max(0, total - PAGE);
  return Math.min(Math.max(0, first - left_out), total);
}
