/**
 * The connection of a scripted ACP agent: it writes lines of JSON to standard output without a library, so that a scenario can
 * write anything, and it matches answers to requests.
 */
import { writeSync } from 'node:fs';

export type Json = Record<string, unknown>;
export type RpcId = string | number | null;

export interface Answer {
  result?: Json;
  error?: { code: number; message: string };
}

export class Wire {
  session_id = 'none';
  signed_in = false;
  /** The current turn was cancelled. */
  cancelled = false;
  readonly #waiting = new Map<RpcId, ((answer: Answer) => void)[]>();
  #requests_sent = 0;

  write(text: string): void {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at);
  }

  send(message: Json): void {
    this.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  update(update: Json, sessionId = this.session_id): void {
    this.send({ method: 'session/update', params: { sessionId, update } });
  }

  sendText(text: string, sessionId = this.session_id): void {
    this.update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } }, sessionId);
  }

  newId(): RpcId {
    return `agent-${++this.#requests_sent}`;
  }

  /** Resolves with the next answer to `id`. Never resolves if the turn is cancelled first. */
  request(method: string, params: Json, id: RpcId = this.newId()): Promise<Answer> {
    this.send({ id, method, params: { sessionId: this.session_id, ...params } });
    return new Promise((resolve) => this.#waiting.set(id, [...(this.#waiting.get(id) ?? []), resolve]));
  }

  resolveRequest(id: RpcId, answer: Answer): void {
    this.#waiting.get(id)?.shift()?.(answer);
  }

  cancel(): void {
    this.cancelled = true;
    this.#waiting.clear();
  }
}
