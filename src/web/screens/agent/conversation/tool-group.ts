/** Collects consecutive tool calls, with the permission reviews and thoughts between them, as one row (pure). */
import type { Item, Permission, Tool } from '../../../../acp/transcript/items.ts';
import type { Row, ToolRow, ToolsRow } from './rows.ts';

/** The first items of a group; they may not be shown. */
export interface GroupBegin {
  tool: Tool;
  /** The first of the consecutive reads that the first shown call continues, if it is a read. */
  read: Tool;
}

export class ToolGroup {
  readonly #asked: ReadonlySet<string>;
  readonly #begin: GroupBegin;
  readonly #rows: Row[] = [];
  #reads: Tool[] = [];

  /** `asked`: the ids of the calls with permission reviews. */
  constructor(asked: ReadonlySet<string>, begin: GroupBegin) {
    this.#asked = asked;
    this.#begin = begin;
  }

  addTool(item: Tool): void {
    if (isQuietRead(item, this.#asked)) {
      this.#reads.push(item);
      return;
    }
    this.#closeReads();
    this.#rows.push(toRow(item));
  }

  /** Returns whether the item belongs to the group. */
  add(item: Item): boolean {
    if (item.kind === 'permission') return this.#addPermission(item);
    if (item.kind !== 'thought') return false;
    this.#closeReads();
    this.#rows.push({ type: 'item', key: item.key, item });
    return true;
  }

  toRow(): ToolsRow {
    this.#closeReads();
    return { type: 'tools', key: `tools ${this.#begin.tool.key}`, rows: this.#rows };
  }

  #addPermission(item: Permission): boolean {
    const at = this.#rows.findLastIndex(
      (row) =>
        row.type === 'tool' && row.item.call.id === item.call.id && row.item.subagent === item.subagent,
    );
    const row = this.#rows[at];
    if (row?.type !== 'tool') return false;
    if (isMergeable(item)) this.#rows[at] = { ...row, permissions: [...row.permissions, item] };
    else {
      this.#closeReads();
      this.#rows.push({ type: 'item', key: item.key, item });
    }
    return true;
  }

  #closeReads(): void {
    const reads = this.#reads;
    this.#reads = [];
    if (reads.length > 1) {
      // The first row may have begun before the window, too.
      const { key } = this.#rows.length === 0 ? this.#begin.read : reads[0]!;
      this.#rows.push({ type: 'reads', key: `reads ${key}`, reads });
    } else for (const item of reads) this.#rows.push(toRow(item));
  }
}

function toRow(item: Tool): ToolRow {
  return { type: 'tool', key: item.key, item, permissions: [] };
}

/** Whether a group may contain such items, besides tool calls. */
export function isInGroups({ kind }: Item): boolean {
  return kind === 'permission' || kind === 'thought';
}

/**
 * How the group of a call in the window that starts at `start` began, maybe before the window. So the group stays the same
 * row while the window moves. `asked`: as in the constructor of `ToolGroup`.
 */
export function beginOfGroup(
  call: Tool,
  items: readonly Item[],
  start: number,
  asked: ReadonlySet<string>,
): GroupBegin {
  let begin: GroupBegin = { tool: call, read: call };
  let is_in_reads = true;
  const reviewed = new Set(asked);
  /** The calls of permission reviews, and how the group began if theirs is not in it. */
  const awaited = new Map<string, GroupBegin>();
  for (let at = items.indexOf(call, start) - 1; at >= 0; at--) {
    const item = items[at]!;
    const is_same_author = item.subagent === call.subagent;
    // A sub-agent's row is between the groups of its caller; it also begins the sub-agent's own rows.
    if (item.kind === 'delegation' && (is_same_author || item.id === call.subagent)) break;
    if (!is_same_author) continue;
    if (item.kind !== 'tool' && !isInGroups(item)) break;
    if (item.kind === 'tool') {
      is_in_reads &&= isQuietRead(item, reviewed);
      begin = { tool: item, read: is_in_reads ? item : begin.read };
      awaited.delete(item.call.id);
    } else if (item.kind === 'permission') {
      is_in_reads &&= isMergeable(item);
      reviewed.add(item.call.id);
      if (!awaited.has(item.call.id)) awaited.set(item.call.id, begin);
    } else is_in_reads = false;
  }
  const [after_review = begin] = awaited.values();
  return after_review;
}

/** A read that runs, failed or needed permission has its own row. */
function isQuietRead({ call, status }: Tool, asked: ReadonlySet<string>): boolean {
  return call.tool_kind === 'read' && status === 'completed' && !asked.has(call.id);
}

/** Answered, and the answer reached the agent: a few words about it are enough. */
function isMergeable({ outcome, answered_by, undeliverable }: Permission): boolean {
  if (outcome === null || undeliverable) return false;
  return outcome.type === 'selected' || (outcome.type === 'cancelled' && answered_by !== null);
}
