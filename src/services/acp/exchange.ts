/**
 * One transaction's dealings with an agent that speaks ACP: what it said and what is said to it become events, state,
 * rows and one intent for its stdin, together or not at all. It decides nothing: `driver.ts` says what follows from what.
 */
import { asksOf } from '../../acp/acting.ts';
import { type Direction, fold, type Happening } from '../../acp/fold.ts';
import { type Message, type RequestId, writeMessage } from '../../acp/message.ts';
import { currentMode } from '../../acp/modes.ts';
import type { AcpState } from '../../acp/state.ts';
import { idFrom } from '../../base/ids.ts';
import { limits } from '../../base/limits.ts';
import type { Activity, Asks } from '../../domain/agent.ts';
import type { EventBody } from '../../domain/event.ts';
import type { Preset } from '../../domain/preset.ts';
import { findPreset } from '../../domain/presets.ts';
import type { Redactor } from '../../domain/redaction.ts';
import { loadAcpState, storeAcpState } from '../../store/acp.ts';
import {
  type AgentRow,
  findSession,
  type SessionRow,
  updateAgent,
  updateSession,
} from '../../store/agents.ts';
import { pendingReviews } from '../../store/reviews.ts';
import type { Tx } from '../../store/store.ts';
import type { AgentsContext } from '../agents/context.ts';

/** A message as it goes over the wire. */
export interface Frame {
  message: Message;
  /** Null when it is too large for an event. */
  text: string | null;
  size: number;
}

export class Exchange {
  readonly context: AgentsContext;
  readonly tx: Tx;
  readonly session: SessionRow;
  readonly agent: AgentRow;
  readonly #before: AcpState;
  readonly #bodies: EventBody[] = [];
  #state: AcpState;
  #out = '';
  /** The record that lists show changed in a way that the state does not tell. */
  #touched = false;

  private constructor(context: AgentsContext, tx: Tx, session: SessionRow) {
    this.context = context;
    this.tx = tx;
    this.session = session;
    this.agent = context.mustFind(tx, session.agent_id);
    this.#before = loadAcpState(tx, session.num);
    this.#state = this.#before;
  }

  /** Runs `talk` with a session that is not over and speaks ACP, and writes down what came of it; null for any other. */
  static run<T>(
    context: AgentsContext,
    tx: Tx,
    session_id: string,
    talk: (exchange: Exchange) => T,
  ): T | null {
    const session = findSession(tx, session_id);
    if (!session || session.state === 'ended' || session.protocol !== 'acp') return null;
    const exchange = new Exchange(context, tx, session);
    const answer = talk(exchange);
    exchange.#finish();
    return answer;
  }

  get state(): AcpState {
    return this.#state;
  }

  get preset(): Preset | null {
    return this.agent.preset === null ? null : findPreset(this.agent.preset);
  }

  get now(): number {
    return this.context.now();
  }

