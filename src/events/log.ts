/**
 * The event log of every agent: appending inside a service's transaction, following from any position. It owns the
 * numbers, the shared tail, the hand-over from replay to live, and what is said when something is missing. It refuses
 * positions that are no numbers; it knows nothing about who may read.
 */
import { isUtf8 } from 'node:buffer';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { limits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import { WorkerCalls } from '../base/worker-calls.ts';
import type { EventBody, EventRecord, StreamName } from '../domain/event.ts';
import { streamNames } from '../domain/event.ts';
import { problems } from '../domain/problem.ts';
import type { Redactor } from '../domain/redaction.ts';
import { built } from '../store/built.ts';
import type { Appended, Reader, Store, Tx } from '../store/store.ts';
import {
  asBuffer,
  batchFrames,
  connectionError,
  frame,
  frameRecord,
  frameType,
  heartbeatFrame,
  OUTPUT,
  retryFrame,
  type StoredEvent,
  typeNumber,
} from './frame.ts';
import { History, type PageOptions } from './history.ts';
import { Keeper, type Retention, type Sealing } from './keeper.ts';
import { type Output, openOutput } from './output.ts';
import type { Position } from './position.ts';
import { type AgentRef, insertEvent } from './rows.ts';
import { Search, type SearchHit } from './search.ts';
import { Tail } from './tail.ts';
import type { EventsTasks, EventsWorkerData } from './worker.ts';

export interface EventLogOptions {
  store: Store;
  data_dir: string;
  clock: Clock;
  log: Logger;
  /** Read at every pass, so that it can change while the service runs. */
  retention?: () => Partial<Retention>;
  sealing?: Partial<Sealing>;
  heartbeat_ms?: number;
  /** What takes a session's secrets out of the messages and errors that are appended; output comes without them. */
  redactor?: (reader: Reader, session_id: string | null) => Redactor | null;
}

export class EventLog {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #heartbeat_ms: number;
  readonly #redactor: NonNullable<EventLogOptions['redactor']>;
  readonly #history: History;
  readonly #folder: string;
  readonly #worker: WorkerCalls<EventsTasks>;
  readonly #keeper: Keeper;
  readonly #search: Search;
  readonly #agents = new Map<string, AgentRef>();
  /** Only of agents that somebody follows. */
  readonly #tails = new Map<string, Tail>();
  readonly #stopListening: () => void;

  constructor(options: EventLogOptions) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#heartbeat_ms = options.heartbeat_ms ?? limits.heartbeat_ms;
    this.#redactor = options.redactor ?? (() => null);
    this.#folder = join(options.data_dir, 'log');
    this.#history = new History(options.store, this.#folder);
    this.#worker = new WorkerCalls('./worker', import.meta.url, {
      source: options.store.source,
      folder: this.#folder,
      search_path: join(options.data_dir, 'search.db'),
    } satisfies EventsWorkerData);
    this.#search = new Search(options.store, this.#worker, this.#history, options.log);
    this.#keeper = new Keeper({
      store: options.store,
      folder: this.#folder,
      clock: options.clock,
      log: options.log,
      worker: this.#worker,
      retention: () => ({ ...defaultRetention, ...options.retention?.() }),
      sealing: { ...defaultSealing, ...options.sealing },
      onDropped: (num) => this.#search.forget(num),
    });
    this.#stopListening = this.#store.onIngested((batch, appended) => {
      this.#grew(appended.agent_num, batch.bytes.length + batch.ends.length * limits.event_row_bytes);
      this.#tails.get(batch.agent_id)?.publish({
        first_seq: appended.first_seq,
        last_seq: appended.last_seq,
        frames: batchFrames(batch, appended),
      });
    });
  }

  /** Begins to seal, retain and index in the background. */
  start(): void {
    this.#keeper.start();
    this.#search.start();
  }

  /** Seals and retains now, everywhere; resolves when it is done. */
  keep(): Promise<void> {
    return this.#keeper.pass();
  }

  /** Makes the log of a new agent. */
  create(tx: Tx, agent_num: number): void {
    tx.run(tx.sql.insertInto('heads').values({ agent_num, last_seq: 0, first_seq: 1, bytes: 0 }));
  }

  /** Ends the log of an agent that is deleted in the same transaction; rows and files go in the background. */
  drop(tx: Tx, agent_num: number): void {
    tx.run(tx.sql.insertInto('log_drops').values({ agent_num }));
    tx.run(tx.sql.deleteFrom('heads').where('agent_num', '=', agent_num));
    tx.afterCommit(() => {
      for (const [id, agent] of this.#agents) if (agent.num === agent_num) this.#agents.delete(id);
      for (const [id, tail] of this.#tails) {
        if (tail.agent_num !== agent_num) continue;
        tail.close();
        this.#tails.delete(id);
      }
      this.#keeper.notify();
    });
  }

  /** Appends in the caller's transaction; followers hear of it after the commit. Throws `agent not found`. */
  append(tx: Tx, agent_id: string, bodies: readonly EventBody[]): Appended {
    const agent = tx.get(agentNum(tx, agent_id));
    if (!agent) throw problems.agentNotFound();
    const stored = bodies.map((body) => storedForm(body, () => this.#redactor(tx, body.session_id)));
    const cost = stored.reduce((sum, { data }) => sum + Buffer.byteLength(data) + limits.event_row_bytes, 0);
    const head = tx.get(moveHead(tx, agent.num, bodies.length, cost));
    if (!head) throw problems.agentNotFound();
    const first_seq = head.last_seq - bodies.length + 1;
    const frames: Buffer[] = [];
    const numOf = sessionNums(tx);
    for (const [i, event] of stored.entries()) {
      event.seq = first_seq + i;
      const body = bodies[i]!;
      insertEvent(tx, {
        agent_num: agent.num,
        seq: event.seq,
        ts: event.ts_ms,
        type: event.type,
        session_num: event.session_id === null ? null : numOf(event.session_id),
        stream: event.stream === 0 ? null : event.stream,
        offset: body.type === 'output' ? body.offset : null,
        flags:
          body.type === 'output' ? (event.partial ? 1 : 0) | (typeof event.data === 'string' ? 0 : 2) : null,
        data: Buffer.from(event.data as string),
      });
      frames.push(frame(agent_id, event));
    }
    const appended = { agent_id, agent_num: agent.num, first_seq, last_seq: head.last_seq };
    tx.afterCommit(() => {
      this.#grew(agent.num, cost);
      this.#tails.get(agent_id)?.publish({
        first_seq,
        last_seq: head.last_seq,
        frames: frames.length === 1 ? frames[0]! : Buffer.concat(frames),
      });
    });
    return appended;
  }

  /** Records of stored events, oldest first: after a number, or the last ones before a number. */
  async page(agent_id: string, options: PageOptions): Promise<EventRecord[]> {
    return this.#history.page(await this.#find(agent_id), options);
  }

  /** The raw bytes of a session, one stream or both (null). Throws `session not found`. */
  async output(agent_id: string, session_id: string, stream: StreamName | null): Promise<Output> {
    return openOutput(this.#store, this.#folder, await this.#find(agent_id), session_id, stream);
  }

  /** Events with all words of `text`, newest first. */
  async search(
    agent_id: string,
    query: { text: string; limit: number; before?: number | undefined },
  ): Promise<SearchHit[]> {
    return this.#search.find(await this.#find(agent_id), query);
  }

  /**
   * Ready SSE frames from `position` on, then live, until `signal` aborts or the agent is deleted. Every number comes
   * once and in order; what is missing is told by an `events_truncated` or `reset` frame. Throws `agent not found`
   * before the first frame.
   */
  async *follow(agent_id: string, position: Position, signal: AbortSignal): AsyncGenerator<Buffer> {
    const agent = await this.#find(agent_id);
    const tail = this.#tail(agent);
    const wake = tail.join();
    try {
      tail.head = Math.max(tail.head, await this.#head(agent));
      yield retryFrame;
      let cursor = start(position, tail.head);
      if (cursor > tail.head) {
        cursor = tail.head;
        const text = 'the position is newer than the log; it goes on from its newest event';
        yield this.#error(agent, cursor, { code: 'reset', error: text, head: cursor });
      }
      let heartbeat_at = performance.now() + this.#heartbeat_ms;
      while (!signal.aborted && !tail.closed) {
        if (performance.now() >= heartbeat_at) {
          heartbeat_at = performance.now() + this.#heartbeat_ms;
          yield heartbeatFrame(cursor, this.#clock.now());
        }
        const shared = tail.after(cursor);
        if (shared) {
          yield shared.frames;
          cursor = shared.last_seq;
        } else if (cursor < tail.head) {
          const head = tail.head;
          for await (const part of this.#history.after(agent, cursor, () => tail.head)) {
            if (part.first_seq > cursor + 1 && !tellsGap(part.frames))
              yield this.#truncated(agent, part.first_seq);
            yield part.frames;
            cursor = part.last_seq;
            if (signal.aborted || tail.after(cursor) || performance.now() >= heartbeat_at) break;
          }
          // Nothing is left of what was known when we looked.
          if (cursor < head && !tail.after(cursor) && !signal.aborted && performance.now() < heartbeat_at) {
            cursor = head;
            yield this.#truncated(agent, cursor + 1);
          }
        } else {
          await wake.wait(heartbeat_at - performance.now(), signal);
        }
      }
    } catch (error) {
      // Of a deleted agent nothing can be read any more.
      if (!tail.closed) throw error;
    } finally {
      tail.leave(wake);
      if (tail.followers === 0 && this.#tails.get(agent_id) === tail) this.#tails.delete(agent_id);
    }
  }

  async close(): Promise<void> {
    this.#stopListening();
    for (const tail of this.#tails.values()) tail.close();
    this.#tails.clear();
    const searching = this.#search.close();
    await this.#keeper.close();
    // What is being indexed is cut short: the next start goes on there.
    await this.#worker.close();
    await searching;
  }

  #grew(agent_num: number, bytes: number): void {
    this.#keeper.grew(agent_num, bytes);
    this.#search.touch(agent_num);
  }

  #tail({ id, num }: AgentRef): Tail {
    let tail = this.#tails.get(id);
    if (!tail) {
      tail = new Tail(num);
      this.#tails.set(id, tail);
    }
    return tail;
  }

  #head(agent: AgentRef): Promise<number> {
    return this.#store.read((reader) => {
      const head = reader.get(
        reader.sql.selectFrom('heads').select('last_seq').where('agent_num', '=', agent.num),
      );
      if (!head) throw problems.agentNotFound();
      return head.last_seq;
    });
  }

  async #find(agent_id: string): Promise<AgentRef> {
    const known = this.#agents.get(agent_id);
    if (known) return known;
    const row = await this.#store.read((reader) => reader.get(agentNum(reader, agent_id)));
    if (!row) throw problems.agentNotFound();
    const agent = { num: row.num, id: agent_id };
    if (this.#agents.size >= limits.sessions_cached_max) this.#agents.clear();
    this.#agents.set(agent_id, agent);
    return agent;
  }

  #truncated(agent: AgentRef, first_available: number): Buffer {
    const error = `events before ${first_available} are no longer kept`;
    return this.#error(agent, first_available - 1, { code: 'events_truncated', error, first_available });
  }

  #error(
    agent: AgentRef,
    position: number,
    fields: { code: string; error: string; [detail: string]: unknown },
  ) {
    return connectionError(position, this.#clock.now(), fields, agent.id);
  }
}

