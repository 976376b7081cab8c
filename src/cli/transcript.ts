/** A conversation as people read it (pure): events of an agent that speaks ACP become text, in their order. */
import { isRecord, recordsOf } from '../acp/message.ts';
import {
  type AgentMethod,
  blockText,
  type ClientMethod,
  type Fields,
  fieldsOf,
  stringOf,
  wordOf,
} from '../acp/reading.ts';
import type { EventRecord } from '../domain/event.ts';
import { blockLabel, blockLines, joined, planLines } from './acp-lines.ts';
import { Page, type Voice } from './page.ts';
import { visible } from './terminal.ts';
import { keep, ToolCalls } from './tool-calls.ts';

export interface TranscriptOptions {
  colours: boolean;
  /** What the service says for its own sake too: introductions, sessions, refusals. */
  plumbing: boolean;
}

/** Their refusals are told by no event of their own. */
const settings: readonly string[] = [
  'authenticate',
  'session/set_mode',
  'session/set_config_option',
] satisfies AgentMethod[];

export class Transcript {
  readonly #plumbing: boolean;
  readonly #page: Page;
  readonly #calls: ToolCalls;
  #session_id: string | null = null;
  /** Methods of our requests, by their id. */
  readonly #asked = new Map<unknown, string>();

  constructor({ colours, plumbing }: TranscriptOptions) {
    this.#plumbing = plumbing;
    this.#page = new Page(colours);
    this.#calls = new ToolCalls(this.#page);
  }

  /** What an `acp_event` adds to the text. */
  event(event: EventRecord): string {
    const { session_id, payload, direction, replay } = event;
    if (session_id !== this.#session_id) {
      this.#session_id = session_id;
      this.#page.begin();
      this.#calls.begin();
      this.#asked.clear();
    }
    if (replay) return '';
    if (!isRecord(payload)) return this.#tooLarge(event);
    return direction === 'to_agent' ? this.#said(event, payload) : this.#heard(event, payload);
  }

  /** Ends a line that is open, so that something else can follow. */
  close(): string {
    return this.#page.close();
  }

  // --- to the agent ---------------------------------------------------------------------------------------------------

  #said(event: EventRecord, payload: Fields): string {
    const { id, method, params } = payload;
    if (typeof method !== 'string') return this.#answered(event, payload);
    if (id !== undefined) keep(this.#asked, id, method);
    const { prompt, modeId, configId, value, methodId } = fieldsOf(params);
    switch (method as AgentMethod) {
      case 'session/prompt':
        return this.#page.quote(blockLines(prompt));
      case 'session/cancel':
        return this.#page.line('turn', 'is cancelled', 'dim');
      case 'session/set_mode':
        return this.#page.line('sets', joined('mode', wordOf(modeId)), 'dim');
      case 'session/set_config_option':
        return this.#page.line('sets', joined(wordOf(configId), wordOf(value)), 'dim');
      case 'authenticate':
        return this.#page.line('sign-in', joined(wordOf(methodId)), 'dim');
      default:
        return this.#hidden(`-> ${method}`, params);
    }
  }

  #answered({ review_id, answered_by, response_to }: EventRecord, { result, error }: Fields): string {
    if (typeof review_id === 'string') {
      return this.#calls.answer(review_id, stringOf(answered_by), fieldsOf(result));
    }
    return this.#hidden(`-> answer to ${wordOf(response_to)}`, error ?? result);
  }

  // --- from the agent -------------------------------------------------------------------------------------------------

  #heard({ review_id }: EventRecord, payload: Fields): string {
    const { id, method, params } = payload;
    if (typeof method !== 'string') return this.#response(payload);
    switch (method as ClientMethod) {
      case 'session/update':
        return this.#update(fieldsOf(fieldsOf(params).update));
      case 'session/request_permission':
        return this.#calls.asks(stringOf(review_id), id, fieldsOf(params));
      case '$/cancel_request':
        return this.#calls.withdrawn(fieldsOf(params).requestId);
      default:
        return this.#page.line('agent', visible(method), 'dim');
    }
  }

  #response({ id, result, error }: Fields): string {
    const method = this.#asked.get(id) ?? '';
    this.#asked.delete(id);
    const reason = stringOf(fieldsOf(result).stopReason);
    if (reason !== null) {
      return this.#page.line('turn', joined(`ended: ${reason}`), reason === 'end_turn' ? 'dim' : 'yellow');
    }
    if (isRecord(error) && settings.includes(method)) {
      return this.#page.line('refused', joined(stringOf(error.message)), 'red');
    }
    return this.#hidden(`<- answer to ${method || wordOf(id)}`, error ?? result);
  }

  #update(update: Fields): string {
    const { sessionUpdate, content, messageId } = update;
    switch (sessionUpdate) {
      case 'agent_message_chunk':
        return this.#flow('message', messageId, content);
      case 'agent_thought_chunk':
        return this.#flow('thought', messageId, content);
      // Prompts are shown as they were sent.
      case 'user_message_chunk':
        return '';
      case 'tool_call':
      case 'tool_call_update':
        return this.#calls.update(update);
      case 'plan':
        return this.#page.changes('plan', planLines(update.entries));
      default:
        return this.#state(update);
    }
  }

  #flow(voice: Voice, message_id: unknown, block: unknown): string {
    const text = blockText(block);
    if (text === null) return this.#page.line('agent', blockLabel(block));
    return this.#page.flow(voice, stringOf(message_id), text);
  }

  /** What an agent says of itself. */
  #state(update: Fields): string {
    const tell = (label: string, ...parts: string[]) =>
      this.#page.changes(label, [{ text: joined(...parts), look: 'dim' }]);
    switch (update.sessionUpdate) {
      case 'usage_update':
        return tell('usage', ...usageParts(update));
      case 'current_mode_update':
        return tell('mode', wordOf(update.currentModeId));
      case 'config_option_update':
        return tell('options', ...recordsOf(update.configOptions).map(optionWord));
      case 'available_commands_update':
        return tell('commands', String(recordsOf(update.availableCommands).length));
      case 'session_info_update':
        return update.title === undefined ? '' : tell('title', wordOf(update.title ?? ''));
      default:
        return this.#page.line('agent', joined('session/update', wordOf(update.sessionUpdate)), 'dim');
    }
  }

  // --- the rest -------------------------------------------------------------------------------------------------------

  #tooLarge({ method, response_to, size, review_id }: EventRecord): string {
    const what = joined(wordOf(method ?? response_to), `too large to be shown: ${wordOf(size)} bytes`);
    const line = this.#page.line('agent', what, 'dim');
    if (typeof review_id !== 'string') return line;
    return line + this.#page.line('asks', `svc reviews show ${review_id}`, ['bold', 'yellow']);
  }

  #hidden(what: string, content: unknown): string {
    return this.#plumbing ? this.#page.line('svc', joined(what, wordOf(content)), 'dim') : '';
  }
}

function usageParts({ used, size, cost }: Fields): string[] {
  const { amount, currency } = fieldsOf(cost);
  const tokens = `${wordOf(used)} of ${wordOf(size)} tokens`;
  return typeof amount === 'number' ? [tokens, `${amount} ${stringOf(currency) ?? ''}`] : [tokens];
}

function optionWord({ id, currentValue }: Fields): string {
  return `${wordOf(id)} = ${wordOf(currentValue)}`;
}
