/** Messages and thoughts, which come in chunks: which item a chunk belongs to, and when that ends. */
import { bounds } from './bounds.ts';
import type { ItemList } from './item-list.ts';
import type { Spoken } from './items.ts';
import { appended, type Body, emptyBody } from './parts.ts';

export type Voice = Spoken['kind'];

export interface Where {
  key: string;
  seq: number;
  ts: number;
  turn: number | null;
}

export class Speech {
  readonly #items: ItemList;
  /** Where the agent speaks now. */
  #at: number | null = null;
  /** Where messages stand that have an id, since something else came between. */
  readonly #by_id = new Map<string, number>();

  constructor(items: ItemList) {
    this.#items = items;
  }

  chunk(voice: Voice, message_id: string | null, block: unknown, where: Where): void {
    const at = this.#find(voice, message_id);
    const before = at === undefined ? undefined : (this.#items.get(at) as Spoken | undefined);
    const body = appended(before?.body ?? emptyBody, block);
    if (!before && isEmpty(body)) return;
    if (this.#at !== null && this.#at !== at) this.#end(this.#at, where.ts);
    if (before) {
      this.#items.replace(at!, { ...before, body, ended_ts: null }, body.chars);
      this.#at = at!;
      return;
    }
    this.#at = this.#items.add({ kind: voice, ...where, body, message_id, ended_ts: null }, body.chars);
    if (message_id === null) return;
    if (this.#by_id.size >= bounds.parts) this.#by_id.clear();
    this.#by_id.set(`${voice} ${message_id}`, this.#at);
  }

  /** Something else comes: what is said after it stands after it. */
  pause(ts: number): void {
    if (this.#at !== null) this.#end(this.#at, ts);
    this.#at = null;
    this.#by_id.clear();
  }

  #find(voice: Voice, message_id: string | null): number | undefined {
    if (message_id !== null) return this.#by_id.get(`${voice} ${message_id}`);
    const current = this.#at === null ? undefined : (this.#items.get(this.#at) as Spoken | undefined);
    const goes_on = current?.kind === voice && current.message_id === null;
    return goes_on ? this.#at! : undefined;
  }

  #end(at: number, ts: number): void {
    const item = this.#items.get(at) as Spoken | undefined;
    if (item) this.#items.replace(at, { ...item, ended_ts: ts }, item.body.chars);
  }
}

function isEmpty({ parts, cut }: Body): boolean {
  return parts.length === 0 && cut === 0;
}
