/**
 * Log maintenance: seals older rows into segments, applies retention, cleans up after deleted agents and crashes,
 * and returns free pages. It runs one pass at a time, in slices that are short enough not to block the event loop.
 *
 * A segment is valid from the transaction that records it. Blocks without a record are orphans, and are deleted at
 * startup. The rows that a recorded segment replaces are deleted afterwards, or after a crash. Status events are never
 * deleted while their agent exists: their rows stay when the range is sealed, and become visible again when the segment
 * is deleted.
 */
import { sleep, Wake } from '../base/async.ts';
import type { Clock } from '../base/clock.ts';
import { failpoint } from '../base/failpoint.ts';
import type { Logger } from '../base/log.ts';
import type { WorkerCalls } from '../base/worker-calls.ts';
import { retryLevel } from '../core/problem.ts';
import {
  agentsWithEvents,
  agentsWithLogBytes,
  headOf,
  headWithId,
  resizeHead,
} from '../store/event-rows/heads.ts';
import { firstSeqFrom } from '../store/event-rows/read.ts';
import {
  deleteAllEvents,
  deleteEvents,
  newestTs,
  oldestEvents,
  unsealedBefore,
} from '../store/event-rows/retention.ts';
import { isOutage } from '../store/problems.ts';
import type { Reader, Store, Tx } from '../store/store.ts';
import { limits } from './limits.ts';
import {
  deleteDrop,
  deleteSegment,
  deleteSegmentsOf,
  insertSegment,
  listDrops,
  markSwept,
  oldestSegmentOf,
  rangeOf,
  sealedSize,
  segmentNamed,
  segmentsOlderThan,
  unsweptSegments,
} from './queries/segments.ts';
import type { Sealed } from './seal-job.ts';
import type { SegmentName, SegmentStorage } from './segment.ts';
import { shortenLogs } from './total-size.ts';
import type { EventsTasks } from './worker.ts';

export interface Retention {
  days: number;
  bytes_per_agent: number;
  /** Limits the size of all logs together. In files, they never use more than a fifth of the disk. */
  bytes_total: number;
}

export interface Sealing {
  /** Seals an agent's log once it has this many unsealed bytes. */
  from_bytes: number;
  /**
   * The same for an agent that wrote within `busy_ms`: sealing would take CPU time from its stream. The threshold is
   * lower if many agents write at the same time; see `limits.seal_busy_total_bytes`.
   */
  busy_from_bytes: number;
  busy_ms: number;
  /** How many of the newest bytes stay as rows. */
  keep_bytes: number;
  /** Seals the whole log of an agent without events for this long, if it has at least `idle_from_bytes`. */
  idle_ms: number;
  idle_from_bytes: number;
}

export interface LogMaintenanceOptions {
  store: Store;
  segments: SegmentStorage;
  clock: Clock;
  log: Logger;
  worker: WorkerCalls<EventsTasks>;
  retention(): Retention;
  sealing: Sealing;
  /** Called when an agent's log is deleted. */
  onDropped(agent_num: number): void;
}

interface LogState {
  id: string;
  first_seq: number;
  last_seq: number;
  bytes: number;
  sealed_bytes: number;
  sealed_seq: number;
  newest_ts: number;
}

export class LogMaintenance {
  readonly #options: LogMaintenanceOptions;
  readonly #store: Store;
  /** Bytes that were added since the last pass, by agent. */
  readonly #grown = new Map<number, number>();
  /** Agents with enough events to seal that were writing at the last pass. */
  readonly #busy = new Set<number>();
  /** Segments that were sealed, but not yet recorded and swept, by agent. */
  readonly #unfinished = new Map<number, SegmentName>();
  /** Why tasks failed when they were last tried. */
  readonly #failures = new Map<string, string>();
  readonly #wake = new Wake();
  readonly #stop = new AbortController();
  #running: Promise<void> | null = null;
  #passes: Promise<void> = Promise.resolve();
  #slice_rows: number;
  #deleted = false;

  constructor(options: LogMaintenanceOptions) {
    this.#options = options;
    this.#store = options.store;
    this.#slice_rows = options.store.files ? limits.delete_rows_first : limits.delete_rows_per_slice;
  }

