/** Tool calls and the questions about them, as rows that change: what the agent tells later is laid over what it told before. */
import { bounds } from './bounds.ts';
import { callOf, changesOf, charsOfCall } from './calls.ts';
import type { ItemList } from './item-list.ts';
import type { Option, Outcome, Permission, Tool, ToolStatus } from './items.ts';
import { type Fields, fieldsOf, recordsOf, stringOf, wordOf } from './reading.ts';
import type { Where } from './speech.ts';

const open: readonly ToolStatus[] = ['pending', 'in_progress'];
const told: readonly string[] = ['pending', 'in_progress', 'completed', 'failed'] satisfies ToolStatus[];

export class Tools {
  readonly #items: ItemList;
  readonly #by_id = new Map<string, number>();
  readonly #open = new Set<number>();
  readonly #by_review = new Map<string, number>();
  /** Questions that wait, with the id of the agent's request. */
  readonly #waiting = new Map<number, unknown>();

  constructor(items: ItemList) {
    this.#items = items;
  }

  /** A new life of the agent: it may use the same ids again. */
  begin(): void {
    this.#by_id.clear();
  }

  /** Whether an update would be a new row. */
  isNew(update: Fields): boolean {
    return this.#find(update) === undefined;
  }

  /** `tool_call` or `tool_call_update`. */
  update(update: Fields, where: Where): void {
    const at = this.#find(update);
    const before = at === undefined ? undefined : (this.#items.get(at) as Tool);
    const call = callOf(update, before?.call);
    const status = statusAfter(update.status, before?.status);
    const is_open = open.includes(status);
    const ended_ts = is_open ? null : before?.status === status ? before.ended_ts : where.ts;
    const about = { call, status, ended_ts, ...changesOf(call) };
    const chars = charsOfCall(call);
    if (before) this.#items.replace(at!, { ...before, ...about }, chars);
    const place = before ? at! : this.#items.add({ kind: 'tool', ...where, ...about }, chars);
    this.#by_id.set(call.id, place);
    if (is_open) this.#open.add(place);
    else this.#open.delete(place);
    this.#forget();
  }

  /** No more is expected of the calls that are open; what is told of them later still counts. */
  end(status: 'cancelled' | 'unfinished', ts: number): void {
    for (const at of this.#open) {
      const item = this.#items.get(at) as Tool | undefined;
      if (item) this.#items.replace(at, { ...item, status, ended_ts: ts }, charsOfCall(item.call));
    }
    this.#open.clear();
  }

  /** `session/request_permission`; `too_large`: its size, where its params are not here. */
  asks(review_id: string, request_id: unknown, params: Fields, too_large: number | null, where: Where): void {
    const asked = fieldsOf(params.toolCall);
    const known = this.#byId(wordOf(asked.toolCallId) ?? '');
    const call = callOf(asked, known?.call);
    const options = recordsOf(params.options).flatMap(optionOf);
    const settled = { outcome: null, answered_by: null, settled_ts: null, undeliverable: false };
    const item: Permission = {
      kind: 'permission',
      ...where,
      review_id,
      call,
      options,
      ...settled,
      too_large,
    };
    const at = this.#items.add(item, charsOfCall(call));
    this.#by_review.set(review_id, at);
    this.#waiting.set(at, request_id);
    this.#forget();
  }

  answered(review_id: string, by: string | null, result: Fields, ts: number): void {
    const at = this.#by_review.get(review_id);
    if (at === undefined) return;
    this.#settle(at, outcomeOf(result, this.#items.get(at) as Permission | undefined), by, ts);
  }

  /** The agent no longer waits: all that it asked under this id, since no more is known. */
  withdrawn(request_id: unknown, ts: number): void {
    for (const [at, id] of this.#waiting) {
      if (id === request_id) this.#settle(at, { type: 'withdrawn' }, null, ts);
    }
  }

  /** Nobody waits any more. */
  gone(ts: number): void {
    for (const at of this.#waiting.keys()) this.#settle(at, { type: 'gone' }, null, ts);
  }

  undeliverable(review_id: string): void {
    const at = this.#by_review.get(review_id);
    const item = at === undefined ? undefined : (this.#items.get(at) as Permission | undefined);
    if (item) this.#items.replace(at!, { ...item, undeliverable: true }, charsOfCall(item.call));
  }

  #settle(at: number, outcome: Outcome, answered_by: string | null, settled_ts: number): void {
    this.#waiting.delete(at);
    const item = this.#items.get(at) as Permission | undefined;
    if (!item) return;
    this.#items.replace(at, { ...item, outcome, answered_by, settled_ts }, charsOfCall(item.call));
  }

  /** A call that begins again after its end is another one, though it has its id. */
  #find({ sessionUpdate, toolCallId }: Fields): number | undefined {
    const id = wordOf(toolCallId) ?? '';
    const known = this.#byId(id);
    const begins_again = sessionUpdate === 'tool_call' && known && !open.includes(known.status);
    return known && !begins_again ? this.#by_id.get(id) : undefined;
  }

  #byId(id: string): Tool | undefined {
    const at = this.#by_id.get(id);
    return at === undefined ? undefined : (this.#items.get(at) as Tool | undefined);
  }

  /** What is no longer on the page. */
  #forget(): void {
    const known = this.#by_id.size + this.#by_review.size + this.#waiting.size + this.#open.size;
    if (known < 4 * bounds.items) return;
    const { dropped } = this.#items;
    for (const map of [this.#by_id, this.#by_review]) {
      for (const [key, at] of map) if (at < dropped) map.delete(key);
    }
    for (const at of this.#waiting.keys()) if (at < dropped) this.#waiting.delete(at);
    for (const at of this.#open) if (at < dropped) this.#open.delete(at);
  }
}

/** After a cancel only an end counts: agents that were told to stop may still say that they work. */
function statusAfter(said: unknown, before: ToolStatus | undefined): ToolStatus {
  if (typeof said !== 'string' || !told.includes(said)) return before ?? 'pending';
  const status = said as ToolStatus;
  return before === 'cancelled' && open.includes(status) ? before : status;
}

function optionOf({ optionId, name, kind }: Fields): Option[] {
  const option_id = stringOf(optionId);
  return option_id === null ? [] : [{ option_id, name: wordOf(name) ?? option_id, kind: wordOf(kind) ?? '' }];
}

function outcomeOf({ outcome }: Fields, asked: Permission | undefined): Outcome {
  const { outcome: type, optionId } = fieldsOf(outcome);
  const option_id = stringOf(optionId);
  if (type !== 'selected' || option_id === null) return { type: 'cancelled' };
  const option = asked?.options.find((one) => one.option_id === option_id) ?? null;
  return { type: 'selected', option_id, option };
}