const defaultRetention: Retention = {
  days: limits.retention_days,
  bytes_per_agent: limits.retention_bytes_per_agent,
  bytes_total: limits.retention_bytes_total,
};
const defaultSealing: Sealing = {
  from_bytes: limits.seal_from_bytes,
  keep_bytes: limits.seal_keep_bytes,
  idle_ms: limits.seal_idle_ms,
  idle_from_bytes: limits.seal_idle_from_bytes,
};

export function openEventLog(options: EventLogOptions): EventLog {
  return new EventLog(options);
}

function start(position: Position, head: number): number {
  if (position === 'start') return 0;
  return 'after' in position ? position.after : Math.max(0, head - position.tail);
}

/** After a restore the numbers jump, and the first event behind the hole is a stored one that says so. */
function tellsGap(frames: Buffer): boolean {
  const first = frames.subarray(0, frames.indexOf('\n\n') + 2);
  return frameType(first) === 'error' && frameRecord(first).code === 'log_gap';
}

const agentNum = built((sql, id: string) => sql.selectFrom('agents').select('num').where('id', '=', id));
const sessionNum = built((sql, id: string) => sql.selectFrom('sessions').select('num').where('id', '=', id));
const moveHead = built((sql, agent_num: number, events: number, bytes: number) =>
  sql
    .updateTable('heads')
    .set((eb) => ({ last_seq: eb('last_seq', '+', events), bytes: eb('bytes', '+', bytes) }))
    .where('agent_num', '=', agent_num)
    .returning('last_seq'),
);

