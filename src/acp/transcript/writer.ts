/** Adds items to a transcript. Keeps track of the current turn and the authors, and places each event's item. */
import type { EventRecord } from '../../core/event.ts';
import { oversizedBytes, readAuthor } from '../entries.ts';
import { asNumber } from '../json.ts';
import { shortOrNull, toRaw } from './bounded.ts';
import { bounds } from './bounds.ts';
import { ItemList } from './item-list.ts';
import type { Item, Session, Stop } from './items.ts';
import { type ItemPosition, MessageWriters } from './message-writer.ts';
import { RelayedMessages } from './relayed.ts';
import { Subagents } from './subagents.ts';
import { Tools } from './tools.ts';
import { Turns } from './turns.ts';

/** Errors of a connection, which repeat the number of another event. */
const connection_codes: readonly unknown[] = ['reset', 'events_truncated'];

export class Writer {
  readonly items = new ItemList();
  readonly messages = new MessageWriters(this.items);
  readonly subagents = new Subagents(this.items);
  readonly relayed = new RelayedMessages(this.items);
  readonly tools = new Tools(this.items);
  readonly turns = new Turns();
  #sessions: readonly Session[] = [];
  #last_seq = 0;
  /** How many times the log has started over. */
  #resets = 0;
  /** The number of keys that were created for errors of a connection. */
  #connection_keys = 0;

  get sessions(): readonly Session[] {
    return this.#sessions;
  }

  get last_seq(): number {
    return this.#last_seq;
  }

  /** Whether the event is new. The caller skips events that were processed before. */
  isNew(event: EventRecord): boolean {
    const seq = asNumber(event.seq);
    if (seq === null || (seq <= this.#last_seq && !isOfConnection(event))) return false;
    this.#last_seq = Math.max(seq, this.#last_seq);
    return true;
  }

  /** Starts another session of the agent, which may reuse ids. */
  begin(session_id: string, { seq, ts }: EventRecord): void {
    this.endProcess('unfinished', ts);
    this.tools.reset();
    this.messages.begin();
    this.subagents.begin();
    this.relayed.begin();
    const session = { session_id, first_seq: seq, started_ts: ts };
    this.#sessions = [...this.#sessions.slice(1 - bounds.sessions), session];
  }

  /** Call this when the process has ended, so that its open work will not be finished. */
  endProcess(tools: 'cancelled' | 'unfinished', ts: number): void {
    this.endTurn(null, tools, ts);
    this.tools.processEnded(ts);
    this.subagents.processEnded();
  }

  /** Call this when the log starts over. Its events are numbered again, and their items get other keys. */
  reset(seq: number): void {
    this.#last_seq = seq;
    this.#resets++;
  }

  endTurn(stop_reason: string | null, tools: 'cancelled' | 'unfinished', ts: number): void {
    this.messages.pause(ts);
    this.tools.end(tools, ts);
    this.turns.end(stop_reason, ts);
  }

  /** Adds an item that ends the turn. */
  stop(where: ItemPosition, reason: string | null, tokens: number | null): void {
    const started_ts = this.turns.open?.started_ts;
    this.endTurn(reason, reason === 'cancelled' ? 'cancelled' : 'unfinished', where.ts);
    const seconds = started_ts === undefined ? null : where.ts - started_ts;
    this.add({ kind: 'stop', ...where, reason, seconds, ...this.#countWork(where.turn), tokens }, 0);
  }

  #countWork(turn: number | null): Pick<Stop, 'tools' | 'added' | 'removed'> {
    const work = { tools: 0, added: 0, removed: 0 };
    if (turn === null) return work;
    for (let at = this.items.end - 1; ; at--) {
      const item = this.items.get(at);
      // Items between turns have no turn.
      if (item === undefined || (item.turn !== null && item.turn < turn)) return work;
      if (item.kind !== 'tool' || item.turn !== turn) continue;
      work.tools++;
      if (item.status !== 'completed') continue;
      work.added += item.added;
      work.removed += item.removed;
    }
  }

  /** The place of the event's item. */
  where(event: EventRecord): ItemPosition {
    const { seq, ts, subagent } = event;
    const own = isOfConnection(event) ? `${seq}+${++this.#connection_keys}` : String(seq);
    const key = this.#resets === 0 ? own : `${this.#resets}:${own}`;
    return { key, seq, ts, turn: this.turns.open?.n ?? null, subagent: shortOrNull(subagent) };
  }

  /** Like `where`, but adds the missing row of a sub-agent first, so that its items appear below that row. */
  whereBelowSubagent(event: EventRecord): ItemPosition {
    const where = this.where(event);
    this.subagents.ensureRow(where, readAuthor(event)?.unknown_session ?? false);
    return where;
  }

  /** Pauses the author, whose next text is then a new message. */
  pause({ subagent, ts }: ItemPosition): void {
    this.messages.of(subagent, ts).pause(ts);
  }

  /** `chars`: the size of the item. */
  add(item: Item, chars: number): void {
    this.pause(item);
    this.items.add(item, chars);
  }

  notice(event: EventRecord, code: string, text: string, details: Record<string, unknown>): void {
    const raw = toRaw(details, bounds.title_chars);
    const item: Item = { kind: 'notice', ...this.where(event), code, text, details: raw };
    this.items.add(item, text.length + raw.chars);
  }

  unknown(event: EventRecord, label: string, value: unknown): void {
    const raw = toRaw(value ?? null);
    this.add(
      { kind: 'unknown', ...this.whereBelowSubagent(event), label, raw, too_large: oversizedBytes(event) },
      raw.chars,
    );
  }
}

function isOfConnection({ type, code }: EventRecord): boolean {
  return type === 'error' && connection_codes.includes(code);
}
