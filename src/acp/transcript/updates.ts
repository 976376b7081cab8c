/** Writes the updates of an agent's session into a transcript, except those about its settings. */
import type { EventRecord } from '../../core/event.ts';
import { readAuthor } from '../entries.ts';
import type { Fields } from '../json.ts';
import type { Update } from '../updates.ts';
import { shortOrNull, shortText } from './bounded.ts';
import { appendBlock, type Body, bodyText, toBody } from './parts.ts';
import type { Writer } from './writer.ts';

type Of<K extends Update['kind']> = Extract<Update, { kind: K }>;

export class UpdateWriter {
  readonly #writer: Writer;
  /** The text of the last prompt. */
  #prompt_text = '';

  constructor(writer: Writer) {
    this.#writer = writer;
  }

  /** Remembers the prompt, so that the agent's echo of it is not shown. */
  prompted(text: string): void {
    this.#prompt_text = text;
  }

  /** `raw`: the update in the form of ACP v1. */
  write(event: EventRecord, update: Update, raw: Fields): void {
    const writer = this.#writer;
    if (update.kind === 'subagent') {
      if (event.unknown_session !== true) this.#announced(event, update);
      return;
    }
    // The transcript already contains the earlier conversation.
    if (event.replay) return;
    this.#markAuthor(event, raw);
    switch (update.kind) {
      case 'chunk':
      case 'message':
        this.#speak(event, update);
        break;
      // A sub-agent's prompt is part of its own messages.
      case 'user_message':
        if (readAuthor(event) === null) this.#echo(event, update.blocks);
        break;
      case 'session_message':
        this.#relay(event, update);
        break;
      case 'tool_call':
        this.#toolCall(event, update);
        break;
      case 'terminal':
        writer.tools.terminal(update, readAuthor(event)?.scope ?? '');
        break;
      // The event itself records whether it ends a turn.
      case 'work':
        break;
      case 'notice': {
        const { description } = update;
        const details = description === null ? {} : { description };
        writer.notice(event, noticeCode(update.severity), shortText(update.title ?? ''), details);
        break;
      }
      default:
        writer.unknown(event, shortOrNull(raw.sessionUpdate) ?? 'session/update', raw);
    }
  }

  /** Records sub-agents that work in the agent's session. */
  #markAuthor(event: EventRecord, raw: Fields): void {
    const author = readAuthor(event);
    if (author && author.scope !== '') return;
    const { subagents } = this.#writer;
    if (author) subagents.marked(author.id, raw);
    subagents.launched(raw, this.#writer.where(event));
  }

  #speak(event: EventRecord, update: Of<'chunk'> | Of<'message'>): void {
    const { message_kind } = update;
    const where = this.#writer.whereBelowSubagent(event);
    const message_id = shortOrNull(update.message_id);
    const messages = this.#writer.messages.of(where.subagent, where.ts);
    if (update.kind === 'chunk') messages.chunk(message_kind, message_id, update.block, where);
    else messages.replace(message_kind, message_id, update.blocks, where);
  }

  #announced(event: EventRecord, { announcement }: Of<'subagent'>): void {
    const { subagents, messages } = this.#writer;
    const where = this.#writer.where(event);
    const idle = subagents.announced(announcement, event.replay === true ? null : where, where.subagent);
    if (idle !== null) messages.of(idle, event.ts).pause(event.ts);
  }

  #relay(event: EventRecord, update: Of<'session_message'>): void {
    const { relayed, subagents } = this.#writer;
    const where = this.#writer.whereBelowSubagent(event);
    this.#writer.pause(where);
    const parties = { from: subagents.nameOf(update.from), to: subagents.nameOf(update.to) };
    relayed.add(update, parties, where);
  }

  #toolCall(event: EventRecord, update: Of<'tool_call'>): void {
    const { tools, subagents } = this.#writer;
    const where = this.#writer.whereBelowSubagent(event);
    const scope = readAuthor(event)?.scope ?? '';
    if (tools.isNew(update, scope)) {
      this.#writer.pause(where);
      subagents.countCall(where.subagent);
    }
    tools.update(update, scope, where);
  }

  /** Shows user messages that no prompt contains. */
  #echo(event: EventRecord, blocks: readonly unknown[]): void {
    const { items } = this.#writer;
    const echo = toBody(blocks);
    if (this.#prompt_text.includes(bodyText(echo))) return;
    const at = items.end - 1;
    const last = items.get(at);
    if (last?.kind === 'user_message' && last.prompt_id === null) {
      const body = blocks.reduce<Body>(appendBlock, last.body);
      items.replace(at, { ...last, body }, body.chars);
      return;
    }
    const about = { body: echo, prompt_id: null, too_large: null };
    this.#writer.add({ kind: 'user_message', ...this.#writer.where(event), ...about }, echo.chars);
  }
}

function noticeCode(severity: string | null): string {
  if (severity === 'error') return 'agent_error';
  return severity === 'info' ? 'agent_info' : 'agent_notice';
}