/** Asks for each session once: events come in runs of one session's. */
function sessionNums(tx: Tx): (session_id: string) => number {
  const known = new Map<string, number>();
  return (session_id) => {
    let num = known.get(session_id);
    if (num === undefined) {
      num = tx.get(sessionNum(tx, session_id))?.num;
      if (num === undefined) throw problems.sessionNotFound();
      known.set(session_id, num);
    }
    return num;
  };
}

function storedForm(body: EventBody, redactor: () => Redactor | null): StoredEvent {
  const base = { seq: 0, ts_ms: body.ts_ms, type: typeNumber(body.type), session_id: body.session_id };
  if (body.type === 'output') {
    const stream = streamNames.indexOf(body.stream satisfies StreamName) + 1;
    const data = isUtf8(body.bytes) ? asBuffer(body.bytes).toString() : body.bytes;
    return { ...base, type: OUTPUT, stream, partial: body.partial, data };
  }
  return { ...base, stream: 0, partial: false, data: fieldsText(body, redactor) };
}

/** The words of an error and the message of an agent are what can tell a secret; the rest is ours. */
function fieldsText(body: Exclude<EventBody, { type: 'output' }>, redactor: () => Redactor | null): string {
  if (body.type === 'acp_event') {
    const payload = redactor()?.json(body.payload) ?? body.payload;
    return `${JSON.stringify(body.fields).slice(0, -1)},"payload":${payload}}`;
  }
  if (body.type === 'status') return JSON.stringify(body.fields);
  const { code, ...told } = body.fields;
  const text = JSON.stringify(told);
  return JSON.stringify({ code, ...JSON.parse(redactor()?.json(text) ?? text) });
}
