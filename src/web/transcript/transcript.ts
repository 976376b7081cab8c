/**
 * An agent's event log as the conversation that screens show. Events are taken in their order, in batches of any size with the same
 * result; `view` is a picture that never changes, in which whatever did not change is the same object as before.
 */
import type { AGENT_METHODS, CLIENT_METHODS, PROTOCOL_METHODS } from '@agentclientprotocol/sdk';
import { type AgentStatus, isFinal } from '../../domain/agent.ts';
import type { EventRecord } from '../../domain/event.ts';
import { bounds } from './bounds.ts';
import { ItemList } from './item-list.ts';
import type { Item, Printed, Session, Turn } from './items.ts';
import { appended, type Body, bodyOf, textOf } from './parts.ts';
import {
  type Fields,
  fieldsOf,
  headOf,
  isRecord,
  numberOf,
  outputText,
  rawOf,
  stringOf,
  wordOf,
} from './reading.ts';
import { afterAnswer, afterUpdate, noSettings, type Settings } from './settings.ts';
import { Speech, type Where } from './speech.ts';
import { Tools } from './tools.ts';
import { Turns } from './turns.ts';

type AgentMethod = (typeof AGENT_METHODS)[keyof typeof AGENT_METHODS];
type ClientMethod =
  | (typeof CLIENT_METHODS)[keyof typeof CLIENT_METHODS]
  | (typeof PROTOCOL_METHODS)[keyof typeof PROTOCOL_METHODS];

export interface View extends Settings {
  readonly items: readonly Item[];
  /** Older items that the page no longer holds. */
  readonly left_out: number;
  readonly turns: readonly Turn[];
  readonly sessions: readonly Session[];
  /** A turn goes on. */
  readonly working: boolean;
  /** It was cancelled, and the agent has not ended it yet. */
  readonly stopping: boolean;
  readonly last_seq: number;
}

interface Asked {
  method: string;
  /** What was asked for. */
  value: string | null;
}

/** Told to one connection, with the number of another event. */
const connection_codes: readonly unknown[] = ['reset', 'events_truncated'];
/** Their refusals are told by no event of their own. */
const refusable: readonly string[] = [
  'authenticate',
  'session/set_mode',
  'session/set_config_option',
] satisfies AgentMethod[];

export class Transcript {
  readonly #items = new ItemList();
  readonly #speech = new Speech(this.#items);
  readonly #tools = new Tools(this.#items);
  #settings = noSettings;
  readonly #turns = new Turns();
  #sessions: readonly Session[] = [];
  #session_id: string | null = null;
  /** Requests of ours, by their id. */
  readonly #asked = new Map<unknown, Asked>();
  /** What the last prompt said. */
  #prompted = '';
  #last_seq = 0;
  /** How often the log began anew, and how many keys were given. */
  #resets = 0;
  #told = 0;
  #view: View | null = null;

