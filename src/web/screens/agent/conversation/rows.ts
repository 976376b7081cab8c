/**
 * The rows of a conversation (pure): items, consecutive tool calls as one group, consecutive reads as one row of it, and
 * sub-agents' items below their row.
 */
import type { Delegation, Item, Permission, StatusChange, Tool } from '../../../../acp/transcript/items.ts';
import { isFinal } from '../../../../features/agents/rules.ts';
import { noticeTone, stopText } from '../../../transcript/status-text.ts';
import { type Group, groupItems } from './groups.ts';
import { beginOfGroup, type GroupBegin, isInGroups, ToolGroup } from './tool-group.ts';

export type Row = ItemRow | ToolRow | ReadsRow | ToolsRow | SubagentRow;

export interface ItemRow {
  readonly type: 'item';
  readonly key: string;
  readonly item: Item;
}

export interface ToolRow {
  readonly type: 'tool';
  readonly key: string;
  readonly item: Tool;
  /** Its answered permission reviews, which have no rows of their own. */
  readonly permissions: readonly Permission[];
}

export interface ReadsRow {
  readonly type: 'reads';
  readonly key: string;
  readonly reads: readonly Tool[];
}

/** Consecutive tool calls, with the permission reviews and thoughts between them. */
export interface ToolsRow {
  readonly type: 'tools';
  readonly key: string;
  readonly rows: readonly Row[];
}

export interface SubagentRow {
  readonly type: 'subagent';
  readonly key: string;
  readonly head: Delegation;
  readonly rows: readonly Row[];
}

/** For the items from `start` to `end`; rows of sub-agents may be before. */
export function buildRows(items: readonly Item[], start = 0, end = items.length): Row[] {
  const parts = groupItems(items, start, end);
  const shown = parts.filter((part) => part.kind !== 'status' || hasNews(part, items));
  return toRows(shown, (call, asked) => beginOfGroup(call, items, start, asked), true);
}

/** The first start of an agent is no news. */
function hasNews(item: StatusChange, items: readonly Item[]): boolean {
  if (isFinal(item.status)) return true;
  return items.some((one) => one.kind === 'status' && one.seq < item.seq && isFinal(one.status));
}

/**
 * `beginOf`: how a group began that the first tool call of these parts may only continue. `began_before`: whether there may
 * be parts before these.
 */
function toRows(
  parts: readonly (Item | Group)[],
  beginOf: (first: Tool, asked: ReadonlySet<string>) => GroupBegin,
  began_before: boolean,
): Row[] {
  const rows: Row[] = [];
  /** All parts before are ones that a group may contain. */
  let is_cut = began_before;
  const asked = new Set<string>();
  for (const part of parts) if (part.kind === 'permission') asked.add(part.call.id);
  let group: ToolGroup | null = null;
  const close = () => {
    if (group) rows.push(group.toRow());
    group = null;
  };
  for (const part of parts) {
    if (part.kind === 'group') {
      close();
      is_cut &&= part.began_before;
      const { head } = part;
      const inner = toRows(part.parts, beginOf, part.began_before);
      rows.push({ type: 'subagent', key: `subagent ${head.key}`, head, rows: inner });
    } else if (part.kind === 'tool') {
      group ??= new ToolGroup(asked, is_cut ? beginOf(part, asked) : { tool: part, read: part });
      is_cut = false;
      group.addTool(part);
    } else if (!group?.add(part)) {
      close();
      is_cut &&= isInGroups(part);
      rows.push({ type: 'item', key: part.key, item: part });
    }
  }
  close();
  return rows;
}

/** The first item of a row. */
export function getItem(row: Row): Item {
  switch (row.type) {
    case 'item':
    case 'tool':
      return row.item;
    case 'reads':
      return row.reads[0]!;
    case 'tools':
      return getItem(row.rows[0]!);
    case 'subagent':
      return row.head;
  }
}

/** The items that a row shows itself, without those of the rows inside it. */
export function listOwn(row: Row): readonly Item[] {
  switch (row.type) {
    case 'tool':
      return [row.item, ...row.permissions];
    case 'reads':
      return row.reads;
    case 'tools':
      return [];
    default:
      return [getItem(row)];
  }
}

function listInner(row: Row): readonly Row[] {
  return row.type === 'tools' || row.type === 'subagent' ? row.rows : [];
}

/** Whether the row contains the item with this key. */
export function holds(row: Row, key: string): boolean {
  return listOwn(row).some((item) => item.key === key) || listInner(row).some((inner) => holds(inner, key));
}

/** Unanswered requests in the row, as far as the log shows: an elicitation's answer is only in its record. */
export function listWaiting(row: Row): Row[] {
  if (row.type !== 'item') return listInner(row).flatMap(listWaiting);
  const { item } = row;
  const waits = item.kind === 'elicitation' || (item.kind === 'permission' && item.outcome === null);
  return waits ? [row] : [];
}

/** Whether both rows show the same. Rows are new objects each time; items only when they change. */
export function sameRow(a: Row, b: Row): boolean {
  return (
    a.type === b.type &&
    isSameList(listOwn(a), listOwn(b), (one, other) => one === other) &&
    isSameList(listInner(a), listInner(b), sameRow)
  );
}

function isSameList<T>(a: readonly T[], b: readonly T[], isSame: (a: T, b: T) => boolean): boolean {
  return a.length === b.length && a.every((one, at) => isSame(one, b[at]!));
}

/** When the last thing in a row happened, in Unix seconds. */
function endOf(row: Row): number {
  const items = listOwn(row);
  const times = items.map((item) => ('ended_ts' in item ? (item.ended_ts ?? item.ts) : item.ts));
  return Math.max(...times, ...listInner(row).map(endOf));
}

/** A row after a longer pause shows its time. */
const PAUSE_S = 5 * 60;

export function isAfterPause(row: Row, before: Row | undefined): boolean {
  return before !== undefined && getItem(row).ts - endOf(before) > PAUSE_S;
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

/** A live window moves by this many items at a time, because its first rows are built again when it moves. */
const STEP = 50;

/**
 * The index of the first shown item. `first` and `left_out` count from the beginning of the log. Without `first`, the window
 * is live: it has at least `pages` pages.
 */
export function windowStart(
  first: number | null,
  { left_out, total, pages = 1 }: { left_out: number; total: number; pages?: number },
): number {
  const live = Math.floor((left_out + total - pages * PAGE) / STEP) * STEP;
  return Math.min(Math.max(0, (first ?? live) - left_out), total);
}
