/**
 * A transaction over messages of one ACP session. Messages in both directions result in events, changes to the session's
 * state and rows, and one intent that writes to stdin. Either all of these are stored or none. The transaction makes no
 * decisions: `conversations/driver.ts` decides how the service reacts, and `acp-activity.ts` what the agent's record shows.
 */
import type { AcpEvent, Direction } from '../../acp/fold.ts';
import { type Message, type RequestId, writeMessage } from '../../acp/message.ts';
import type { AcpState } from '../../acp/state.ts';
import { foldFrame, foldReceived } from '../../acp/v2/fold.ts';
import { redactTerminalOutput } from '../../acp/v2/terminal-output.ts';
import { PREVIEW_VERSION } from '../../acp/v2/version.ts';
import { toV2 } from '../../acp/v2/wire.ts';
import { idFrom } from '../../base/ids.ts';
import { limits } from '../../base/limits.ts';
import type { EventBody } from '../../core/event.ts';
import type { Redactor } from '../../core/redaction.ts';
import type { Tx } from '../../store/store.ts';
import { findPreset } from '../presets/rules/catalog.ts';
import type { Preset } from '../presets/rules/preset.ts';
import { sessionActivity } from './acp-activity.ts';
import type { AgentCore } from './core.ts';
import { progressOf } from './progress.ts';
import { storeAcpState, toAcpState } from './queries/acp-state.ts';
import {
  type AcpSessionRow,
  findAcpSession,
  type SessionRow,
  updateAgent,
  updateSession,
} from './queries/agents.ts';

/** A message, and its form on stdin or stdout. */
export interface Frame {
  message: Message;
  /** Null if the message is too large for an event. */
  text: string | null;
  /** In bytes. */
  size: number;
}

export class AcpTransaction {
  readonly core: AgentCore;
  readonly tx: Tx;
  readonly session: SessionRow;
  /** As it was before the transaction, like `session`. */
  readonly agent: AcpAgent;
  readonly #redactor: Redactor | null;
  readonly #before: AcpState;
  readonly #bodies: EventBody[] = [];
  #state: AcpState;
  /** Lines to write to the agent's stdin. */
  #stdin_lines = '';
  /** The agent's record changed in a way that the state does not show. */
  #publish_at_end = false;

  private constructor(core: AgentCore, tx: Tx, row: AcpSessionRow, redactor: Redactor | null) {
    this.core = core;
    this.#redactor = redactor;
    this.tx = tx;
    this.session = row;
    this.agent = toAcpAgent(row);
    this.#before = toAcpState(row.num, row.acp_state);
    this.#state = this.#before;
  }

  /** Runs `body` and stores its effects. If the session has ended or does not speak ACP, returns null without running it. */
  static async run<T>(
    core: AgentCore,
    tx: Tx,
    session_id: string,
    body: (transaction: AcpTransaction) => Promise<T>,
  ): Promise<T | null> {
    const row = await findAcpSession(tx, session_id);
    if (!row || row.state === 'ended' || row.protocol !== 'acp') return null;
    const redactor = await core.secrets.redactor(tx, session_id);
    const transaction = new AcpTransaction(core, tx, row, redactor);
    const result = await body(transaction);
    await transaction.#finish();
    return result;
  }

  get state(): AcpState {
    return this.#state;
  }

  get preset(): Preset | null {
    return this.agent.preset === null ? null : findPreset(this.agent.preset);
  }

  /** The agent is being stopped, so nobody is asked anything on its behalf any more. */
  get is_stopping(): boolean {
    return this.session.stopping === 1;
  }

  get now(): number {
    return this.core.clock.now();
  }

