/**
 * The event log of every agent: appends events inside a caller's transaction, and provides streams, pages, output and
 * search. Followers of an agent share one tail. This module does not check access.
 */
import { isUtf8 } from 'node:buffer';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { limits as sharedLimits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import { entryPoint } from '../base/program-files.ts';
import { WorkerCalls } from '../base/worker-calls.ts';
import type { EventBody, StreamName } from '../core/event.ts';
import { problems } from '../core/problem.ts';
import type { Redactor } from '../core/redaction.ts';
import { createHead, deleteHead, headOf } from '../store/event-rows/heads.ts';
import { appendEvents, type NewEvent } from '../store/event-rows/write.ts';
import { preparedQuery } from '../store/prepared-query.ts';
import type { Appended, Reader, Store, Tx } from '../store/store.ts';
import type { AgentRef } from './agent-ref.ts';
import { type FollowDeps, Follower, type LiveWriter } from './follow.ts';
import { asBuffer, batchFrames, frameText } from './frame.ts';
import { type EventPage, History, type PageOptions } from './history.ts';
import { limits } from './limits.ts';
import { LogMaintenance, type Retention, type Sealing } from './maintenance.ts';
import { type Output, openOutput } from './output.ts';
import type { Position } from './position.ts';
import { insertDrop } from './queries/segments.ts';
import { Search, type SearchPage, type SearchQuery } from './search.ts';
import type { SegmentStorage } from './segment.ts';
import { segmentStorage } from './segment-storage.ts';
import { Tail } from './tail.ts';
import type { EventsTasks, EventsWorkerData } from './worker.ts';

export interface EventLogOptions {
  store: Store;
  data_dir: string;
  clock: Clock;
  log: Logger;
  /** Called on every pass, so that it can change while the service runs. */
  retention?: () => Partial<Retention>;
  sealing?: Partial<Sealing>;
  heartbeat_ms?: number;
  /** Redacts a session's secrets in appended messages and errors. Output is already redacted. */
  redactor?: (reader: Reader, session_id: string | null) => Promise<Redactor | null>;
}

export class EventLog {
  readonly #store: Store;
  readonly #follow_deps: FollowDeps;
  readonly #redactor: NonNullable<EventLogOptions['redactor']>;
  readonly #history: History;
  readonly #segments: SegmentStorage;
  readonly #worker: WorkerCalls<EventsTasks>;
  readonly #maintenance: LogMaintenance;
  readonly #search: Search;
  readonly #agents = new Map<string, AgentRef>();
  /** Tails exist only for agents with followers. */
  readonly #tails = new Map<string, Tail>();
  readonly #unsubscribe: (() => void)[];
  readonly #listeners = new Set<(agent_num: number) => void>();

  constructor(options: EventLogOptions) {
    this.#store = options.store;
    this.#redactor = options.redactor ?? (async () => null);
    const folder = join(options.data_dir, 'log');
    this.#segments = segmentStorage(options.store, folder);
    this.#history = new History(options.store, this.#segments);
    this.#follow_deps = {
      store: options.store,
      history: this.#history,
      clock: options.clock,
      heartbeat_ms: options.heartbeat_ms ?? limits.heartbeat_ms,
    };
    this.#worker = new WorkerCalls(entryPoint('events/worker'), {
      source: options.store.source,
      folder,
      search_path: join(options.data_dir, 'search.db'),
    } satisfies EventsWorkerData);
    this.#search = new Search(options.store, this.#worker, this.#history, options.log);
    this.#maintenance = new LogMaintenance({
      store: options.store,
      segments: this.#segments,
      clock: options.clock,
      log: options.log,
      worker: this.#worker,
      retention: () => ({ ...defaultRetention, ...options.retention?.() }),
      sealing: { ...defaultSealing, ...options.sealing },
      onDropped: (num) => this.#search.forget(num),
    });
    const ingested = this.#store.onIngested((batch, appended) => {
      this.#grew(appended);
      this.#tails.get(batch.agent_id)?.publish({
        first_seq: appended.first_seq,
        last_seq: appended.last_seq,
        frames: batchFrames(batch, appended),
      });
    });
    const deleted = this.#store.wakes.on('deleted_logs', (agent_num) => this.#deleted(agent_num));
    this.#unsubscribe = [ingested, deleted];
  }

  /** Calls `listener` after each commit of events, with the agent's `num`. Returns a function that ends this. */
  onAppended(listener: (agent_num: number) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Starts sealing, retention and indexing in the background. */
  start(): void {
    this.#maintenance.start();
    this.#search.start();
  }

  /** Runs sealing and retention for all logs now; resolves when it is done. */
  runMaintenance(): Promise<void> {
    return this.#maintenance.pass();
  }

  /** Creates the log of a new agent. */
  async create(tx: Tx, agent_num: number): Promise<void> {
    await createHead(tx, agent_num);
  }

  /**
   * Deletes the log of an agent that is deleted in the same transaction. Rows and files are deleted in the background.
   */
  async drop(tx: Tx, agent_num: number): Promise<void> {
    await insertDrop(tx, agent_num);
    await deleteHead(tx, agent_num);
    tx.wake('deleted_logs', agent_num);
  }

  /**
   * Appends events in the caller's transaction; followers see them after the commit. Redacts the session's secrets in
   * messages and errors. Throws `agent not found` if the log does not exist, and `session not found` for an unknown
   * session.
   */
  async append(tx: Tx, agent_id: string, bodies: readonly EventBody[]): Promise<Appended> {
    const agent = await tx.get(agentNum(tx, agent_id));
    if (!agent) throw problems.agentNotFound();
    const events: NewEvent[] = [];
    for (const body of bodies) {
      const redactor = body.type === 'output' ? null : await this.#redactor(tx, body.session_id);
      events.push(eventOf(body, redactor));
    }
    const appended = { agent_id, agent_num: agent.num, ...(await appendEvents(tx, agent.num, events)) };
    const { first_seq, last_seq } = appended;
    const text = events.map((event, i) => frameText(agent_id, first_seq + i, event)).join('');
    const frames = Buffer.from(text);
    tx.afterCommit(() => {
      this.#grew(appended);
      this.#tails.get(agent_id)?.publish({ first_seq, last_seq, frames });
    });
    return appended;
  }

  /**
   * Records of stored events, oldest first: those after a number, or the last ones before a number. A page ends before
   * `limit` if its events are large. Throws `agent not found`.
   */
  async page(agent_id: string, options: PageOptions): Promise<EventPage> {
    return this.#history.page(await this.#find(agent_id), options);
  }

  /** The raw bytes of a session: one stream, or both (null). Throws `session not found`. */
  async output(agent_id: string, session_id: string, stream: StreamName | null): Promise<Output> {
    return openOutput(this.#store, this.#segments, await this.#find(agent_id), session_id, stream);
  }

  /**
   * The newest events that contain all words of `text`. Throws `agent not found`, `too many searches are waiting`, and the
   * reason of the signal when it aborts.
   */
  async search(agent_id: string, query: SearchQuery): Promise<SearchPage> {
    return this.#search.find(await this.#find(agent_id), query);
  }

  /**
   * Yields SSE frames from `position` on, then live, until `signal` aborts or the agent is deleted. Each event appears
   * once and in order; `events_truncated` and `reset` frames report gaps. Throws `agent not found` before the first
   * frame. Passes new frames to `write` instead, while the caller waits for them and `write` takes them.
   */
  async *follow(
    agent_id: string,
    position: Position,
    signal: AbortSignal,
    write: LiveWriter = () => false,
  ): AsyncGenerator<Buffer> {
    const agent = await this.#find(agent_id);
    const tail = this.#tail(agent);
    try {
      yield* new Follower(this.#follow_deps, agent, tail, write).frames(position, signal);
    } finally {
      if (tail.followers === 0 && this.#tails.get(agent_id) === tail) this.#tails.delete(agent_id);
    }
  }

  /** Ends all followers and waits for maintenance in progress. */
  async close(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    for (const tail of this.#tails.values()) tail.close();
    this.#tails.clear();
    const searching = this.#search.close();
    await this.#maintenance.close();
    // Indexing in progress is aborted. The next start continues it.
    await this.#worker.close();
    await searching;
  }

  /** Null: any log may have been deleted. */
  #deleted(agent_num: number | null): void {
    if (agent_num === null) this.#agents.clear();
    for (const [id, { num }] of this.#agents) if (num === agent_num) this.#agents.delete(id);
    for (const [id, tail] of this.#tails) {
      if (agent_num === null) void this.#closeIfDeleted(id, tail);
      else if (tail.agent_num === agent_num) this.#close(id, tail);
    }
    this.#maintenance.notify();
  }

  async #closeIfDeleted(agent_id: string, tail: Tail): Promise<void> {
    const head = await this.#store.read((reader) => headOf(reader, tail.agent_num)).catch(() => undefined);
    // If the database cannot be read, clients connect again and get its error.
    if (head === undefined) this.#close(agent_id, tail);
  }

  #close(agent_id: string, tail: Tail): void {
    tail.close();
    if (this.#tails.get(agent_id) === tail) this.#tails.delete(agent_id);
  }

  #grew({ agent_num, bytes }: Pick<Appended, 'agent_num' | 'bytes'>): void {
    this.#maintenance.grew(agent_num, bytes);
    this.#search.touch(agent_num);
    for (const listener of this.#listeners) listener(agent_num);
  }

  #tail({ id, num }: AgentRef): Tail {
    let tail = this.#tails.get(id);
    if (!tail) {
      tail = new Tail(num);
      this.#tails.set(id, tail);
    }
    return tail;
  }

  async #find(agent_id: string): Promise<AgentRef> {
    const known = this.#agents.get(agent_id);
    if (known) return known;
    const row = await this.#store.read((reader) => reader.get(agentNum(reader, agent_id)));
    if (!row) throw problems.agentNotFound();
    const agent = { num: row.num, id: agent_id };
    if (this.#agents.size >= sharedLimits.sessions_cached_max) this.#agents.clear();
    this.#agents.set(agent_id, agent);
    return agent;
  }
}

const defaultRetention: Retention = {
  days: sharedLimits.retention_days,
  bytes_per_agent: sharedLimits.retention_bytes_per_agent,
  bytes_total: limits.retention_bytes_total,
};
const defaultSealing: Sealing = {
  from_bytes: limits.seal_from_bytes,
  busy_from_bytes: limits.seal_busy_from_bytes,
  busy_ms: limits.seal_busy_ms,
  keep_bytes: limits.seal_keep_bytes,
  idle_ms: limits.seal_idle_ms,
  idle_from_bytes: limits.seal_idle_from_bytes,
};

/** Opens the log without background work; call `start` for that. */
export function openEventLog(options: EventLogOptions): EventLog {
  return new EventLog(options);
}

const agentNum = preparedQuery((sql, id: string) =>
  sql.selectFrom('agents').select('num').where('id', '=', id),
);

function eventOf(body: EventBody, redactor: Redactor | null): NewEvent {
  const { type, ts_ms, session_id } = body;
  if (body.type !== 'output') {
    const data = fieldsText(body, redactor);
    return { type, ts_ms, session_id, stream: null, offset: null, partial: false, data };
  }
  const { stream, offset, partial, bytes } = body;
  const data = isUtf8(bytes) ? asBuffer(bytes).toString() : bytes;
  return { type, ts_ms, session_id, stream, offset, partial, data };
}

/** Redacts error texts and agent messages, the only fields that may contain secrets. */
function fieldsText(body: Exclude<EventBody, { type: 'output' }>, redactor: Redactor | null): string {
  if (body.type === 'acp_event') {
    const payload = redactor?.json(body.payload) ?? body.payload;
    return `${JSON.stringify(body.fields).slice(0, -1)},"payload":${payload}}`;
  }
  if (body.type === 'status') return JSON.stringify(body.fields);
  const { code, ...rest } = body.fields;
  const text = JSON.stringify(rest);
  return JSON.stringify({ code, ...JSON.parse(redactor?.json(text) ?? text) });
}