  /** Cleans up after a crash, then runs passes until `close`. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Records that a log grew. Starts a pass early if the log may be large enough to be sealed. */
  grew(agent_num: number, bytes: number): void {
    const grown = (this.#grown.get(agent_num) ?? 0) + bytes;
    this.#grown.set(agent_num, grown);
    if (grown >= this.#options.sealing.from_bytes) this.#wake.notify();
  }

  /** Starts a pass now, for example after an agent was deleted. */
  notify(): void {
    this.#wake.notify();
  }

  /** Runs one full pass over every log. If a pass is in progress, waits for it first. */
  pass(): Promise<void> {
    this.#passes = this.#passes.then(async () => {
      // The steps run separately, because if one fails for lack of space, another may free some.
      await this.#attempt('deleted logs', () => this.#dropDeleted());
      await this.#attempt('retention by age', () => this.#retainAge());
      await this.#attempt('retention by total size', () => this.#retainTotal());
      await this.#attempt('large logs', async () => {
        await this.#retainLogs(new Set([...(await this.#largeLogs()), ...this.#unfinished.keys()]));
      });
      await this.#attempt('vacuum', () => this.#vacuum());
    });
    return this.#passes;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.#passes.catch(() => {});
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    let full_at = 0;
    await this.#attempt('recovery', () => this.recover());
    while (!signal.aborted) {
      if (performance.now() >= full_at) {
        full_at = performance.now() + limits.retention_pass_ms;
        await this.pass();
      } else {
        const changed = new Set([...this.#grown.keys(), ...this.#busy]);
        this.#grown.clear();
        this.#passes = this.#passes.then(async () => {
          await this.#attempt('deleted logs', () => this.#dropDeleted());
          await this.#retainLogs(changed);
        });
        await this.#passes;
      }
      await this.#wake.wait(limits.maintenance_interval_ms, signal);
    }
  }

  /**
   * Logs an error, unless the task failed with the same one before. Resolves to false if other tasks would fail too, because
   * the database does not answer or the service stops.
   */
  async #attempt(task: string, work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      this.#failures.delete(task);
      return true;
    } catch (error) {
      if (this.#stop.signal.aborted) return false;
      const message = String(error);
      if (this.#failures.get(task) !== message)
        this.#options.log[retryLevel(error, 'warn')]({ err: error, task }, 'log maintenance failed');
      // Entries of deleted logs stay until the map is full.
      if (this.#failures.size >= limits.maintenance_failures_max) this.#failures.clear();
      this.#failures.set(task, message);
      return !isOutage(error);
    }
  }

  /** Does the work for each log or segment, even if it fails for some of them. */
  async #attemptEach(
    kind: string,
    nums: Iterable<number>,
    work: (num: number) => Promise<unknown>,
  ): Promise<void> {
    for (const num of nums) if (!(await this.#attempt(`${kind} ${num}`, () => work(num)))) return;
  }

  /** Deletes blocks without a record, and finishes deleting the rows of recorded segments. */
  async recover(): Promise<void> {
    await this.#attempt('orphans', () => this.#options.segments.deleteOrphans());
    await this.#attemptEach('segment', await this.#store.read(unsweptSegments), (id) => this.#sweep(id));
  }

  #retainLogs(nums: Iterable<number>): Promise<void> {
    return this.#attemptEach('log of agent', nums, (num) => this.#retainAll(num));
  }

  async #retainAll(num: number): Promise<void> {
    const unfinished = this.#unfinished.get(num);
    if (unfinished) await this.#finish(unfinished);
    while (!this.#stop.signal.aborted) {
      const state = await this.#store.read((reader) => readLogState(reader, num));
      this.#busy.delete(num);
      if (!state) return;
      const excess = state.bytes - this.#options.retention().bytes_per_agent;
      if (excess > 0) {
        if (!(await this.#dropOldest(num, excess))) return;
      } else if (!(await this.#seal(num, state))) return;
    }
  }

  /** Seals one segment if there are enough events. Returns whether it did. */
  async #seal(num: number, state: LogState): Promise<boolean> {
    const { sealing, clock, worker, segments } = this.#options;
    const unsealed = state.bytes - state.sealed_bytes;
    const quiet_ms = clock.now() - state.newest_ts;
    const idle = quiet_ms >= sealing.idle_ms;
    const keep = idle ? 0 : sealing.keep_bytes;
    if (unsealed < (idle ? sealing.idle_from_bytes : sealing.from_bytes)) return false;
    if (quiet_ms < sealing.busy_ms) {
      this.#busy.add(num);
      if (unsealed < Math.min(sealing.busy_from_bytes, limits.seal_busy_total_bytes / this.#busy.size))
        return false;
    }
    const after = Math.max(state.sealed_seq, state.first_seq - 1);
    const first = await this.#store.read((reader) => firstSeqFrom(reader, num, after + 1));
    if (first === undefined) return false;
    // Numbers may be missing before the first row: after a failover, they continue far ahead.
    const rows = state.last_seq - first + 1;
    const up_to = state.last_seq - Math.ceil((rows * keep) / unsealed);
    const sealed = await worker.call('seal', { agent: { num, id: state.id }, after, up_to });
    if (!sealed) return false;
    const name = { agent_num: num, path: sealed.row.path };
    this.#unfinished.set(num, name);
    await segments.store({ ...name, packed: sealed.packed });
    failpoint('seal_written');
    await this.#record(sealed);
    failpoint('seal_recorded');
    return this.#finish(name);
  }

  /** Does nothing if the agent was deleted. */
  #record({ row, row_bytes, packed }: Sealed): Promise<void> {
    return this.#store.write(async (tx) => {
      if (!(await this.#options.segments.isComplete(tx, { ...row, packed }))) return;
      if (await resizeHead(tx, row.agent_num, row.bytes - row_bytes)) await insertSegment(tx, row);
    });
  }

  /** Deletes what a recorded segment replaces, or else its blocks. Returns whether it was recorded. */
  async #finish(name: SegmentName): Promise<boolean> {
    // If the answer to a commit was lost, only the database knows.
    const id = await this.#store.read((reader) => segmentNamed(reader, name));
    if (id === undefined) await this.#options.segments.delete(name);
    else await this.#sweep(id);
    this.#unfinished.delete(name.agent_num);
    return id !== undefined;
  }

  /** Deletes the rows that a segment replaces, except status events. */
  async #sweep(segment_id: number): Promise<void> {
    const segment = await this.#store.read((reader) => rangeOf(reader, segment_id));
    if (!segment) return;
    for (let from = segment.first_seq; from <= segment.last_seq; ) {
      const to = Math.min(segment.last_seq, from + this.#slice_rows - 1);
      await this.#slice(async (tx) => {
        await deleteEvents(tx, segment.agent_num, from, to);
        if (to === segment.last_seq) await markSwept(tx, segment_id);
      });
      from = to + 1;
    }
  }

  /**
   * Runs a transaction that deletes rows. SQLite deletes them on the event loop, so there, this adjusts the number of rows
   * for the next one, so that each takes a few milliseconds.
   */
  async #slice<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
    // The next start deletes the rest.
    this.#stop.signal.throwIfAborted();
    this.#deleted = true;
    let lasted_ms = 0;
    const value = await this.#store.write(async (tx) => {
      const begun_ms = performance.now();
      const result = await fn(tx);
      lasted_ms = performance.now() - begun_ms;
      return result;
    });
    if (this.#store.files === null) return value;
    const wanted = (this.#slice_rows * limits.maintenance_slice_ms) / Math.max(lasted_ms, 0.1);
    this.#slice_rows = Math.round(Math.min(limits.delete_rows_per_slice, Math.max(8, wanted)));
    return value;
  }

  /** Deletes an agent's oldest segment, or some of its oldest rows; false if nothing can be deleted. */
  async #dropOldest(num: number, excess_bytes: number): Promise<boolean> {
    const oldest = await this.#store.read((reader) => oldestSegmentOf(reader, num));
    if (oldest !== undefined) return (await this.#dropSegment(oldest)) > 0;
    return (await this.#dropRows(num, { excess_bytes })) > 0;
  }

  /** Returns by how many bytes its log became shorter; 0 if the segment no longer exists. */
  async #dropSegment(id: number): Promise<number> {
    await this.#sweep(id);
    const deleted = await this.#store.write(async (tx) => {
      const segment = await deleteSegment(tx, id);
      if (segment) await resizeHead(tx, segment.agent_num, -segment.bytes, segment.last_seq + 1);
      return segment;
    });
    if (deleted === undefined) return 0;
    // Its log is shorter even if its file stays.
    await this.#attempt(`file of segment ${id}`, () => this.#options.segments.delete(deleted));
    return deleted.bytes;
  }

  /** Deletes some of an agent's oldest unsealed rows that are too old or exceed the limit. Returns their bytes, or 0. */
  #dropRows(num: number, bound: { before_ms: number } | { excess_bytes: number }): Promise<number> {
    const rows_max = this.#slice_rows;
    return this.#slice(async (tx) => {
      const head = await headOf(tx, num);
      if (!head) return 0;
      const oldest = await oldestEvents(tx, num, head.first_seq, rows_max);
      let bytes = 0;
      let count = 0;
      for (const event of oldest) {
        if ('before_ms' in bound ? event.ts_ms >= bound.before_ms : bytes >= bound.excess_bytes) break;
        bytes += event.bytes;
        count++;
      }
      const last = oldest[count - 1];
      if (!last) return 0;
      await deleteEvents(tx, num, head.first_seq, last.seq);
      await resizeHead(tx, num, -bytes, last.seq + 1);
      return bytes;
    });
  }

  async #retainAge(): Promise<void> {
    const before_ms = this.#options.clock.now() - this.#options.retention().days * 24 * 60 * 60 * 1000;
    const segments = await this.#store.read((reader) => segmentsOlderThan(reader, before_ms));
    await this.#attemptEach('segment', segments, (id) => this.#dropSegment(id));
    const agents = await this.#store.read(agentsWithEvents);
    const per_read = limits.delete_rows_per_slice;
    // Many agents per read: with 10,000 logs, a pass with a read for each takes 1.2 s of CPU instead of 0.04 s.
    for (let at = 0; at < agents.length && !this.#stop.signal.aborted; at += per_read) {
      const nums = agents.slice(at, at + per_read);
      const old = await this.#store.read((reader) => unsealedBefore(reader, nums, before_ms));
      await this.#attemptEach('old events of agent', old, async (num) => {
        while (!this.#stop.signal.aborted && (await this.#dropRows(num, { before_ms })) > 0);
      });
    }
  }

  async #retainTotal(): Promise<void> {
    const bytes_max = Math.min(
      this.#options.retention().bytes_total,
      await this.#options.segments.bytesMax(),
    );
    const dropSegment = async (id: number) => {
      let deleted = 0;
      const work = async () => {
        deleted = await this.#dropSegment(id);
      };
      return (await this.#attempt(`segment ${id}`, work)) ? deleted : null;
    };
    await shortenLogs(bytes_max, {
      store: this.#store,
      clock: this.#options.clock,
      signal: this.#stop.signal,
      dropSegment,
      dropRows: (num, excess_bytes) => this.#dropRows(num, { excess_bytes }),
    });
  }

  async #dropDeleted(): Promise<void> {
    await this.#attemptEach('deleted log', await this.#store.read(listDrops), async (agent_num) => {
      await this.#deleteAllRows(agent_num);
      await this.#store.write((tx) => deleteSegmentsOf(tx, agent_num));
      await this.#options.segments.deleteOf(agent_num);
      this.#unfinished.delete(agent_num);
      this.#options.onDropped(agent_num);
      await this.#store.write((tx) => deleteDrop(tx, agent_num));
    });
  }

  async #deleteAllRows(agent_num: number): Promise<void> {
    for (let from = 0; ; ) {
      const next = await this.#store.read((reader) => firstSeqFrom(reader, agent_num, from));
      if (next === undefined) return;
      const to = next + this.#slice_rows - 1;
      await this.#slice((tx) => deleteAllEvents(tx, agent_num, next, to));
      from = to + 1;
    }
  }

  /** Keeps some free pages for the next events and returns the rest to the file system. */
  async #vacuum(): Promise<void> {
    const { files } = this.#store;
    if (!this.#deleted || files === null) return;
    this.#deleted = false;
    while (!this.#stop.signal.aborted) {
      const left = await files.vacuum(limits.vacuum_pages_per_slice);
      if (left <= limits.free_pages_kept) return;
      await sleep(limits.maintenance_slice_ms, this.#stop.signal);
    }
  }

  /** Agents whose logs are large enough to be sealed or shortened. */
  #largeLogs(): Promise<number[]> {
    const { from_bytes, idle_from_bytes } = this.#options.sealing;
    const { bytes_per_agent } = this.#options.retention();
    const bytes = Math.min(from_bytes, idle_from_bytes, bytes_per_agent);
    return this.#store.read((reader) => agentsWithLogBytes(reader, bytes));
  }
}

async function readLogState(reader: Reader, num: number): Promise<LogState | null> {
  const head = await headWithId(reader, num);
  if (!head) return null;
  const sealed = await sealedSize(reader, num);
  return {
    ...head,
    sealed_bytes: sealed.bytes,
    sealed_seq: sealed.last_seq,
    newest_ts: await newestTs(reader, num),
  };
}
