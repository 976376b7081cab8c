/**
 * Keeps the logs small: seals older rows into segment files, deletes what retention no longer allows, clears up after
 * deleted agents and crashes, gives free pages back. One pass at a time, in slices that the event loop does not feel.
 *
 * A segment counts from the transaction that records it; a file without a record is an orphan, removed at start; rows
 * that a recorded segment stands for are deleted afterwards, and again after a crash. Status events are never deleted
 * while their agent lives: their rows stay when the range is sealed, and come to light again when the segment goes.
 */
import { readdir, rm, statfs, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep, Wake } from '../base/async.ts';
import type { Clock } from '../base/clock.ts';
import { failpoint } from '../base/failpoint.ts';
import { makePrivateFolder } from '../base/files.ts';
import { limits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import type { WorkerCalls } from '../base/worker-calls.ts';
import type { Reader, Store, Tx } from '../store/store.ts';
import { STATUS } from './frame.ts';
import type { Sealed } from './seal-job.ts';
import type { EventsTasks } from './worker.ts';

export interface Retention {
  days: number;
  bytes_per_agent: number;
  /** At most this, and at most a fifth of the disk. */
  bytes_total: number;
}

export interface Sealing {
  /** Unsealed bytes of an agent from which on it is sealed. */
  from_bytes: number;
  /** The newest bytes that stay rows. */
  keep_bytes: number;
  /** After this time without events an agent is sealed from `idle_from_bytes` on, whole. */
  idle_ms: number;
  idle_from_bytes: number;
}

export interface KeeperOptions {
  store: Store;
  /** Where segments are. */
  folder: string;
  clock: Clock;
  log: Logger;
  worker: WorkerCalls<EventsTasks>;
  retention(): Retention;
  sealing: Sealing;
  /** An agent's log is gone. */
  onDropped(agent_num: number): void;
}

interface Standing {
  id: string;
  first_seq: number;
  last_seq: number;
  bytes: number;
  sealed_bytes: number;
  sealed_seq: number;
  newest_ts: number;
}

export class Keeper {
  readonly #options: KeeperOptions;
  readonly #store: Store;
  /** Bytes since the last look, by agent. */
  readonly #grown = new Map<number, number>();
  readonly #wake = new Wake();
  readonly #stop = new AbortController();
  #running: Promise<void> | null = null;
  #passes: Promise<void> = Promise.resolve();
  #slice_rows = 64;
  #deleted = false;

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#store = options.store;
  }

  /** Clears up after a crash, then keeps on until `close`. */
  start(): void {
    this.#running ??= this.#run();
  }

  grew(agent_num: number, bytes: number): void {
    const grown = (this.#grown.get(agent_num) ?? 0) + bytes;
    this.#grown.set(agent_num, grown);
    if (grown >= this.#options.sealing.from_bytes) this.#wake.notify();
  }

  /** Looks at once, for example after an agent was deleted. */
  notify(): void {
    this.#wake.notify();
  }

  /** One whole pass over every log, now; waits for one that is under way. */
  pass(): Promise<void> {
    this.#passes = this.#passes.then(async () => {
      // Each by itself: where one fails, for want of space, another may make some.
      await this.#attempt(() => this.#dropDeleted());
      await this.#attempt(() => this.#retainAge());
      await this.#attempt(() => this.#retainTotal());
      await this.#attempt(async () => {
        for (const num of await this.#allAgents()) await this.#attempt(() => this.#keep(num));
      });
      await this.#attempt(() => this.#vacuum());
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
    await this.#attempt(() => this.recover());
    while (!signal.aborted) {
      if (performance.now() >= full_at) {
        full_at = performance.now() + limits.retention_pass_ms;
        await this.#attempt(() => this.pass());
      } else {
        const grown = [...this.#grown.keys()];
        this.#grown.clear();
        this.#passes = this.#passes.then(async () => {
          await this.#attempt(() => this.#dropDeleted());
          for (const num of grown) await this.#attempt(() => this.#keep(num));
        });
        await this.#passes;
      }
      await this.#wake.wait(limits.keeper_pass_ms, signal);
    }
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#options.log.warn({ err: error }, 'logs could not be tidied up');
    }
  }

  /** Removes files that no record names, and finishes deleting rows of recorded segments. */
  async recover(): Promise<void> {
    const { folder } = this.#options;
    await makePrivateFolder(folder);
    const known = await this.#store.read((reader) =>
      reader.all(reader.sql.selectFrom('segments').select(['id', 'path', 'swept'])),
    );
    const paths = new Set(known.map((segment) => segment.path));
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name).slice(folder.length + 1);
      if (!paths.has(path)) await unlink(join(folder, path)).catch(() => {});
    }
    for (const segment of known) if (segment.swept === 0) await this.#sweep(segment.id);
  }

  async #keep(num: number): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const standing = await this.#store.read((reader) => readStanding(reader, num));
      if (!standing) return;
      const excess = standing.bytes - this.#options.retention().bytes_per_agent;
      if (excess > 0) {
        if (!(await this.#dropOldest(num, excess))) return;
      } else if (!(await this.#seal(num, standing))) return;
    }
  }

  /** Seals one segment when there is enough for it; answers whether it did. */
  async #seal(num: number, standing: Standing): Promise<boolean> {
    const { sealing, clock, worker, folder } = this.#options;
    const unsealed = standing.bytes - standing.sealed_bytes;
    const idle = clock.now() - standing.newest_ts >= sealing.idle_ms;
    const keep = idle ? 0 : sealing.keep_bytes;
    if (unsealed < (idle ? sealing.idle_from_bytes : sealing.from_bytes)) return false;
    const after = Math.max(standing.sealed_seq, standing.first_seq - 1);
    const rows = standing.last_seq - after;
    const up_to = standing.last_seq - Math.ceil((rows * keep) / unsealed);
    const sealed = await worker.call('seal', { folder, agent: { num, id: standing.id }, after, up_to });
    if (!sealed) return false;
    failpoint('seal_written');
    const id = await this.#record(num, sealed);
    failpoint('seal_recorded');
    if (id === null) {
      await unlink(join(folder, sealed.path)).catch(() => {});
      return false;
    }
    await this.#sweep(id);
    return true;
  }

  #record(num: number, { row_bytes, ...sealed }: Sealed): Promise<number | null> {
    return this.#store.write((tx) => {
      if (!moveHead(tx, num, sealed.bytes - row_bytes)) return null;
      const row = { agent_num: num, swept: 0, ...sealed };
      return tx.get(tx.sql.insertInto('segments').values(row).returning('id'))!.id;
    });
  }

  /** Deletes the rows that a segment stands for, but for status events. */
  async #sweep(segment_id: number): Promise<void> {
    const segment = await this.#store.read((reader) =>
      reader.get(
        reader.sql
          .selectFrom('segments')
          .select(['agent_num', 'first_seq', 'last_seq'])
          .where('id', '=', segment_id),
      ),
    );
    if (!segment) return;
    for (let from = segment.first_seq; from <= segment.last_seq; ) {
      const to = Math.min(segment.last_seq, from + this.#slice_rows - 1);
      await this.#slice((tx) => {
        deleteRows(tx, segment.agent_num, from, to);
        if (to === segment.last_seq) {
          tx.run(tx.sql.updateTable('segments').set({ swept: 1 }).where('id', '=', segment_id));
        }
      });
      from = to + 1;
    }
  }

  /** A transaction that deletes; the next one takes more or fewer rows, so that it lasts some milliseconds. */
  async #slice<T>(fn: (tx: Tx) => T): Promise<T> {
    // What is left is deleted after the next start.
    this.#stop.signal.throwIfAborted();
    this.#deleted = true;
    let lasted_ms = 0;
    const value = await this.#store.write((tx) => {
      const begun_ms = performance.now();
      const answer = fn(tx);
      lasted_ms = performance.now() - begun_ms;
      return answer;
    });
    const wanted = (this.#slice_rows * limits.keeper_slice_ms) / Math.max(lasted_ms, 0.1);
    this.#slice_rows = Math.round(Math.min(limits.delete_rows_per_slice, Math.max(8, wanted)));
    return value;
  }

  /** Deletes an agent's oldest segment, or some of its oldest rows; false when nothing can go. */
  async #dropOldest(num: number, excess_bytes: number): Promise<boolean> {
    const oldest = await this.#store.read((reader) =>
      reader.get(
        reader.sql
          .selectFrom('segments')
          .select(['id', 'swept'])
          .where('agent_num', '=', num)
          .orderBy('first_seq')
          .limit(1),
      ),
    );
    if (oldest) return this.#dropSegment(oldest.id);
    return (await this.#dropRows(num, { excess_bytes })) > 0;
  }

  async #dropSegment(id: number): Promise<boolean> {
    await this.#sweep(id);
    const path = await this.#store.write((tx) => {
      const segment = tx.get(
        tx.sql
          .deleteFrom('segments')
          .where('id', '=', id)
          .returning(['agent_num', 'last_seq', 'bytes', 'path']),
      );
      if (segment) moveHead(tx, segment.agent_num, -segment.bytes, segment.last_seq + 1);
      return segment?.path;
    });
    if (path === undefined) return false;
    await unlink(join(this.#options.folder, path)).catch(() => {});
    return true;
  }

  /** Deletes some of an agent's oldest unsealed rows, at most what is too old or too much; answers how many. */
  #dropRows(num: number, bound: { before_ms: number } | { excess_bytes: number }): Promise<number> {
    const rows_max = this.#slice_rows;
    return this.#slice((tx) => {
      const head = tx.get(tx.sql.selectFrom('heads').select('first_seq').where('agent_num', '=', num));
      if (!head) return 0;
      const oldest = tx.all(
        tx.sql
          .selectFrom('events')
          .select((eb) => ['seq', 'ts', eb.fn<number>('length', ['data']).as('length')])
          .where('agent_num', '=', num)
          .where('seq', '>=', head.first_seq)
          .where('type', '<>', STATUS)
          .orderBy('seq')
          .limit(rows_max),
      );
      let cost = 0;
      let count = 0;
      for (const row of oldest) {
        if ('before_ms' in bound ? row.ts >= bound.before_ms : cost >= bound.excess_bytes) break;
        cost += row.length + limits.event_row_bytes;
        count++;
      }
      const last = oldest[count - 1];
      if (!last) return 0;
      deleteRows(tx, num, head.first_seq, last.seq);
      moveHead(tx, num, -cost, last.seq + 1);
      return count;
    });
  }

  async #retainAge(): Promise<void> {
    const before_ms = this.#options.clock.now() - this.#options.retention().days * 24 * 60 * 60 * 1000;
    const old = await this.#store.read((reader) =>
      reader.all(
        reader.sql.selectFrom('segments').select('id').where('last_ts', '<', before_ms).orderBy('last_ts'),
      ),
    );
    for (const { id } of old) await this.#dropSegment(id);
    for (const num of await this.#allAgents()) {
      const sealed = await this.#store.read((reader) =>
        reader.get(reader.sql.selectFrom('segments').select('id').where('agent_num', '=', num).limit(1)),
      );
      if (sealed || !(await this.#hasRowsBefore(num, before_ms))) continue;
      while (!this.#stop.signal.aborted && (await this.#dropRows(num, { before_ms })) > 0);
    }
  }

  #hasRowsBefore(num: number, before_ms: number): Promise<boolean> {
    return this.#store.read((reader) => {
      const oldest = reader.get(
        reader.sql
          .selectFrom('events')
          .innerJoin('heads', 'heads.agent_num', 'events.agent_num')
          .select('events.ts')
          .where('events.agent_num', '=', num)
          .whereRef('events.seq', '>=', 'heads.first_seq')
          .where('events.type', '<>', STATUS)
          .orderBy('events.seq')
          .limit(1),
      );
      return oldest !== undefined && oldest.ts < before_ms;
    });
  }

  /** Oldest segments first, over all agents; then rows of the largest log. */
  async #retainTotal(): Promise<void> {
    const disk = await statfs(this.#options.folder).catch(() => null);
    const share = disk ? disk.blocks * disk.bsize * limits.retention_disk_share : Number.POSITIVE_INFINITY;
    const max = Math.min(this.#options.retention().bytes_total, share);
    while (!this.#stop.signal.aborted) {
      const { bytes, oldest, largest } = await this.#store.read((reader) => ({
        bytes: Number(
          reader.get(reader.sql.selectFrom('heads').select((eb) => eb.fn.sum('bytes').as('bytes')))?.bytes ??
            0,
        ),
        oldest: reader.get(reader.sql.selectFrom('segments').select('id').orderBy('last_ts').limit(1)),
        largest: reader.get(
          reader.sql.selectFrom('heads').select('agent_num').orderBy('bytes', 'desc').limit(1),
        ),
      }));
      if (bytes <= max) return;
      if (oldest) await this.#dropSegment(oldest.id);
      else if (!largest || (await this.#dropRows(largest.agent_num, { excess_bytes: bytes - max })) === 0)
        return;
    }
  }

  async #dropDeleted(): Promise<void> {
    const dropped = await this.#store.read((reader) =>
      reader.all(reader.sql.selectFrom('log_drops').select('agent_num')),
    );
    for (const { agent_num } of dropped) {
      let from = 0;
      while (true) {
        const next = await this.#store.read((reader) =>
          reader.get(
            reader.sql
              .selectFrom('events')
              .select('seq')
              .where('agent_num', '=', agent_num)
              .where('seq', '>=', from)
              .orderBy('seq')
              .limit(1),
          ),
        );
        if (!next) break;
        const to = next.seq + this.#slice_rows - 1;
        await this.#slice((tx) =>
          tx.run(
            tx.sql
              .deleteFrom('events')
              .where('agent_num', '=', agent_num)
              .where('seq', '>=', next.seq)
              .where('seq', '<=', to),
          ),
        );
        from = to + 1;
      }
      await this.#store.write((tx) =>
        tx.run(tx.sql.deleteFrom('segments').where('agent_num', '=', agent_num)),
      );
      await rm(join(this.#options.folder, String(agent_num)), { recursive: true, force: true });
      this.#options.onDropped(agent_num);
      await this.#store.write((tx) =>
        tx.run(tx.sql.deleteFrom('log_drops').where('agent_num', '=', agent_num)),
      );
    }
  }

  /** Some free pages stay for the next events; the rest goes back to the file system. */
  async #vacuum(): Promise<void> {
    if (!this.#deleted) return;
    this.#deleted = false;
    while (!this.#stop.signal.aborted) {
      const left = await this.#store.vacuum(limits.vacuum_pages_per_slice);
      if (left <= limits.free_pages_kept) return;
      await sleep(limits.keeper_slice_ms, this.#stop.signal);
    }
  }

  async #allAgents(): Promise<number[]> {
    const heads = await this.#store.read((reader) =>
      reader.all(reader.sql.selectFrom('heads').select('agent_num').where('last_seq', '>', 0)),
    );
    return heads.map((head) => head.agent_num);
  }
}

