/** Collects consecutive tool calls, with the permission reviews and thoughts between them, as one row (pure). */
import type { Item, Permission, Tool } from '../../../../acp/transcript/items.ts';
import type { Row, ToolRow, ToolsRow } from './rows.ts';

export class ToolGroup {
  readonly #asked: ReadonlySet<string>;
  readonly #rows: Row[] = [];
  #reads: Tool[] = [];

  /** `asked`: the ids of the calls with permission reviews. */
  constructor(asked: ReadonlySet<string>) {
    this.#asked = asked;
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
    const rows = this.#rows;
    return { type: 'tools', key: `tools ${firstTool(rows[0]!).key}`, rows };
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
    if (reads.length > 1) this.#rows.push({ type: 'reads', key: `reads ${reads[0]!.key}`, reads });
    else for (const item of reads) this.#rows.push(toRow(item));
  }

  /** A read that runs, failed or needed permission has its own row. */
  #isQuietRead({ call, status }: Tool): boolean {
    return call.tool_kind === 'read' && status === 'completed' && !this.#asked.has(call.id);
  }
}

function toRow(item: Tool): ToolRow {
  return { type: 'tool', key: item.key, item, permissions: [] };
}

function firstTool(row: Row): Item {
  return row.type === 'reads' ? row.reads[0]! : (row as ToolRow).item;
}

/** Answered, and the answer reached the agent: a few words about it are enough. */
function isMergeable({ outcome, answered_by, undeliverable }: Permission): boolean {
  if (outcome === null || undeliverable) return false;
  return outcome.type === 'selected' || (outcome.type === 'cancelled' && answered_by !== null);
}
