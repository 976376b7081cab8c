/** Collects consecutive tool calls, with the permission reviews and thoughts between them, as one row (pure). */
import type { Item, Permission, Tool } from '../../../../acp/transcript/items.ts';
import type { Row, ToolRow, ToolsRow } from './rows.ts';

export class ToolGroup {
  readonly #asked: ReadonlySet<string>;
  readonly #begin: Tool;
  readonly #rows: Row[] = [];
  #reads: Tool[] = [];

  /** `asked`: the ids of the calls with permission reviews. `begin`: the call that began the group; it may not be shown. */
  constructor(asked: ReadonlySet<string>, begin: Tool) {
    this.#asked = asked;
    this.#begin = begin;
  }

  addTool(item: Tool): void {
    if (this.#isQuietRead(item)) {
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
    return { type: 'tools', key: `tools ${this.#begin.key}`, rows: this.#rows };
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
      const { key } = this.#rows.length === 0 ? this.#begin : reads[0]!;
      this.#rows.push({ type: 'reads', key: `reads ${key}`, reads });
    } else for (const item of reads) this.#rows.push(toRow(item));
  }

  /** A read that runs, failed or needed permission has its own row. */
  #isQuietRead({ call, status }: Tool): boolean {
    return call.tool_kind === 'read' && status === 'completed' && !this.#asked.has(call.id);
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
 * The call that began the group of a call in the window that starts at `start`; it may be before the window. So the group
 * stays the same row while the window moves.
 */
export function firstToolOf(tool: Tool, items: readonly Item[], start: number): Tool {
  let first = tool;
  /** The calls of permission reviews, and the call after the review: it begins the group if theirs is not in it. */
  const asked = new Map<string, Tool>();
  for (let at = items.indexOf(tool, start) - 1; at >= 0; at--) {
    const item = items[at]!;
    const is_same_author = item.subagent === tool.subagent;
    // A sub-agent's row is between the groups of its caller; it also begins the sub-agent's own rows.
    if (item.kind === 'delegation' && (is_same_author || item.id === tool.subagent)) break;
    if (!is_same_author) continue;
    if (item.kind === 'tool') {
      first = item;
      asked.delete(item.call.id);
    } else if (item.kind === 'permission') {
      if (!asked.has(item.call.id)) asked.set(item.call.id, first);
    } else if (!isInGroups(item)) break;
  }
  const [after_review = first] = asked.values();
  return after_review;
}

/** Answered, and the answer reached the agent: a few words about it are enough. */
function isMergeable({ outcome, answered_by, undeliverable }: Permission): boolean {
  if (outcome === null || undeliverable) return false;
  return outcome.type === 'selected' || (outcome.type === 'cancelled' && answered_by !== null);
}
