/**
 * Messages between the agent and its sub-agents. A message arrives in chunks, or complete and then replaces an earlier one with
 * the same id.
 */
import type { Update } from '../updates.ts';
import { shortText } from './bounded.ts';
import { bounds } from './bounds.ts';
import type { ItemList } from './item-list.ts';
import type { RelayedItem } from './items.ts';
import type { ItemPosition } from './message-writer.ts';
import { appendBlock, type Body, emptyBody } from './parts.ts';

export class RelayedMessages {
  readonly #items: ItemList;
  readonly #by_id = new Map<string, number>();

  constructor(items: ItemList) {
    this.#items = items;
  }

  begin(): void {
    this.#by_id.clear();
  }

  /** `parties`: the names of sender and recipient. */
  add(
    { message_id, is_chunk, blocks }: Extract<Update, { kind: 'session_message' }>,
    parties: Pick<RelayedItem, 'from' | 'to'>,
    where: ItemPosition,
  ): void {
    // A complete message without content only updates other fields.
    if (blocks === null) return;
    const key = `${where.subagent ?? ''} ${shortText(message_id ?? '')}`;
    const at = this.#by_id.get(key);
    const before = at === undefined ? undefined : (this.#items.get(at) as RelayedItem | undefined);
    const body = blocks.reduce<Body>(appendBlock, (is_chunk && before?.body) || emptyBody);
    if (before) {
      this.#items.replace(at!, { ...before, body }, body.chars);
      return;
    }
    if (body.parts.length === 0) return;
    if (this.#by_id.size >= bounds.parts) this.#by_id.clear();
    this.#by_id.set(key, this.#items.add({ kind: 'relayed', ...where, ...parties, body }, body.chars));
  }
}
