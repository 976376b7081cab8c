/**
 * Converts an agent's event log to a conversation. Takes events in order; the size of batches does not affect the result. A
 * `view` never changes, and parts that are the same as in an earlier view are the same objects.
 */
import type { EventRecord } from '../../core/event.ts';
import { type AgentStatus, isFinal } from '../../features/agents/rules.ts';
import {
  oversizedBytes,
  type ReceivedEntry,
  readAuthor,
  readReceived,
  readSent,
  readTurnEndMark,
  type SentEntry,
} from '../entries.ts';
import { asNumber, asRecord, asString, isRecord, truncateText } from '../json.ts';
import type { AgentMethod } from '../methods.ts';
import { shortOrNull, shortText } from './bounded.ts';
import { bounds } from './bounds.ts';
import type { Item, OutputItem, Session, Turn } from './items.ts';
import { outputText } from './output.ts';
import { bodyText, toBody } from './parts.ts';
import { applyResponse, applyUpdate, emptySettings, type Settings } from './settings.ts';
import { UpdateWriter } from './updates.ts';
import { Writer } from './writer.ts';

export interface View extends Settings {
  readonly items: readonly Item[];
  /** The number of older items that were dropped. */
  readonly left_out: number;
  /** The log has events before the first that was processed. */
  readonly began_before: boolean;
  readonly turns: readonly Turn[];
  readonly sessions: readonly Session[];
  /** A turn is open. */
  readonly working: boolean;
  /** The open turn was cancelled, and the agent has not ended it yet. */
  readonly stopping: boolean;
  readonly last_seq: number;
}

/** A request from the service to the agent that has not been answered yet. */
interface SentRequest {
  method: string;
  /** The mode that the request sets. */
  mode_id: string | null;
}

type Sent<K extends SentEntry['kind']> = Extract<ReturnType<typeof readSent>, { kind: K }>;
type Received<K extends ReceivedEntry['kind']> = Extract<ReturnType<typeof readReceived>, { kind: K }>;

/** A rejection of these methods produces no separate event. */
const silently_rejected: readonly string[] = [
  'authenticate',
  'auth/login',
  'session/set_mode',
  'session/set_config_option',
] satisfies AgentMethod[];

/** They open a session that may have a context already. */
const continuing_methods: readonly string[] = ['session/load', 'session/resume'] satisfies AgentMethod[];

/**
 * Whether the log has events before this one, the first that was read. An error may say that they are gone; the gap after a
 * restore usually has some before it.
 */
function hasBefore({ seq, code, from }: EventRecord): boolean {
  return seq > 1 && code !== 'events_truncated' && !(code === 'log_gap' && from === 1);
}

export class Transcript {
  readonly #writer = new Writer();
  readonly #updates = new UpdateWriter(this.#writer);
  #settings = emptySettings;
  #session_id: string | null = null;
  #began_before = false;
  readonly #requests = new Map<unknown, SentRequest>();
  /** The tokens in the agent's context when the session began, also those of a continued session; null if unknown. */
  #context: number | null = 0;
  /** The same when the turn began. */
  #tokens_before: number | null = null;
  #view: View | null = null;

