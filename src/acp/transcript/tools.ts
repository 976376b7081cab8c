/** Tool calls and permission requests as items that change. Each report is merged into the earlier ones. */
import type { ReceivedEntry } from '../entries.ts';
import type { Fields } from '../json.ts';
import { readOutcome, readToolCall, type ToolCall } from '../tool-calls.ts';
import type { Update } from '../updates.ts';
import { shortText, shortTexts } from './bounded.ts';
import { bounds } from './bounds.ts';
import { type Call, countCallChars, countChanges, mergeCall, scopedKey, withContent } from './calls.ts';
import type { ItemList } from './item-list.ts';
import type { Outcome, Permission, Requester, Tool, ToolStatus } from './items.ts';
import type { ItemPosition } from './message-writer.ts';
import { Terminals } from './terminals.ts';

type CallUpdate = Extract<Update, { kind: 'tool_call' }>;

const open: readonly ToolStatus[] = ['pending', 'in_progress'];
const reportable: readonly string[] = [
  'pending',
  'in_progress',
  'completed',
  'failed',
  'cancelled',
] satisfies ToolStatus[];

/** A permission request with its review id and the JSON-RPC id that the agent used. */
export interface PermissionRequest extends Extract<ReceivedEntry, { kind: 'permission_request' }> {
  readonly review_id: string;
  readonly request_id: unknown;
  /** Its size if the event is too large to contain it. */
  readonly too_large: number | null;
  readonly requester: Requester | null;
}

export class Tools {
  readonly #items: ItemList;
  readonly #by_id = new Map<string, number>();
  readonly #open = new Set<number>();
  readonly #by_review = new Map<string, number>();
  /** Pending permission requests, with the ids of the agent's requests. */
  readonly #waiting = new Map<number, unknown>();
  readonly #terminals = new Terminals();
  /** The calls that show each terminal. */
  readonly #by_terminal = new Map<string, number>();

  constructor(items: ItemList) {
    this.#items = items;
  }

  /** Call this after the agent restarts, because it may reuse ids. */
  reset(): void {
    this.#by_id.clear();
    this.#by_terminal.clear();
    this.#terminals.reset();
  }

  /** Whether an update would add an item. `scope`: the session that scopes its id; '' for the agent's own. */
  isNew(update: CallUpdate, scope: string): boolean {
    return this.#find(update, scope) === undefined;
  }

  update(update: CallUpdate, scope: string, where: ItemPosition): void {
    const { operation, call } = update;
    const at = this.#find(update, scope);
    const before = at === undefined ? undefined : (this.#items.get(at) as Tool);
    const after = operation === 'appends' ? appendBlock(before?.call, call) : mergeCall(call, before?.call);
    this.#put(this.#withTerminals(after, scope), call.status, { at, before }, scope, where);
  }

  /** Terminals are shown in the calls that refer to them. */
  terminal(update: Extract<Update, { kind: 'terminal' }>, scope: string): void {
    const at = this.#by_terminal.get(scopedKey(this.#terminals.update(update, scope), scope));
    const item = at === undefined ? undefined : (this.#items.get(at) as Tool | undefined);
    if (!item) return;
    const call = this.#withTerminals(item.call, scope);
    this.#items.replace(at!, { ...item, call }, countCallChars(call));
  }

  #withTerminals(call: Call, scope: string): Call {
    if (!call.content.some(({ type }) => type === 'terminal')) return call;
    const content = call.content.map((item) =>
      item.type === 'terminal' ? this.#terminals.get(item.terminal_id, scope) : item,
    );
    return { ...call, content };
  }

  #put(
    call: Call,
    reported: string | null,
    { at, before }: { at: number | undefined; before: Tool | undefined },
    scope: string,
    where: ItemPosition,
  ): void {
    const status = statusAfter(reported, before?.status);
    const is_open = open.includes(status);
    const ended_ts = is_open ? null : before?.status === status ? before.ended_ts : where.ts;
    const about = { call, status, ended_ts, ...countChanges(call) };
    const chars = countCallChars(call);
    if (before) this.#items.replace(at!, { ...before, ...about }, chars);
    const position = before ? at! : this.#items.add({ kind: 'tool', ...where, ...about }, chars);
    this.#by_id.set(scopedKey(call.id, scope), position);
    for (const item of call.content) {
      if (item.type === 'terminal') this.#by_terminal.set(scopedKey(item.terminal_id, scope), position);
    }
    if (is_open) this.#open.add(position);
    else this.#open.delete(position);
    this.#forget();
  }