  /** How long stdin is once everything that was said so far is there. */
  get stdin_end(): number {
    return this.session.stdin_bytes + Buffer.byteLength(this.#out);
  }

  output(body: Omit<EventBody & { type: 'output' }, 'type' | 'session_id' | 'ts_ms' | 'stream'>): void {
    this.#bodies.push({
      type: 'output',
      session_id: this.session.id,
      ts_ms: this.now,
      stream: 'stdout',
      ...body,
    });
  }

  /** As it may be told beyond the agent's log, which sees to itself. */
  told(text: string): string {
    return this.#redactor?.text(text) ?? text;
  }

  /** The same of JSON. */
  toldJson(json: string): string {
    return this.#redactor?.json(json) ?? json;
  }

  get #redactor(): Redactor | null {
    return this.context.options.secrets.redactor(this.tx, this.session.id);
  }

  error(code: string, error: string, details: object = {}): void {
    const fields = { code, error, ...details };
    this.#bodies.push({ type: 'error', session_id: this.session.id, ts_ms: this.now, fields });
  }

  /** Answers what follows from it, to be acted on. */
  receive(frame: Frame): Happening[] {
    const { state, replay, happened } = fold(this.#state, 'from_agent', frame.message);
    this.#state = state;
    const asks = happened.find((one) => one.kind === 'asks_permission');
    this.#show('from_agent', frame, {
      ...(replay && { replay }),
      ...(asks && { review_id: this.reviewId(asks.asking.number) }),
    });
    return happened;
  }

  /** Answers the request's id. */
  request(method: string, params: unknown, id = this.#nextId()): string {
    this.#say({ kind: 'request', id, method, params });
    return id;
  }

  notify(method: string, params: unknown): void {
    this.#say({ kind: 'notification', method, params });
  }

  /** `review`: what it answers; `answered_by`: as people read it, null: the service itself. */
  respond(
    id: RequestId,
    answer: Pick<Message & { kind: 'response' }, 'result' | 'error'>,
    review?: { review_id: string; answered_by: string | null },
  ): void {
    this.#say({ kind: 'response', id, ...answer }, review);
  }

  reviewId(number: number): string {
    return idFrom('rev', this.session.id, String(number));
  }

  spilling(spilling: boolean): void {
    if (this.#state.spilling !== spilling) this.#state = { ...this.#state, spilling };
  }

  /** Reviews of it came or went. */
  touch(): void {
    this.#touched = true;
  }

  #nextId(): string {
    return `${this.session.id}.${this.#state.asked_count + 1}`;
  }

  #say(message: Message, fields: object = {}): void {
    if (this.session.stdin_lost === 1) return;
    this.#state = fold(this.#state, 'to_agent', message).state;
    const line = writeMessage(message);
    const size = Buffer.byteLength(line);
    const text = size > limits.acp_payload_bytes_max ? null : line.trimEnd();
    this.#show('to_agent', { message, text, size }, fields);
    this.#out += line;
  }

  #show(direction: Direction, { message, text, size }: Frame, more: object): void {
    const about = message.kind === 'response' ? { response_to: message.id } : { method: message.method };
    const fields = { ...about, ...(text === null && { truncated: true, size }), ...more };
    this.#bodies.push({
      type: 'acp_event',
      session_id: this.session.id,
      ts_ms: this.now,
      fields: { direction, ...fields },
      payload: text ?? 'null',
    });
  }

  #finish(): void {
    const { tx, context, session, agent } = this;
    if (this.#bodies.length > 0) context.options.log.append(tx, agent.id, this.#bodies);
    if (this.#out !== '') {
      const data = Buffer.from(this.#out).toString('base64');
      const payload = { offset: session.stdin_bytes, data, eof: false };
      context.options.outbox.enqueue(tx, session.node_id, session.id, 'input', payload);
      updateSession(tx, session.num, { stdin_bytes: this.stdin_end });
    }
    if (this.#state === this.#before && !this.#touched) return;
    storeAcpState(tx, session.num, this.#state);
    const activity = this.#activity();
    const { acp_session_id } = this.#state;
    const opened = this.#state.phase === 'ready' && acp_session_id !== agent.acp_session_id;
    const asks = this.#asks();
    const shown = activity !== agent.activity || asks !== agent.asks;
    if (shown || opened) {
      updateAgent(tx, agent.num, { activity, asks, ...(opened && { acp_session_id }), updated_at: this.now });
    }
    if (shown || this.#touched) context.publish(tx, agent.id);
  }

  /** By what it did and by the mode that it reports. */
  #asks(): Asks {
    const mode = currentMode(this.#state);
    const is_acting = mode !== null && this.preset?.permission.acting_modes.includes(mode);
    return is_acting ? 'acts' : asksOf(this.#state.acting);
  }

  #activity(): Activity {
    const { phase, turn } = this.#state;
    if (phase === 'auth_required' || phase === 'failed') return 'needs_you';
    if (pendingReviews(this.tx, this.agent.num, this.session.num).length > 0) return 'needs_you';
    if (phase !== 'ready') return 'starting';
    return turn === null ? 'idle' : 'working';
  }
}