  get view(): View {
    const { items, turns, sessions, last_seq } = this.#writer;
    const { open } = turns;
    this.#view ??= {
      ...this.#settings,
      items: items.snapshot,
      left_out: items.dropped,
      began_before: this.#began_before,
      turns: turns.all,
      sessions,
      working: open !== null,
      stopping: open !== null && open.cancelled_ts !== null,
      last_seq,
    };
    return this.#view;
  }

  /** Processes events in order. Skips events that were processed before. */
  append(events: readonly EventRecord[]): void {
    for (const event of events) {
      const is_first = this.#writer.last_seq === 0;
      if (!this.#writer.isNew(event)) continue;
      if (is_first) {
        this.#began_before = hasBefore(event);
        if (this.#began_before) this.#context = null;
      }
      this.#view = null;
      this.#take(event);
    }
  }

  #take(event: EventRecord): void {
    const { session_id } = event;
    if (typeof session_id === 'string' && session_id !== this.#session_id && !this.#isEarlier(session_id)) {
      this.#session_id = session_id;
      this.#requests.clear();
      this.#context = this.#settings.usage?.used ?? this.#context;
      // The agent reports its settings again when the session opens, but neither an earlier plan nor earlier usage.
      this.#settings = { ...this.#settings, plan: null, usage: null };
      this.#writer.begin(session_id, event);
    }
    switch (event.type) {
      case 'acp_event':
        if (event.direction === 'to_agent') this.#sent(event);
        else {
          this.#received(event);
          this.#markedEnd(event);
        }
        break;
      case 'output':
        this.#output(event);
        break;
      case 'status':
        this.#status(event);
        break;
      case 'error':
        this.#error(event);
        break;
      default:
        this.#writer.unknown(event, shortOrNull(asRecord(event).type) ?? 'event', event);
    }
  }

  /** An error about a session may be recorded after the next session has begun. */
  #isEarlier(session_id: string): boolean {
    return this.#writer.sessions.some((session) => session.session_id === session_id);
  }

  // --- to the agent ---------------------------------------------------------------------------------------------------

  #sent(event: EventRecord): void {
    const entry = readSent(event);
    const { id, method } = entry;
    if (method !== null && id !== undefined) {
      this.#keepRequest(id, { method, mode_id: entry.kind === 'set_mode' ? entry.mode_id : null });
      this.#opening(method);
    }
    if (entry.kind === 'prompt') this.#prompt(event, entry);
    else if (entry.kind === 'cancel') this.#cancel(event.ts);
    else if (entry.kind === 'answer' && entry.review_id !== null) {
      this.#writer.tools.responded(entry.review_id, entry.answered_by, entry.result, event.ts);
    }
  }

  #keepRequest(id: unknown, request: SentRequest): void {
    this.#requests.set(id, request);
    const [oldest] = this.#requests.keys();
    if (this.#requests.size > bounds.open_requests) this.#requests.delete(oldest);
  }

  /** Keeps what is known about the tokens in the context of the session that the request opens. */
  #opening(method: string): void {
    if (method === 'session/new') this.#context = 0;
    // A session of which the log shows nothing.
    else if (continuing_methods.includes(method) && this.#writer.turns.all.length === 0) this.#context = null;
  }

  #prompt(event: EventRecord, { id, blocks }: Sent<'prompt'>): void {
    const writer = this.#writer;
    const body = toBody(blocks);
    writer.endTurn(null, 'unfinished', event.ts);
    const prompt_id = shortOrNull(id) ?? '';
    writer.turns.begin(prompt_id, event.seq, event.ts);
    this.#tokens_before = this.#settings.usage?.used ?? this.#context;
    this.#updates.prompted(bodyText(body));
    const about = { body, prompt_id, too_large: oversizedBytes(event) };
    writer.add({ kind: 'user_message', ...writer.where(event), ...about }, body.chars);
  }

  #cancel(ts: number): void {
    const { messages, tools, turns } = this.#writer;
    messages.pause(ts);
    tools.end('cancelled', ts);
    turns.cancel(ts);
  }

  // --- from the agent -------------------------------------------------------------------------------------------------

  #received(event: EventRecord): void {
    const entry = readReceived(event);
    switch (entry.kind) {
      case 'response':
        this.#response(event, entry);
        return;
      case 'update':
        if (!isRecord(event.payload)) break;
        this.#update(event, entry);
        return;
      case 'permission_request':
        if (entry.review_id === null) break;
        this.#permissionRequest(event, entry, entry.review_id);
        return;
      case 'elicitation': {
        const { elicitation_id } = entry;
        if (elicitation_id === null) break;
        this.#writer.add({ kind: 'elicitation', ...this.#writer.where(event), elicitation_id }, 0);
        return;
      }
      case 'elicitation_complete':
        return;
      case 'withdrawal':
        this.#writer.tools.withdrawn(entry.request_id, event.ts);
        return;
      case 'other':
    }
    this.#writer.unknown(event, entry.method ?? '', entry.params);
  }

  #update(event: EventRecord, { update, raw }: Received<'update'>): void {
    const settings = applyUpdate(this.#settings, update);
    if (settings === null) {
      this.#updates.write(event, update, raw);
      return;
    }
    // A sub-agent has its own mode and plan. Nothing from an unannounced session is trusted.
    if (readAuthor(event) === null) this.#settings = settings;
    else if (event.unknown_session === true) {
      this.#writer.unknown(event, shortOrNull(raw.sessionUpdate) ?? '', raw);
    }
  }

  #permissionRequest(event: EventRecord, entry: Received<'permission_request'>, review_id: string): void {
    const { tools, subagents } = this.#writer;
    const where = this.#writer.whereBelowSubagent(event);
    this.#writer.pause(where);
    const scope = readAuthor(event)?.scope ?? '';
    if (entry.reported_call) {
      const update = { kind: 'tool_call', operation: 'changes', call: entry.reported_call } as const;
      tools.update(update, scope, { ...where, key: `${where.key} call` });
    }
    const requester = subagents.requester(where.subagent, event.unknown_session === true);
    const about = { review_id, request_id: entry.id, too_large: oversizedBytes(event), requester };
    tools.requested({ ...entry, ...about }, scope, where);
  }

  #response(event: EventRecord, { id, result, stop_reason, failure }: Received<'response'>): void {
    const request = this.#requests.get(id);
    this.#requests.delete(id);
    // This response does not end the turn itself: a later event does, or `#markedEnd` does because this event has a mark.
    if (event.accepted || readTurnEndMark(event)) return;
    if (request?.method === 'session/prompt' || stop_reason !== null) {
      // A notice describes the error.
      if (failure !== null) this.#writer.endTurn(null, 'unfinished', event.ts);
      else this.#writer.stop(this.#writer.where(event), shortOrNull(stop_reason), this.#tokens(result));
      return;
    }
    if (!request) return;
    const { method, mode_id } = request;
    if (isRecord(result)) this.#settings = applyResponse(this.#settings, method, mode_id, result);
    if (failure !== null && silently_rejected.includes(method)) {
      this.#writer.notice(event, 'refused', shortText(failure), { method });
    }
  }

  /** In ACP version 2, a frame other than the response to the prompt ends the turn. */
  #markedEnd(event: EventRecord): void {
    const end = readTurnEndMark(event);
    if (end === null) return;
    const reason = shortOrNull(end.stop_reason);
    // A notice describes the error.
    const failed = reason === 'error' || isRecord(asRecord(event.payload).error);
    const where = this.#writer.where(event);
    // The frame may already have added an item with this key.
    if (failed) this.#writer.endTurn(reason, 'unfinished', event.ts);
    else this.#writer.stop({ ...where, key: `${where.key} end` }, reason, this.#tokens(null));
  }

  /** The tokens of the turn that ends. `result`: the agent's response to the prompt, if it ends the turn. */
  #tokens(result: unknown): number | null {
    const total = asNumber(asRecord(asRecord(result).usage).totalTokens);
    if (total !== null) return total;
    if (this.#tokens_before === null) return null;
    const grown = (this.#settings.usage?.used ?? 0) - this.#tokens_before;
    return grown > 0 ? grown : null;
  }

  // --- from the service -------------------------------------------------------------------------------------------------

  #output(event: EventRecord): void {
    if (event.stream !== 'stdout') return;
    const { items } = this.#writer;
    const { text } = outputText(event);
    const lines = text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
    const last = items.get(items.end - 1);
    const before = last?.kind === 'output' ? last : undefined;
    const shown = truncateText(text, Math.max(0, bounds.output_chars - (before?.text.length ?? 0)));
    const about = {
      text: (before?.text ?? '') + shown,
      lines: (before?.lines ?? 0) + lines,
      omitted_chars: (before?.omitted_chars ?? 0) + text.length - shown.length,
    };
    // Output between the chunks of a message does not end the message.
    if (!before) items.add({ kind: 'output', ...this.#writer.where(event), ...about }, about.text.length);
    else items.replace(items.end - 1, { ...before, ...about } as OutputItem, about.text.length);
  }

  #status(event: EventRecord): void {
    const { session_id, ts } = event;
    const status = event.status as AgentStatus;
    if (isFinal(status)) this.#writer.endProcess(status === 'cancelled' ? 'cancelled' : 'unfinished', ts);
    const [exit_code, exit_signal] = [asNumber(event.exit_code), shortOrNull(event.exit_signal)];
    const about = { status, session_id, exit_code, exit_signal, reason: shortOrNull(event.reason) };
    this.#writer.add({ kind: 'status', ...this.#writer.where(event), ...about }, 0);
  }

  #error(event: EventRecord): void {
    const { type, agent_id, session_id, seq, ts, code, error, ...details } = event;
    const is_end = code === 'turn_lost' || code === 'prompt_failed';
    if (is_end && session_id === this.#session_id) this.#writer.endTurn(null, 'unfinished', ts);
    if (code === 'review_undeliverable') this.#writer.tools.undeliverable(asString(details.review_id) ?? '');
    if (code === 'reset') this.#writer.reset(seq);
    this.#writer.notice(event, shortOrNull(code) ?? 'error', shortOrNull(error) ?? '', details);
  }
}
