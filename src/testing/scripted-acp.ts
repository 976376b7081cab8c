/** An ACP agent on a `ScriptedNode`, whose messages come from a test. It reads messages in the order of its stdin. */
import { expect, vi } from 'vitest';
import { type Message, type RequestId, type RpcError, readMessage, writeMessage } from '../acp/message.ts';
import type { CreateAgent } from '../features/agents/creation.ts';
import type { FeaturesFixture } from './features-fixture.ts';

type ReceivedFrame<K extends Message['kind']> = Extract<Message, { kind: K }>;

export class ScriptedAcp {
  readonly session_id: string;
  readonly #fixture: FeaturesFixture;
  /** The number of lines of stdin that it has read. */
  #lines_read = 0;

  constructor(fixture: FeaturesFixture, session_id: string) {
    this.#fixture = fixture;
    this.session_id = session_id;
  }

  /** All lines of its stdin so far. */
  get lines(): string[] {
    return this.#fixture.node.stdin(this.session_id).toString().split('\n').slice(0, -1);
  }

  /** Waits up to 20 s for the next message to the agent, which must have this kind and method. */
  async receive<K extends Message['kind']>(kind: K, method?: string): Promise<ReceivedFrame<K>> {
    const line = await vi.waitFor(() => {
      const next = this.lines[this.#lines_read];
      expect(next).toBeDefined();
      return next!;
    }, 20_000);
    this.#lines_read++;
    const message = readMessage(line)!;
    expect(message).toMatchObject({ kind, ...(method !== undefined && { method }) });
    return message as ReceivedFrame<K>;
  }

  write(text: string): void {
    this.#fixture.node.write(this.session_id, Buffer.from(text));
  }

  send(message: Message): void {
    this.write(writeMessage(message));
  }

  /** Waits for a request, and answers it. */
  async respond(
    method: string,
    answer: { result?: unknown; error?: RpcError },
  ): Promise<ReceivedFrame<'request'>> {
    const request = await this.receive('request', method);
    this.send({ kind: 'response', id: request.id, ...answer });
    return request;
  }

  async initialize(answer: object = {}): Promise<void> {
    const result = { protocolVersion: 1, agentCapabilities: {}, authMethods: [], ...answer };
    await this.respond('initialize', { result });
  }

  /** Answers `initialize` and `session/new`. `offers`: the modes and configuration options of the session. */
  async openSession(answer: object = {}, offers: object = {}): Promise<void> {
    await this.initialize(answer);
    await this.respond('session/new', { result: { sessionId: 'acp-1', ...offers } });
  }

  requestPermission(
    id: RequestId,
    options: object[] = permission_options,
    title = 'Edit',
    more: object = {},
  ): void {
    const params = { sessionId: 'acp-1', toolCall: { toolCallId: 'c1', title }, options, ...more };
    this.send({ kind: 'request', id, method: 'session/request_permission', params });
  }

  sendUpdate(update: object, sessionId = 'acp-1'): void {
    this.send({ kind: 'notification', method: 'session/update', params: { sessionId, update } });
  }
}

/** Starts an agent; returns its id and its script. */
export async function startAcp(
  fixture: FeaturesFixture,
  more: Partial<CreateAgent> = {},
): Promise<{ id: string; acp: ScriptedAcp }> {
  const { id, session_id } = await fixture.create({ protocol: 'acp', start: true, ...more });
  return { id, acp: new ScriptedAcp(fixture, session_id!) };
}

const permission_options = [
  { optionId: 'once', name: 'Allow', kind: 'allow_once' },
  { optionId: 'always', name: 'Always', kind: 'allow_always' },
  { optionId: 'no', name: 'Reject', kind: 'reject_once' },
];