  get view(): View {
    const { open } = this.#turns;
    this.#view ??= {
      ...this.#settings,
      items: this.#items.copy,
      left_out: this.#items.dropped,
      turns: this.#turns.all,
      sessions: this.#sessions,
      working: open !== null,
      stopping: open !== null && open.cancelled_ts !== null,
      last_seq: this.#last_seq,
    };
    return this.#view;
  }

  /** Events that were taken before are not taken again. */
  take(events: readonly EventRecord[]): void {
    for (const event of events) {
      const is_connection = event.type === 'error' && connection_codes.includes(event.code);
      const seq = numberOf(event.seq);
      if (seq === null || (seq <= this.#last_seq && !is_connection)) continue;
      this.#last_seq = Math.max(seq, this.#last_seq);
      this.#view = null;
      this.#take(event);
    }
  }

  #take(event: EventRecord): void {
    const { session_id } = event;
    if (typeof session_id === 'string' && session_id !== this.#session_id) this.#begin(session_id, event);
    switch (event.type) {
      case 'acp_event':
        if (event.direction === 'to_agent') this.#said(event);
        else this.#heard(event);
        break;
      case 'output':
        this.#printed(event);
        break;
      case 'status':
        this.#status(event);
        break;
      case 'error':
        this.#error(event);
        break;
      default:
        this.#unknown(event, wordOf(fieldsOf(event).type) ?? 'event', event);
    }
  }

  #begin(session_id: string, { seq, ts }: EventRecord): void {
    this.#over('unfinished', ts);
    this.#session_id = session_id;
    this.#asked.clear();
    this.#tools.begin();
    const session = { session_id, first_seq: seq, started_ts: ts };
    this.#sessions = [...this.#sessions.slice(1 - bounds.sessions), session];
  }

  /** The process is gone, and everything that it was about to do. */
  #over(tools: 'cancelled' | 'unfinished', ts: number): void {
    this.#endTurn(null, tools, ts);
    this.#tools.gone(ts);
  }

  // --- to the agent ---------------------------------------------------------------------------------------------------

  #said(event: EventRecord): void {
    const { id, method, params } = fieldsOf(event.payload);
    const named = stringOf(method) ?? stringOf(event.method);
    if (named === null) {
      this.#answered(event);
      return;
    }
    const { prompt, modeId } = fieldsOf(params);
    if (id !== undefined) this.#ask(id, { method: named, value: stringOf(modeId) });
    switch (named as AgentMethod) {
      case 'session/prompt':
        this.#prompt(event, id, bodyOf(prompt));
        break;
      case 'session/cancel':
        this.#cancel(event.ts);
        break;
      default:
    }
  }

  #ask(id: unknown, asked: Asked): void {
    this.#asked.set(id, asked);
    const [oldest] = this.#asked.keys();
    if (this.#asked.size > bounds.asked) this.#asked.delete(oldest);
  }

  #prompt(event: EventRecord, id: unknown, body: Body): void {
    this.#endTurn(null, 'unfinished', event.ts);
    const prompt_id = wordOf(id) ?? '';
    this.#turns.begin(prompt_id, event.seq, event.ts);
    this.#prompted = textOf(body);
    const too_large = tooLarge(event);
    this.#add({ kind: 'user_message', ...this.#where(event), body, prompt_id, too_large }, body.chars);
  }

  #cancel(ts: number): void {
    this.#speech.pause(ts);
    this.#tools.end('cancelled', ts);
    this.#turns.cancel(ts);
  }

  #answered({ review_id, answered_by, payload, ts }: EventRecord): void {
    if (typeof review_id !== 'string') return;
    const result = fieldsOf(fieldsOf(payload).result);
    this.#tools.answered(review_id, stringOf(answered_by), result, ts);
  }

  // --- from the agent -------------------------------------------------------------------------------------------------

  #heard(event: EventRecord): void {
    const { id, method, params } = fieldsOf(event.payload);
    const named = stringOf(method) ?? stringOf(event.method);
    if (named === null) {
      this.#response(event);
      return;
    }
    switch (named as ClientMethod) {
      case 'session/update':
        if (!isRecord(event.payload)) break;
        this.#update(event, fieldsOf(fieldsOf(params).update));
        return;
      case 'session/request_permission': {
        if (typeof event.review_id !== 'string') break;
        this.#speech.pause(event.ts);
        this.#tools.asks(event.review_id, id, fieldsOf(params), tooLarge(event), this.#where(event));
        return;
      }
      case '$/cancel_request':
        this.#tools.withdrawn(fieldsOf(params).requestId, event.ts);
        return;
    }
    this.#unknown(event, named, params);
  }

  #response(event: EventRecord): void {
    const { id = event.response_to, result, error } = fieldsOf(event.payload);
    const asked = this.#asked.get(id);
    this.#asked.delete(id);
    const reason = wordOf(fieldsOf(result).stopReason);
    if (asked?.method === 'session/prompt' || reason !== null) {
      // What went wrong is told by a notice.
      if (isRecord(error)) this.#endTurn(null, 'unfinished', event.ts);
      else this.#stop(event, reason);
      return;
    }
    if (!asked) return;
    if (isRecord(result)) this.#settings = afterAnswer(this.#settings, asked.method, asked.value, result);
    if (isRecord(error) && refusable.includes(asked.method)) {
      this.#notice(event, 'refused', wordOf(error.message) ?? '', { method: asked.method });
    }
  }

  #stop(event: EventRecord, reason: string | null): void {
    const started_ts = this.#turns.open?.started_ts;
    const where = this.#where(event);
    this.#endTurn(reason, reason === 'cancelled' ? 'cancelled' : 'unfinished', event.ts);
    const seconds = started_ts === undefined ? null : event.ts - started_ts;
    this.#add({ kind: 'stop', ...where, reason, seconds }, 0);
  }

  #update(event: EventRecord, update: Fields): void {
    const settings = afterUpdate(this.#settings, update);
    if (settings) {
      this.#settings = settings;
      return;
    }
    // The conversation of before stands here already.
    if (event.replay) return;
    const { sessionUpdate, content, messageId } = update;
    switch (sessionUpdate) {
      case 'agent_message_chunk':
        this.#speech.chunk('agent_message', wordOf(messageId), content, this.#where(event));
        break;
      case 'agent_thought_chunk':
        this.#speech.chunk('thought', wordOf(messageId), content, this.#where(event));
        break;
      case 'user_message_chunk':
        this.#echo(event, content);
        break;
      case 'tool_call':
      case 'tool_call_update':
        if (this.#tools.isNew(update)) this.#speech.pause(event.ts);
        this.#tools.update(update, this.#where(event));
        break;
      case 'notice':
        this.#notice(event, noticeCode(update.severity), wordOf(update.title) ?? '', {
          description: update.description,
        });
        break;
      default:
        this.#unknown(event, wordOf(sessionUpdate) ?? 'session/update', update);
    }
  }

  /** Prompts are shown as they were sent: what an agent says again of them is not. */
  #echo(event: EventRecord, content: unknown): void {
    const said = bodyOf([content]);
    if (this.#prompted.includes(textOf(said))) return;
    const at = this.#items.end - 1;
    const last = this.#items.get(at);
    if (last?.kind === 'user_message' && last.prompt_id === null) {
      const body = appended(last.body, content);
      this.#items.replace(at, { ...last, body }, body.chars);
      return;
    }
    const about = { body: said, prompt_id: null, too_large: null };
    this.#add({ kind: 'user_message', ...this.#where(event), ...about }, said.chars);
  }

  // --- of the service -------------------------------------------------------------------------------------------------

  #printed(event: EventRecord): void {
    if (event.stream !== 'stdout') return;
    const { text } = outputText(event);
    const lines = text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
    const last = this.#items.get(this.#items.end - 1);
    const before = last?.kind === 'output' ? last : undefined;
    const kept = headOf(text, Math.max(0, bounds.output_chars - (before?.text.length ?? 0)));
    const about = {
      text: (before?.text ?? '') + kept,
      lines: (before?.lines ?? 0) + lines,
      cut: (before?.cut ?? 0) + text.length - kept.length,
    };
    // What was printed comes between chunks of a message, which goes on all the same.
    if (!before) this.#items.add({ kind: 'output', ...this.#where(event), ...about }, about.text.length);
    else this.#items.replace(this.#items.end - 1, { ...before, ...about } as Printed, about.text.length);
  }

  #status(event: EventRecord): void {
    const { session_id, ts } = event;
    const status = event.status as AgentStatus;
    if (isFinal(status)) this.#over(status === 'cancelled' ? 'cancelled' : 'unfinished', ts);
    const [exit_code, exit_signal] = [numberOf(event.exit_code), wordOf(event.exit_signal)];
    const about = { status, session_id, exit_code, exit_signal, reason: wordOf(event.reason) };
    this.#add({ kind: 'status', ...this.#where(event), ...about }, 0);
  }

  #error(event: EventRecord): void {
    const { type, agent_id, session_id, seq, ts, code, error, ...details } = event;
    if (code === 'turn_lost') this.#endTurn(null, 'unfinished', ts);
    if (code === 'review_undeliverable') this.#tools.undeliverable(stringOf(details.review_id) ?? '');
    if (code === 'reset') {
      this.#last_seq = seq;
      this.#resets++;
    }
    this.#notice(event, wordOf(code) ?? 'error', wordOf(error) ?? '', details);
  }

  // --- items and turns ------------------------------------------------------------------------------------------------

  #endTurn(stop_reason: string | null, tools: 'cancelled' | 'unfinished', ts: number): void {
    this.#speech.pause(ts);
    this.#tools.end(tools, ts);
    this.#turns.end(stop_reason, ts);
  }

  #where({ seq, ts, type, code }: EventRecord): Where {
    const is_connection = type === 'error' && connection_codes.includes(code);
    const own = is_connection ? `${seq}+${++this.#told}` : String(seq);
    const key = this.#resets === 0 ? own : `${this.#resets}:${own}`;
    return { key, seq, ts, turn: this.#turns.open?.n ?? null };
  }

  #add(item: Item, chars: number): void {
    this.#speech.pause(item.ts);
    this.#items.add(item, chars);
  }

  #notice(event: EventRecord, code: string, text: string, details: Fields): void {
    const raw = rawOf(details, bounds.word_chars);
    const item: Item = { kind: 'notice', ...this.#where(event), code, text, details: raw };
    this.#items.add(item, text.length + raw.chars);
  }

  #unknown(event: EventRecord, label: string, value: unknown): void {
    const raw = rawOf(value ?? null);
    this.#add({ kind: 'unknown', ...this.#where(event), label, raw, too_large: tooLarge(event) }, raw.chars);
  }
}

function noticeCode(severity: unknown): string {
  if (severity === 'error') return 'agent_error';
  return severity === 'info' ? 'agent_info' : 'agent_notice';
}

/** The size of a message that is too large for an event; null for one that is there. */
function tooLarge({ payload, size }: EventRecord): number | null {
  return isRecord(payload) ? null : numberOf(size);
}
