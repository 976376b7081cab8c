/** A conversation as people read it (pure): turns the events of an ACP agent into text, in order. */
import { blocksText, blockText } from '../../../acp/blocks.ts';
import {
  type ReceivedEntry,
  readReceived,
  readSent,
  readTurnEndMark,
  type SentEntry,
} from '../../../acp/entries.ts';
import { type Fields, isRecord, toText } from '../../../acp/json.ts';
import type { AgentMethod } from '../../../acp/methods.ts';
import type { MessageKind, Update } from '../../../acp/updates.ts';
import { printable } from '../../../cli/terminal.ts';
import { TranscriptLayout } from '../../../cli/transcript-layout.ts';
import type { EventRecord } from '../../../core/event.ts';
import { InputRequests } from '../../elicitations/commands/input-requests.ts';
import { limits } from '../limits.ts';
import { blockLabel, blockLines, joined, type Line, planLines } from './acp-lines.ts';
import { type By, SubagentLines } from './subagent-lines.ts';
import { keep, named, ToolCalls } from './tool-calls.ts';

export interface TranscriptOptions {
  colors: boolean;
  /** Also show protocol messages that are not part of the conversation: initialization, sessions, rejections. */
  plumbing: boolean;
  /** Also show what sub-agents say and do, not only their requests and state. */
  subagents: boolean;
}

type Received<K extends ReceivedEntry['kind']> = Extract<ReturnType<typeof readReceived>, { kind: K }>;
type Sent<K extends SentEntry['kind']> = Extract<ReturnType<typeof readSent>, { kind: K }>;

/** A rejection of these methods produces no separate event. */
const silently_rejected: readonly string[] = [
  'authenticate',
  'auth/login',
  'session/set_mode',
  'session/set_config_option',
] satisfies AgentMethod[];

export class Transcript {
  readonly #plumbing: boolean;
  readonly #whole: boolean;
  readonly #page: TranscriptLayout;
  readonly #subagents: SubagentLines;
  readonly #calls: ToolCalls;
  readonly #inputs: InputRequests;
  #session_id: string | null = null;
  /** Methods of the service's requests, by request id. */
  readonly #sent_methods = new Map<unknown, string>();
  /** Text received so far of messages that have an id. */
  readonly #texts = new Map<string, string>();

  constructor({ colors, plumbing, subagents }: TranscriptOptions) {
    this.#plumbing = plumbing;
    this.#whole = subagents;
    this.#page = new TranscriptLayout(colors);
    this.#subagents = new SubagentLines(this.#page);
    this.#calls = new ToolCalls(this.#page);
    this.#inputs = new InputRequests(this.#page);
  }

  /** What an `acp_event` adds to the text. */
  event(event: EventRecord): string {
    const { session_id, payload, direction, replay } = event;
    if (session_id !== this.#session_id) {
      this.#session_id = session_id;
      this.#page.begin();
      this.#calls.begin();
      this.#inputs.begin();
      this.#subagents.begin();
      this.#sent_methods.clear();
      this.#texts.clear();
    }
    const by = direction === 'to_agent' ? null : this.#subagents.take(event);
    if (replay) return '';
    const changes = this.#subagents.changes();
    if (direction === 'to_agent') {
      return isRecord(payload) ? this.#sent(event) : changes + this.#tooLarge(event, by);
    }
    const received = isRecord(payload) ? this.#received(event, by) : this.#tooLarge(event, by);
    return changes + received + this.#ended(event);
  }

  /** Ends an open line, so that something else can follow. */
  close(): string {
    return this.#page.close();
  }

  // --- to the agent ---------------------------------------------------------------------------------------------------

  #sent(event: EventRecord): string {
    const entry = readSent(event);
    const { id, method } = entry;
    if (method !== null && id !== undefined) keep(this.#sent_methods, id, method);
    switch (entry.kind) {
      case 'prompt':
        return this.#page.quote(blockLines(entry.blocks));
      case 'cancel':
        return this.#page.line('turn', 'is cancelled', 'dim');
      case 'set_mode':
        return this.#page.line('sets', joined('mode', entry.mode_id), 'dim');
      case 'set_option':
        return this.#page.line('sets', joined(entry.option_id, toText(entry.value)), 'dim');
      case 'sign_in':
        return this.#page.line('sign-in', joined(entry.method_id), 'dim');
      case 'answer':
        return this.#answered(event, entry);
      case 'other':
        return this.#hidden(`-> ${method}`, entry.params);
    }
  }