  /** Ends all open calls. Later reports can still update them. */
  end(status: 'cancelled' | 'unfinished', ts: number): void {
    for (const at of this.#open) {
      const item = this.#items.get(at) as Tool | undefined;
      if (item) this.#items.replace(at, { ...item, status, ended_ts: ts }, countCallChars(item.call));
    }
    this.#open.clear();
  }

  requested(request: PermissionRequest, scope: string, where: ItemPosition): void {
    const { review_id, request_id, call: permission, requester, too_large } = request;
    const known = this.#byId(scopedKey(shortText(permission.id ?? ''), scope));
    const call = mergeCall(permission, known?.call);
    const options = request.options.slice(0, bounds.parts).map(shortTexts);
    const settled = { outcome: null, answered_by: null, settled_ts: null, undeliverable: false };
    const about = { review_id, requester, call, options, ...settled, too_large };
    const item: Permission = { kind: 'permission', ...where, ...about };
    const at = this.#items.add(item, countCallChars(call));
    this.#by_review.set(review_id, at);
    this.#waiting.set(at, request_id);
    this.#forget();
  }

  responded(review_id: string, by: string | null, result: Fields, ts: number): void {
    const at = this.#by_review.get(review_id);
    if (at === undefined) return;
    this.#settle(at, readCallOutcome(result, this.#items.get(at) as Permission | undefined), by, ts);
  }

  /**
   * Handles the withdrawal of a request. If the agent has used the id more than once, all of these requests are withdrawn.
   */
  withdrawn(request_id: unknown, ts: number): void {
    for (const [at, id] of this.#waiting) {
      if (id === request_id) this.#settle(at, { type: 'withdrawn' }, null, ts);
    }
  }

  /** Call this when the process has ended. Closes all pending requests. */
  processEnded(ts: number): void {
    for (const at of this.#waiting.keys()) this.#settle(at, { type: 'gone' }, null, ts);
  }

  undeliverable(review_id: string): void {
    const at = this.#by_review.get(review_id);
    const item = at === undefined ? undefined : (this.#items.get(at) as Permission | undefined);
    if (item) this.#items.replace(at!, { ...item, undeliverable: true }, countCallChars(item.call));
  }

  #settle(at: number, outcome: Outcome, answered_by: string | null, settled_ts: number): void {
    this.#waiting.delete(at);
    const item = this.#items.get(at) as Permission | undefined;
    if (!item) return;
    this.#items.replace(at, { ...item, outcome, answered_by, settled_ts }, countCallChars(item.call));
  }

  /** Finds the call of an update. If that call has already ended, a `begins` update starts a new call with the same id. */
  #find({ operation, call }: CallUpdate, scope: string): number | undefined {
    const id = scopedKey(shortText(call.id ?? ''), scope);
    const known = this.#byId(id);
    const begins_again = operation === 'begins' && known && !open.includes(known.status);
    return known && !begins_again ? this.#by_id.get(id) : undefined;
  }

  #byId(id: string): Tool | undefined {
    const at = this.#by_id.get(id);
    return at === undefined ? undefined : (this.#items.get(at) as Tool | undefined);
  }

  /** Removes the positions of dropped items. */
  #forget(): void {
    const maps = [this.#by_id, this.#by_review, this.#by_terminal];
    const known = maps.reduce((sum, { size }) => sum + size, this.#waiting.size + this.#open.size);
    if (known < 4 * bounds.items) return;
    const { dropped } = this.#items;
    for (const map of maps) {
      for (const [key, at] of map) if (at < dropped) map.delete(key);
    }
    for (const at of this.#waiting.keys()) if (at < dropped) this.#waiting.delete(at);
    for (const at of this.#open) if (at < dropped) this.#open.delete(at);
  }
}

function appendBlock(before: Call | undefined, { id, content }: ToolCall): Call {
  return withContent(before ?? mergeCall(readToolCall({ toolCallId: id })), content);
}

/** After a cancellation, only a final status is accepted, because a cancelled agent may still report progress. */
function statusAfter(reported: string | null, before: ToolStatus | undefined): ToolStatus {
  if (reported === null || !reportable.includes(reported)) return before ?? 'pending';
  const status = reported as ToolStatus;
  return before === 'cancelled' && open.includes(status) ? before : status;
}

function readCallOutcome(result: Fields, permission: Permission | undefined): Outcome {
  const { outcome, option_id } = readOutcome(result);
  if (outcome !== 'selected' || option_id === null) return { type: 'cancelled' };
  const option = permission?.options.find((option) => option.option_id === option_id) ?? null;
  return { type: 'selected', option_id, option };
}
