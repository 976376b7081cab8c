/** Messages and thoughts, which arrive in chunks: the item that each chunk belongs to, and when it ends. */

import type { MessageKind } from '../updates.ts';
import { bounds } from './bounds.ts';
import type { ItemList } from './item-list.ts';
import type { MessageItem } from './items.ts';
import { appendBlock, type Body, emptyBody, toBody } from './parts.ts';

/** The place of an item: its key, its first event, and its author. */
export interface ItemPosition {
  key: string;
  seq: number;
  ts: number;
  turn: number | null;
  subagent: string | null;
}

export class MessageWriter {
  readonly #items: ItemList;
  /** The position of the item that the author continues. */
  #at: number | null = null;
  /** The current part of each message that has an id, since it was last interrupted. */
  readonly #by_id = new Map<string, number>();
  /** The positions of all parts of each message that has an id. */
  readonly #parts = new Map<string, number[]>();

  constructor(items: ItemList) {
    this.#items = items;
  }

  chunk(kind: MessageKind, message_id: string | null, block: unknown, where: ItemPosition): void {
    const at = this.#find(kind, message_id);
    const before = at === undefined ? undefined : (this.#items.get(at) as MessageItem | undefined);
    const body = appendBlock(before?.body ?? emptyBody, block);
    if (!before && isEmpty(body)) return;
    if (this.#at !== null && this.#at !== at) this.#end(this.#at, where.ts);
    if (before) {
      this.#items.replace(at!, { ...before, body, ended_ts: null }, body.chars);
      this.#at = at!;
      return;
    }
    this.#add(kind, message_id, body, where);
  }

  /** Replaces the message's earlier chunks. If `blocks` is null, they stay. */
  replace(
    kind: MessageKind,
    message_id: string | null,
    blocks: readonly unknown[] | null,
    where: ItemPosition,
  ): void {
    if (blocks === null) return;
    let body = toBody(blocks);
    let is_there = false;
    for (const at of this.#parts.get(`${kind} ${message_id}`) ?? []) {
      const item = this.#items.get(at) as MessageItem | undefined;
      if (!item) continue;
      this.#items.replace(at, { ...item, body }, body.chars);
      // The complete message is shown at the position of its first part.
      body = emptyBody;
      is_there = true;
    }
    if (is_there) return;
    if (isEmpty(body)) return;
    if (this.#at !== null) this.#end(this.#at, where.ts);
    this.#add(kind, message_id, body, where);
  }

  /** Something else follows, so later chunks start a new item. */
  pause(ts: number): void {
    if (this.#at !== null) this.#end(this.#at, ts);
    this.#at = null;
    this.#by_id.clear();
  }

  #add(kind: MessageKind, message_id: string | null, body: Body, where: ItemPosition): void {
    this.#at = this.#items.add({ kind, ...where, body, message_id, ended_ts: null }, body.chars);
    if (message_id === null) return;
    const key = `${kind} ${message_id}`;
    if (this.#by_id.size >= bounds.parts) this.#by_id.clear();
    this.#by_id.set(key, this.#at);
    if (this.#parts.size >= bounds.parts) this.#parts.clear();
    this.#parts.set(key, [...(this.#parts.get(key) ?? []), this.#at]);
  }

  #find(kind: MessageKind, message_id: string | null): number | undefined {
    if (message_id !== null) return this.#by_id.get(`${kind} ${message_id}`);
    const current = this.#at === null ? undefined : (this.#items.get(this.#at) as MessageItem | undefined);
    const continues = current?.kind === kind && current.message_id === null;
    return continues ? this.#at! : undefined;
  }

  #end(at: number, ts: number): void {
    const item = this.#items.get(at) as MessageItem | undefined;
    if (item) this.#items.replace(at, { ...item, ended_ts: ts }, item.body.chars);
  }
}

/** Concurrent authors: the agent and its sub-agents. Each of them continues its own message. */
export class MessageWriters {
  readonly #items: ItemList;
  readonly #all = new Map<string | null, MessageWriter>();

  constructor(items: ItemList) {
    this.#items = items;
  }

  /** The author's speech. `subagent`: null for the agent itself. */
  of(subagent: string | null, ts: number): MessageWriter {
    if (this.#all.size > bounds.subagents) {
      this.pause(ts);
      this.begin();
    }
    const writer = this.#all.get(subagent) ?? new MessageWriter(this.#items);
    this.#all.set(subagent, writer);
    return writer;
  }

  /** Pauses all authors. */
  pause(ts: number): void {
    for (const writer of this.#all.values()) writer.pause(ts);
  }

  /** Call this when the agent was restarted and may reuse ids. */
  begin(): void {
    this.#all.clear();
  }
}

function isEmpty({ parts, omitted_chars }: Body): boolean {
  return parts.length === 0 && omitted_chars === 0;
}
