/**
 * The output of a turn: streamed text, plans, tool calls, questions. Everything is also stored in the session's file,
 * each message in one piece, so that a client that loads the session gets the same output.
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
import { permissionIds, permissionOptions } from './offers.ts';
import type { Pace } from './pace.ts';
import type { Rng } from './rng.ts';
import type { Session } from './session.ts';

/** The result of a tool call. */
export interface ToolEnd {
  status: ToolCallStatus;
  content?: ToolCallContent[];
}

type Voice = 'agent_message_chunk' | 'agent_thought_chunk';

export interface TurnOutputOptions {
  client: AgentContext;
  session: Session;
  pace: Pace;
  rng: Rng;
  /** Aborted when the turn is cancelled; then every method throws. */
  signal: AbortSignal;
}

export class TurnOutput {
  readonly session: Session;
  readonly rng: Rng;
  readonly signal: AbortSignal;
  readonly #client: AgentContext;
  readonly #pace: Pace;
  #messages = 0;

  constructor({ client, session, pace, rng, signal }: TurnOutputOptions) {
    this.session = session;
    this.rng = rng;
    this.signal = signal;
    this.#client = client;
    this.#pace = pace;
  }

  pause(ms: number): Promise<void> {
    return this.#pace.pause(ms, this.signal);
  }

  /** Streams a message word by word. */
  say(text: string): Promise<void> {
    return this.#stream('agent_message_chunk', text);
  }

  think(text: string): Promise<void> {
    return this.#stream('agent_thought_chunk', text);
  }

  async send(update: SessionUpdate): Promise<void> {
    await this.sendOnly(update);
    await this.session.keep({ update });
  }

  /** Sends an update that is not stored. */
  sendOnly(update: SessionUpdate): Promise<void> {
    return this.#client.notify(methods.client.session.update, { sessionId: this.session.id, update });
  }

  /** An id that is unique within the session. */
  messageId(): string {
    return `${this.session.state.turns}.${++this.#messages}`;
  }

  /** Announces a call and its end; `work` does the work and returns the result. If it throws, the call has failed. */
  async tool(call: ToolCall, work: () => Promise<ToolEnd>): Promise<void> {
    let end: ToolEnd = { status: 'failed' };
    try {
      await this.sendOnly({ sessionUpdate: 'tool_call', ...call, status: 'pending' });
      end = await work();
    } finally {
      await this.session.keep({ update: { sessionUpdate: 'tool_call', ...call, ...end } });
      await this.sendOnly({ sessionUpdate: 'tool_call_update', toolCallId: call.toolCallId, ...end });
    }
  }

  async toolRuns({ toolCallId }: ToolCall): Promise<void> {
    await this.sendOnly({ sessionUpdate: 'tool_call_update', toolCallId, status: 'in_progress' });
  }

  /**
   * Whether a call is allowed: by the mode, by an earlier “always”, or by the user's answer. The answer `cancelled`
   * cancels the turn; an invalid answer counts as a rejection.
   */
  async isAllowed(call: ToolCall): Promise<boolean> {
    const { state } = this.session;
    if (state.mode === 'auto' || state.always) return true;
    const chosen = await this.#ask(call);
    if (chosen === null) this.session.cancel();
    this.signal.throwIfAborted();
    if (chosen === permissionIds.always) await this.session.change({ always: true });
    return chosen === permissionIds.always || chosen === permissionIds.once;
  }

  /** The id of the chosen option, null for `cancelled`. */
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

  async #stream(sessionUpdate: Voice, text: string): Promise<void> {
    const messageId = this.messageId();
    const piece = (part: string): SessionUpdate => ({
      sessionUpdate,
      messageId,
      content: { type: 'text', text: part },
    });
    let sent = '';
    try {
      for (const [word] of text.matchAll(/\S+\s*/g)) {
        await this.pause(this.rng.between(40, 80));
        await this.sendOnly(piece(word));
        sent += word;
      }
    } finally {
      if (sent !== '') await this.session.keep({ update: piece(sent) });
    }
  }
}

export function text(words: string): ToolCallContent {
  return { type: 'content', content: { type: 'text', text: words } };
}