  /** The length of stdin in bytes once everything sent so far has been written. */
  get stdin_end(): number {
    return this.session.stdin_bytes + Buffer.byteLength(this.#stdin_lines);
  }

  /** Appends output to the log, at the end of the transaction; `error` does the same with an error event. */
  output(body: Omit<EventBody & { type: 'output' }, 'type' | 'session_id' | 'ts_ms' | 'stream'>): void {
    this.#bodies.push({
      type: 'output',
      session_id: this.session.id,
      ts_ms: this.now,
      stream: 'stdout',
      ...body,
    });
  }

  /** Redacts the session's secrets. For text outside the agent's log, which redacts what it stores. */
  redact(text: string): string {
    return this.#redactor?.text(text) ?? text;
  }

  /** Like `redact`, for JSON text. */
  redactJson(json: string): string {
    return this.#redactor?.json(json) ?? json;
  }

  error(code: string, error: string, details: object = {}): void {
    const fields = { code, error, ...details };
    this.#bodies.push({ type: 'error', session_id: this.session.id, ts_ms: this.now, fields });
  }

  /** Folds a message of the agent into the state. Returns the resulting events for the driver. */
  receive(frame: Frame): AcpEvent[] {
    const { state, replay, source, events, accepted } = foldReceived(this.#state, frame.message);
    this.#state = state;
    const asked = this.is_stopping ? [] : events;
    const permission_event = asked.find((event) => event.kind === 'permission_requested');
    const input_event = asked.find((event) => event.kind === 'input_requested');
    this.#log('from_agent', frame, {
      ...(replay && { replay }),
      ...(source && { subagent: this.redact(source.id) }),
      ...(source?.by === 'unknown' && { unknown_session: true }),
      ...(accepted && { accepted }),
      ...(state.protocol_version === PREVIEW_VERSION && turnEnd(events)),
      ...(permission_event && { review_id: this.reviewId(permission_event.request.number) }),
      ...(input_event && { elicitation_id: this.elicitationId(input_event.request.number) }),
    });
    return events;
  }

  /** Returns the request's id. */
  request(method: string, params: unknown, id = this.#nextId()): string {
    this.#send({ kind: 'request', id, method, params });
    return id;
  }

  /** Sends a notification. Like `request` and `respond`, it takes the form of ACP version 1. */
  notify(method: string, params: unknown): void {
    this.#send({ kind: 'notification', method, params });
  }

  /** `about`: the answered review or elicitation. `answered_by`: the responder's display name; null for the service. */
  respond(
    id: RequestId,
    answer: Pick<Message & { kind: 'response' }, 'result' | 'error'>,
    about?: ({ review_id: string } | { elicitation_id: string }) & { answered_by: string | null },
  ): void {
    this.#send({ kind: 'response', id, ...answer }, about);
  }

  /** `number`: of the request in its session. The same request always gets the same id, here and in `elicitationId`. */
  reviewId(number: number): string {
    return idFrom('rev', this.session.id, String(number));
  }

  elicitationId(number: number): string {
    return idFrom('eli', this.session.id, String(number));
  }

  /** Records whether the agent is in the middle of a line that is too long to be a message. */
  spilling(spilling: boolean): void {
    if (this.#state.spilling !== spilling) this.#state = { ...this.#state, spilling };
  }

  /** Publishes the agent's record at the end of the transaction, because its reviews or elicitations changed. */
  publishAtEnd(): void {
    this.#publish_at_end = true;
  }

  #nextId(): string {
    return `${this.session.id}.${this.#state.asked_count + 1}`;
  }

  /** `sent`: the message in the form of ACP version 1. Does nothing if the state of stdin was lost. */
  #send(sent: Message, fields: object = {}): void {
    if (this.session.stdin_lost === 1) return;
    const message = this.#state.protocol_version === PREVIEW_VERSION ? toV2(sent) : sent;
    this.#state = foldFrame(this.#state, 'to_agent', message).state;
    const line = writeMessage(message);
    const size = Buffer.byteLength(line);
    const text = size > limits.acp_payload_bytes_max ? null : line.trimEnd();
    this.#log('to_agent', { message, text, size }, fields);
    this.#stdin_lines += line;
  }

  #log(direction: Direction, { message, text, size }: Frame, more: object): void {
    const about = message.kind === 'response' ? { response_to: message.id } : { method: message.method };
    const request_id = message.kind === 'request' ? this.#redactId(message.id) : undefined;
    const fields = { ...about, ...(text === null && { truncated: true, size, request_id }), ...more };
    this.#bodies.push({
      type: 'acp_event',
      session_id: this.session.id,
      ts_ms: this.now,
      fields: { direction, ...fields },
      payload: text === null ? 'null' : redactTerminalOutput(message, text, this.#redactor),
    });
  }

  #redactId(id: RequestId): RequestId {
    return typeof id === 'string' ? this.redact(id) : id;
  }

  async #finish(): Promise<void> {
    const { tx, core, session, agent } = this;
    if (this.#bodies.length > 0) await core.events.append(tx, agent.id, this.#bodies);
    if (this.#stdin_lines !== '') {
      const data = Buffer.from(this.#stdin_lines).toString('base64');
      const payload = { offset: session.stdin_bytes, data, eof: false };
      await core.outbox.enqueue(tx, session.node_id, session.id, 'input', payload);
      updateSession(tx, session.num, { stdin_bytes: this.stdin_end });
    }
    if (this.#state === this.#before && !this.#publish_at_end) return;
    await storeAcpState(tx, session.num, this.#state);
    const awaits_answer = await core.session.awaitsAnswer(tx, agent.num, session.num);
    const { preset, now: now_ms } = this;
    const { activity, asks, sign_in_since } = sessionActivity(this.#state, agent, {
      awaits_answer,
      preset,
      now_ms,
    });
    const { acp_session_id } = this.#state;
    const opened = this.#state.phase === 'ready' && acp_session_id !== agent.acp_session_id;
    const sign_in_changed = (sign_in_since === null) !== (agent.sign_in_since === null);
    const shown = activity !== agent.activity || asks !== agent.asks || sign_in_changed;
    const publishes = shown || this.#publish_at_end;
    const progress = JSON.stringify(progressOf(this.#state, (text) => this.redact(text)));
    const progressed = progress !== agent.progress && (publishes || this.#mayPublishProgress());
    if (shown || opened || progressed) {
      const changes = {
        activity,
        asks,
        sign_in_since,
        progress: progressed ? progress : agent.progress,
        ...(opened && { acp_session_id }),
      };
      updateAgent(tx, agent.num, { ...changes, updated_at: this.now });
    }
    if (sign_in_changed) await this.#recordSignIn(sign_in_since);
    if (publishes || progressed) await core.records.publish(tx, agent.id);
    if (agent.activity === 'working' && activity !== 'working') {
      tx.afterCommit(() => core.summaries.measure(agent.id));
    }
  }

  /** If not, the session publishes it later. */
  #mayPublishProgress(): boolean {
    const { core, session, tx: current } = this;
    return core.summaries.mayPublish(current, session.id, () =>
      core.store.write((tx) =>
        AcpTransaction.run(core, tx, session.id, async (transaction) => transaction.publishAtEnd()),
      ),
    );
  }

  async #recordSignIn(since_ms: number | null): Promise<void> {
    const { tx, core, agent } = this;
    const { id: agent_id } = agent;
    if (since_ms === null) await core.facts.record(tx, 'sign_in_over', agent_id, { agent_id });
    else await core.facts.record(tx, 'sign_in_required', agent_id, { agent_id, since_ms });
  }
}

type AcpAgent = ReturnType<typeof toAcpAgent>;

function toAcpAgent(row: AcpSessionRow) {
  const { agent_num: num, agent_id: id, preset, permission_mode, asks, activity, acp_session_id } = row;
  const { workdir, stale_since, sign_in_since, progress, team_num, run_num, member_id } = row;
  return {
    ...{ num, id, preset, permission_mode, asks, activity, acp_session_id },
    ...{ workdir, stale_since, sign_in_since, progress, team_num, run_num, member_id },
  };
}

/** In ACP version 2, the response to a prompt does not end the turn, so the event records which message ends it. */
function turnEnd(events: readonly AcpEvent[]): object | null {
  const ended = events.find((event) => event.kind === 'turn_ended');
  return ended ? { turn_ended: { prompt_id: ended.prompt_id, stop_reason: ended.stop_reason } } : null;
}
