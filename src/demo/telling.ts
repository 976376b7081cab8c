/**
 * How a turn speaks: streamed words, plans, tools, questions. Whatever it tells is also kept in the session's file, each
 * message as one piece, so that a client that loads the session is told the same again.
 */
import {
  type AgentContext,
  methods,
  type RequestPermissionRequest,
  type SessionUpdate,
  type ToolCall,
  type ToolCallContent,
  type ToolCallStatus,
} from '@agentclientprotocol/sdk';
import type { Chance } from './chance.ts';
import { permissionIds, permissionOptions } from './offers.ts';
import type { Pace } from './pace.ts';
import type { Session } from './session.ts';

/** What becomes of a tool call. */
export interface ToolEnd {
  status: ToolCallStatus;
  content?: ToolCallContent[];
}

type Voice = 'agent_message_chunk' | 'agent_thought_chunk';

export interface TellingOptions {
  client: AgentContext;
  session: Session;
  pace: Pace;
  chance: Chance;
  /** Aborted when the turn is cancelled; then every method throws. */
  signal: AbortSignal;
}

export class Telling {
  readonly session: Session;
  readonly chance: Chance;
  readonly signal: AbortSignal;
  readonly #client: AgentContext;
  readonly #pace: Pace;
  #messages = 0;

  constructor({ client, session, pace, chance, signal }: TellingOptions) {
    this.session = session;
    this.chance = chance;
    this.signal = signal;
    this.#client = client;
    this.#pace = pace;
  }

  pause(ms: number): Promise<void> {
    return this.#pace.pause(ms, this.signal);
  }

  /** A message, word by word. */
  say(text: string): Promise<void> {
    return this.#speak('agent_message_chunk', text);
  }

  think(text: string): Promise<void> {
    return this.#speak('agent_thought_chunk', text);
  }

  async tell(update: SessionUpdate): Promise<void> {
    await this.tellOnly(update);
    await this.session.keep({ update });
  }

  /** Tells what is not worth keeping. */
  tellOnly(update: SessionUpdate): Promise<void> {
    return this.#client.notify(methods.client.session.update, { sessionId: this.session.id, update });
  }

  /** An id that no other message of the session has. */
  messageId(): string {
    return `${this.session.state.turns}.${++this.#messages}`;
  }

  /** Tells of a call and of its end; `work` does it, and answers how it went. Where that throws, the call has failed. */
  async tool(call: ToolCall, work: () => Promise<ToolEnd>): Promise<void> {
    let end: ToolEnd = { status: 'failed' };
    try {
      await this.tellOnly({ sessionUpdate: 'tool_call', ...call, status: 'pending' });
      end = await work();
    } finally {
      await this.session.keep({ update: { sessionUpdate: 'tool_call', ...call, ...end } });
      await this.tellOnly({ sessionUpdate: 'tool_call_update', toolCallId: call.toolCallId, ...end });
    }
  }

  async toolRuns({ toolCallId }: ToolCall): Promise<void> {
    await this.tellOnly({ sessionUpdate: 'tool_call_update', toolCallId, status: 'in_progress' });
  }

  /**
   * Whether a call may be made: by the mode, by an earlier “always”, or by the answer to a question. The answer `cancelled`
   * cancels the turn; one that makes no sense is a no.
   */
  async mayI(call: ToolCall): Promise<boolean> {
    const { state } = this.session;
    if (state.mode === 'auto' || state.always) return true;
    const chosen = await this.#ask(call);
    if (chosen === null) this.session.cancel();
    this.signal.throwIfAborted();
    if (chosen === permissionIds.always) await this.session.change({ always: true });
    return chosen === permissionIds.always || chosen === permissionIds.once;
  }

  /** The id of the option that was chosen, null for `cancelled`. */
  async #ask(call: ToolCall): Promise<string | null> {
    const params: RequestPermissionRequest = {
      sessionId: this.session.id,
      toolCall: { ...call, status: 'pending' },
      options: permissionOptions,
    };
    const waiting = { cancellationSignal: this.signal, stopWaitingOnCancel: true };
    try {
      const { outcome } = await this.#client.request(
        methods.client.session.requestPermission,
        params,
        waiting,
      );
      return outcome.outcome === 'selected' ? outcome.optionId : null;
    } catch {
      return permissionIds.reject;
    }
  }

  async #speak(sessionUpdate: Voice, words: string): Promise<void> {
    const messageId = this.messageId();
    const piece = (part: string): SessionUpdate => ({
      sessionUpdate,
      messageId,
      content: { type: 'text', text: part },
    });
    let told = '';
    try {
      for (const [word] of words.matchAll(/\S+\s*/g)) {
        await this.pause(this.chance.between(40, 80));
        await this.tellOnly(piece(word));
        told += word;
      }
    } finally {
      if (told !== '') await this.session.keep({ update: piece(told) });
    }
  }
}

export function text(words: string): ToolCallContent {
  return { type: 'content', content: { type: 'text', text: words } };
}
