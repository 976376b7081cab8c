/** An ACP agent on a `ScriptedNode` that a test scripts. It reads messages in the order of its stdin. */
import { expect, vi } from 'vitest';
import { type Message, type RequestId, type RpcError, readMessage, writeMessage } from '../acp/message.ts';
import type { CreateAgent } from '../features/agents/creation.ts';
import type { LivesRoom } from './lives.ts';

type Heard<K extends Message['kind']> = Extract<Message, { kind: K }>;

export class ScriptedAcp {
  readonly session_id: string;
  readonly #room: LivesRoom;
  /** The number of lines of stdin that it has read. */
  #heard = 0;

  constructor(room: LivesRoom, session_id: string) {
    this.#room = room;
    this.session_id = session_id;
  }

  /** All lines of its stdin so far. */
  get lines(): string[] {
    return this.#room.node.stdin(this.session_id).toString().split('\n').slice(0, -1);
  }

  /** Waits for the next message to it, which must have this kind and method. */
  async hears<K extends Message['kind']>(kind: K, method?: string): Promise<Heard<K>> {
    const line = await vi.waitFor(() => {
      const next = this.lines[this.#heard];
      expect(next).toBeDefined();
      return next!;
    }, 20_000);
    this.#heard++;
    const message = readMessage(line)!;
    expect(message).toMatchObject({ kind, ...(method !== undefined && { method }) });
    return message as Heard<K>;
  }

  writes(text: string): void {
    this.#room.node.write(this.session_id, Buffer.from(text));
  }

  says(message: Message): void {
    this.writes(writeMessage(message));
  }

  /** Waits for a request, and answers it. */
  async answers(method: string, answer: { result?: unknown; error?: RpcError }): Promise<Heard<'request'>> {
    const asked = await this.hears('request', method);
    this.says({ kind: 'response', id: asked.id, ...answer });
    return asked;
  }

  async introduces(answer: object = {}): Promise<void> {
    const result = { protocolVersion: 1, agentCapabilities: {}, authMethods: [], ...answer };
    await this.answers('initialize', { result });
  }

  /** Answers `initialize` and `session/new`. `offers`: its modes and options. */
  async opens(answer: object = {}, offers: object = {}): Promise<void> {
    await this.introduces(answer);
    await this.answers('session/new', { result: { sessionId: 'acp-1', ...offers } });
  }

  asks(id: RequestId, options: object[] = usual, title = 'Edit', more: object = {}): void {
    const params = { sessionId: 'acp-1', toolCall: { toolCallId: 'c1', title }, options, ...more };
    this.says({ kind: 'request', id, method: 'session/request_permission', params });
  }

  updates(update: object, sessionId = 'acp-1'): void {
    this.says({ kind: 'notification', method: 'session/update', params: { sessionId, update } });
  }
}

/** Starts an agent; returns its id and its script. */
export async function startAcp(
  room: LivesRoom,
  more: Partial<CreateAgent> = {},
): Promise<{ id: string; acp: ScriptedAcp }> {
  const { id, session_id } = await room.create({ protocol: 'acp', start: true, ...more });
  return { id, acp: new ScriptedAcp(room, session_id!) };
}

const usual = [
  { optionId: 'once', name: 'Allow', kind: 'allow_once' },
  { optionId: 'always', name: 'Always', kind: 'allow_always' },
  { optionId: 'no', name: 'Reject', kind: 'reject_once' },
];