  #answered({ response_to, payload }: EventRecord, answer: Sent<'answer'>): string {
    const { review_id, elicitation_id, answered_by } = answer;
    if (review_id !== null) return this.#calls.answer(review_id, answered_by, answer.result);
    if (elicitation_id !== null) return this.#inputs.answer(elicitation_id, answered_by, answer.result);
    const { result, error } = payload as Fields;
    return this.#hidden(`-> answer to ${toText(response_to)}`, error ?? result);
  }

  // --- from the agent -------------------------------------------------------------------------------------------------

  #received(event: EventRecord, by: By | null): string {
    const entry = readReceived(event);
    switch (entry.kind) {
      case 'update':
        return this.#update(entry.update, entry.raw, by);
      case 'permission_request':
        return this.#formatRequest(entry, by);
      case 'elicitation':
        return this.#inputs.formatRequest(entry.id, entry.elicitation_id, entry.params);
      case 'elicitation_complete':
        return this.#hidden(`<- ${entry.method}`, entry.params);
      case 'withdrawal':
        return this.#calls.withdrawn(entry.request_id) || this.#inputs.withdrawn(entry.request_id);
      case 'response':
        return this.#response(entry, event);
      case 'other':
        return this.#page.line('agent', named(by, printable(entry.method ?? '')), 'dim');
    }
  }

  #formatRequest(request: Received<'permission_request'>, by: By | null): string {
    const { reported_call, id } = request;
    const is_shown = by === null || by.unknown_session || this.#whole;
    const call =
      reported_call === null || !is_shown
        ? ''
        : this.#calls.update({ kind: 'tool_call', operation: 'changes', call: reported_call }, by);
    return call + this.#calls.formatRequest(id, request, by);
  }

  #response({ id, result, stop_reason, failure }: Received<'response'>, { payload }: EventRecord): string {
    const method = this.#sent_methods.get(id) ?? '';
    this.#sent_methods.delete(id);
    if (stop_reason !== null) return this.#stop(stop_reason);
    if (failure !== null && silently_rejected.includes(method)) {
      return this.#page.line('refused', joined(failure), 'red');
    }
    const { error } = payload as Fields;
    return this.#hidden(`<- answer to ${method || toText(id)}`, error ?? result);
  }

  /** In ACP version 2 the turn is not ended by the response to the prompt but by another frame. */
  #ended(event: EventRecord): string {
    const end = readTurnEndMark(event);
    return end ? this.#stop(end.stop_reason) : '';
  }

  #stop(reason: string | null): string {
    const how = reason === null ? 'ended' : `ended: ${reason}`;
    return this.#page.line('turn', joined(how), reason === 'end_turn' ? 'dim' : 'yellow');
  }

  #update(update: Update, raw: Fields, by: By | null): string {
    // An unannounced session is unexpected, so it is always shown.
    if (by !== null && !by.unknown_session && !this.#whole) return '';
    switch (update.kind) {
      case 'chunk':
        return this.#flow(update.message_kind, update.message_id, update.block, by);
      case 'message':
        return this.#entire(update, by);
      // Prompts are shown when sent, the end of a turn comes from the event, and command output is not shown.
      case 'user_message':
      case 'work':
      case 'terminal':
      case 'compaction_summary':
      // Its line was already shown.
      case 'subagent':
        return '';
      case 'tool_call':
        return this.#calls.update(update, by);
      case 'plan':
        return this.#formatBlock('plan', planLines(update.entries), by);
      case 'session_message':
        return this.#message(update);
      default:
        return this.#report(update, raw, by);
    }
  }

  #flow(message_kind: MessageKind, message_id: string | null, block: unknown, by: By | null): string {
    const text = blockText(block);
    if (text === null) return this.#page.line('agent', named(by, blockLabel(block)));
    if (message_id !== null) {
      const key = `${message_kind} ${message_id}`;
      keep(this.#texts, key, (this.#texts.get(key) ?? '') + text);
    }
    return this.#page.flow(message_kind, message_id, text, by?.label);
  }

  /** A whole message replaces its chunks. What is already printed stays, so only new text is added. */
  #entire({ message_kind, message_id, blocks }: Extract<Update, { kind: 'message' }>, by: By | null): string {
    const key = `${message_kind} ${message_id}`;
    const before = this.#texts.get(key) ?? '';
    const text = blocks ? blocksText(blocks) : before;
    if (text.startsWith(before) && before !== '') {
      const rest = { type: 'text', text: text.slice(before.length) };
      return text === before ? '' : this.#flow(message_kind, message_id, rest, by);
    }
    this.#texts.delete(key);
    const end = this.#page.close();
    return end + (blocks ?? []).map((block) => this.#flow(message_kind, message_id, block, by)).join('');
  }

  /** Messages between the agent and its sub-agents. */
  #message({ from, to, blocks }: Extract<Update, { kind: 'session_message' }>): string {
    const [first, ...rest] = blockLines(blocks).filter((line) => line.trim() !== '');
    if (first === undefined) return '';
    const cut = rest.length > 0 || first.length > limits.transcript_input_chars ? '…' : '';
    const text = `${first.slice(0, limits.transcript_input_chars)}${cut}`;
    // It appears in the sender's session and again in the recipient's.
    return this.#page.changes('message', [
      { text: joined(this.#subagents.formatDirection(from, to), text), style: 'dim' },
    ]);
  }

  #formatBlock(label: string, lines: readonly Line[], by: By | null): string {
    const named_lines = by === null ? lines : lines.map((line) => ({ ...line, text: named(by, line.text) }));
    return this.#page.changes(label, named_lines, by?.id);
  }

  /** What the agent reports about itself. */
  #report(update: Update, raw: Fields, by: By | null): string {
    const formatLine = (label: string, ...parts: (string | null)[]) =>
      this.#formatBlock(label, [{ text: joined(...parts), style: 'dim' }], by);
    switch (update.kind) {
      case 'usage':
        return formatLine('usage', ...usageParts(update));
      case 'mode':
        return formatLine('mode', update.mode_id);
      case 'settings':
        return formatLine('options', ...(update.settings.config_options ?? []).map(optionText));
      case 'commands':
        return formatLine('commands', String(update.commands.length));
      case 'notice': {
        const style = update.severity === 'error' ? 'red' : 'yellow';
        return this.#page.line('notice', joined(update.title, update.description), style);
      }
      case 'compaction':
        return formatLine('context', 'is summarized', update.status, update.error);
      case 'title':
        return update.title === undefined ? '' : formatLine('title', update.title);
      default: {
        const text = joined('session/update', toText(raw.sessionUpdate));
        return this.#page.line('agent', named(by, text), 'dim');
      }
    }
  }

  // --- the rest -------------------------------------------------------------------------------------------------------

  #tooLarge({ method, response_to, size, review_id, elicitation_id }: EventRecord, by: By | null): string {
    const what = joined(toText(method ?? response_to), `too large to be shown: ${toText(size)} bytes`);
    const line = this.#page.line('agent', named(by, what), 'dim');
    const requestLine = (command: string) => line + this.#page.line('asks', command, ['bold', 'yellow']);
    if (typeof review_id === 'string') return requestLine(`svc reviews show ${review_id}`);
    if (typeof elicitation_id === 'string') return requestLine(`svc elicitations show ${elicitation_id}`);
    return line;
  }

  #hidden(what: string, content: unknown): string {
    return this.#plumbing ? this.#page.line('svc', joined(what, toText(content)), 'dim') : '';
  }
}

function usageParts({ used, size, cost }: Extract<Update, { kind: 'usage' }>): string[] {
  const tokens = `${used ?? ''} of ${size ?? ''} tokens`;
  return cost === null ? [tokens] : [tokens, `${cost.amount} ${cost.currency}`];
}

function optionText({ id, currentValue }: Fields): string {
  return `${toText(id)} = ${toText(currentValue)}`;
}