function readStanding(reader: Reader, num: number): Standing | null {
  const head = reader.get(
    reader.sql
      .selectFrom('heads')
      .innerJoin('agents', 'agents.num', 'heads.agent_num')
      .select(['agents.id', 'heads.first_seq', 'heads.last_seq', 'heads.bytes'])
      .where('heads.agent_num', '=', num),
  );
  if (!head) return null;
  const sealed = reader.get(
    reader.sql
      .selectFrom('segments')
      .select((eb) => [eb.fn.sum<number | null>('bytes').as('bytes'), eb.fn.max('last_seq').as('last_seq')])
      .where('agent_num', '=', num),
  );
  const newest = reader.get(
    reader.sql.selectFrom('events').select('ts').where('agent_num', '=', num).orderBy('seq', 'desc').limit(1),
  );
  return {
    ...head,
    sealed_bytes: sealed?.bytes ?? 0,
    sealed_seq: sealed?.last_seq ?? 0,
    newest_ts: newest?.ts ?? 0,
  };
}

function deleteRows(tx: Tx, num: number, from: number, to: number): void {
  tx.run(
    tx.sql
      .deleteFrom('events')
      .where('agent_num', '=', num)
      .where('seq', '>=', from)
      .where('seq', '<=', to)
      .where('type', '<>', STATUS),
  );
}

/** False when the agent is gone. */
function moveHead(tx: Tx, num: number, bytes: number, first_seq?: number): boolean {
  const { changes } = tx.run(
    tx.sql
      .updateTable('heads')
      .set((eb) => ({ bytes: eb('bytes', '+', bytes), ...(first_seq !== undefined && { first_seq }) }))
      .where('agent_num', '=', num),
  );
  return changes > 0;
}
