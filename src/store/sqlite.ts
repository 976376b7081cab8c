/**
 * The SQLite implementation of `Store`. One connection writes in groups: all waiting writes run in one transaction, one after
 * the other, each `write` in its own savepoint. SQLite's COMMIT does not sync (`synchronous = NORMAL`); another thread syncs
 * the group, so the event loop never waits for a disk. Until the sync is done, no write is answered, nothing else is committed,
 * and readers see the state before the group. So everything visible or acknowledged is on the disk, as with `FULL`. Checkpoints
 * and checks run in a worker. This module creates no ids and reads no wall clock.
 */
import { constants } from 'node:fs';
import { open, unlink } from 'node:fs/promises';
import { backup, DatabaseSync } from 'node:sqlite';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { failpoint } from '../base/failpoint.ts';
import type { Logger } from '../base/log.ts';
import { entryPoint } from '../base/program-files.ts';
import { WorkerCalls } from '../base/worker-calls.ts';
import type { Problem } from '../core/problem.ts';
import { BODIES_RUN_TWICE, callerOf, checkNotInBody } from './body.ts';
import { Checkpoints } from './checkpoints.ts';
import { type Connection, openReadOnly, openWriter } from './connection.ts';
import { BatchWriter } from './event-rows/write.ts';
import {
  checkWal,
  databaseBytes,
  isBlocked,
  isDamage,
  quickCheck,
  rememberBoot,
  storageProblem,
} from './integrity.ts';
import { limits } from './limits.ts';
import { migrate } from './migrate.ts';
import { storageFailed } from './problems.ts';
import { all_settled, type SettledNumbers } from './settled-numbers.ts';
import { SnapshotReader } from './snapshot-reader.ts';
import {
  type Appended,
  type DatabaseFiles,
  type IngestBatch,
  type Reader,
  type Store,
  StoreDamaged,
  type StoreReader,
  type StoreSource,
  type Tx,
} from './store.ts';
import { WriteTransaction } from './transaction.ts';
import { LocalWakes } from './wakes.ts';
import { WalSync } from './wal-sync.ts';
import type { StoreTasks } from './worker.ts';

export interface SqliteOptions {
  path: string;
  log: Logger;
}

/** A store with files. */
export type FileStore = Store & { files: DatabaseFiles };

/** Opens or creates the database. Throws `StoreDamaged`, `DatabaseTooNew`, or a `Problem` if there is no space. */
export async function openSqlite(options: SqliteOptions): Promise<FileStore> {
  const { path, log } = options;
  const unclean = checkWal(path);
  let writer: Connection | undefined;
  try {
    writer = openWriter(path);
    const small = databaseBytes(path) <= limits.quick_check_bytes_max;
    if (unclean && small) {
      const found = quickCheck(writer.db);
      if (found.length > 0) throw new StoreDamaged(path, found.join(', '));
    }
    const steps = migrate(writer.db, path);
    if (steps > 0) log.info({ path, steps }, 'database schema is up to date');
    rememberBoot(path);
    return new SqliteStore(options, writer, new WalSync(path), !(unclean && small));
  } catch (error) {
    writer?.close();
    if (isDamage(error)) throw new StoreDamaged(path, (error as Error).message);
    throw storageProblem(error) ?? error;
  }
}

/** Opens a reader for another thread. Each `read` has its own snapshot, unless another one is running. */
export function openSqliteReader(path: string): StoreReader {
  const reader = new SnapshotReader(openReadOnly(path));
  const read = async <T>(fn: (reader: Reader) => Promise<T> | T): Promise<T> => {
    try {
      return await reader.read(fn);
    } finally {
      await reader.release();
    }
  };
  return { source: { kind: 'sqlite', path }, read, close: async () => reader.close() };
}

interface QueuedWrite {
  /** May be called again, after a rollback. */
  run(item: QueuedWrite): Promise<unknown> | unknown;
  /** The transaction of the last run. */
  tx: WriteTransaction | null;
  /** Runs in a savepoint, so that an error rolls back this write and not the whole group. */
  in_savepoint: boolean;
  bytes: number;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

type Outcome = { item: QueuedWrite; value: unknown } | { item: QueuedWrite; error: unknown };

/** A committed group with the answers to its callers. */
interface Group {
  outcomes: Outcome[];
}

class SqliteStore implements Store, DatabaseFiles {
  readonly server = null;
  readonly files: DatabaseFiles = this;
  readonly wakes: LocalWakes;
  readonly source: StoreSource;
  readonly path: string;
  readonly unchecked: boolean;
  readonly #log: Logger;
  readonly #writer: Connection;
  readonly #reader: SnapshotReader;
  readonly #batches = new BatchWriter();
  readonly #worker: WorkerCalls<StoreTasks>;
  readonly #listeners = new Set<(batch: IngestBatch, appended: Appended) => void>();
  readonly #wal: WalSync;
  readonly #checkpoints: Checkpoints;
  /** A separate worker: a check may take minutes, while the writer may have to wait for a checkpoint. */
  readonly #checker: WorkerCalls<StoreTasks>;
  #queue: QueuedWrite[] = [];
  #queued_bytes = 0;
  /** True from just before a group runs until it is answered. */
  #busy = false;
  #timer: NodeJS.Timeout | undefined;
  /** Until this time (`performance.now()`), queued writes wait for others to share a commit with. */
  #gather_until_ms = 0;
  /** The moving average of the number of writes in a group. */
  #group_writes = 1;
  /**
   * Set permanently when a sync failed: the kernel may have dropped data, which would silently invalidate later
   * commits.
   */
  #failed: Problem | null = null;
  #closing: Promise<void> | null = null;
  #idle: (() => void) | null = null;

  constructor(options: SqliteOptions, writer: Connection, wal: WalSync, unchecked: boolean) {
    this.path = options.path;
    this.source = { kind: 'sqlite', path: options.path };
    this.unchecked = unchecked;
    this.#log = options.log;
    this.wakes = new LocalWakes(options.log);
    this.#writer = writer;
    this.#reader = new SnapshotReader(openReadOnly(options.path));
    this.#wal = wal;
    // Starts on demand, because it is rarely needed and takes a tenth of the service's memory.
    const data = { path: options.path };
    this.#worker = new WorkerCalls(entryPoint('store/worker'), data, limits.store_worker_idle_ms);
    this.#checkpoints = new Checkpoints(this.#worker, options.log);
    this.#checker = new WorkerCalls(entryPoint('store/worker'), { path: options.path });
  }

  async read<T>(fn: (reader: Reader) => Promise<T> | T): Promise<T> {
    checkNotInBody(this.#writer.db, this.#reader.connection.db);
    return this.#read(() => this.#reader.read(fn));
  }

  cachedRead<T>(key: string, fn: (reader: Reader) => Promise<T> | T): Promise<T> | T {
    checkNotInBody(this.#writer.db, this.#reader.connection.db);
    return this.#reader.cached<T>(key) ?? this.#read(() => this.#reader.cachedRead(key, fn));
  }

  async #read<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      throw this.#toProblem(error);
    }
  }

  write<T>(fn: (tx: Tx) => Promise<T> | T): Promise<T> {
    const caller = callerOf(this.write);
    const run = (item: QueuedWrite) => {
      item.tx = new WriteTransaction(this.#writer);
      return item.tx.execute(fn, caller);
    };
    return this.#enqueue({ run, in_savepoint: true, bytes: 0 }) as Promise<T>;
  }

  async settledNumbers(): Promise<SettledNumbers> {
    return all_settled;
  }

  ingest(batch: IngestBatch): Promise<Appended> {
    const body = async (tx: WriteTransaction) => {
      const appended = await this.#batches.write(tx, batch);
      tx.afterCommit(() => {
        for (const listener of this.#listeners) listener(batch, appended);
      });
      return appended;
    };
    const run = (item: QueuedWrite) => {
      item.tx = new WriteTransaction(this.#writer);
      return item.tx.execute(body);
    };
    // Runs without a savepoint, because it rarely fails. If it does, the group is rolled back, and each item is retried
    // alone.
    return this.#enqueue({ run, in_savepoint: false, bytes: batch.bytes.length }) as Promise<Appended>;
  }

  onIngested(listener: (batch: IngestBatch, appended: Appended) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  vacuum(pages_max: number): Promise<number> {
    const run = () => {
      this.#writer.db.exec(`PRAGMA incremental_vacuum(${Math.trunc(pages_max)})`);
      return Number(this.#writer.db.prepare('PRAGMA freelist_count').get()!.freelist_count);
    };
    return this.#enqueue({ run, in_savepoint: true, bytes: 0 }) as Promise<number>;
  }

  async backup(path: string): Promise<void> {
    const file = await open(path, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, 0o600);
    await file.close();
    const source = new DatabaseSync(this.path, { readOnly: true, timeout: limits.database_busy_ms });
    try {
      // Keep a snapshot open: otherwise the copy restarts at every commit.
      source.exec('BEGIN; SELECT count(*) FROM sqlite_schema');
      await backup(source, path, { rate: limits.backup_pages_per_step });
    } catch (error) {
      await unlink(path).catch(() => {});
      throw this.#toProblem(error);
    } finally {
      source.close();
    }
  }

  check(): Promise<string[]> {
    return this.#checker.call('check', null);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#busy || this.#queue.length > 0) await new Promise<void>((resolve) => (this.#idle = resolve));
    await this.#checkpoints.close();
    await this.#worker.close();
    await this.#checker.close();
    this.#reader.close();
    // Close this last: the last connection to close deletes the write-ahead log, and its absence marks a clean stop.
    this.#wal.close();
    this.#writer.close();
  }

  async #enqueue(work: Pick<QueuedWrite, 'run' | 'in_savepoint' | 'bytes'>): Promise<unknown> {
    checkNotInBody(this.#writer.db, this.#reader.connection.db);
    if (this.#closing !== null) throw new Error('the store is closed');
    return new Promise((resolve, reject) => {
      this.#queue.push({ ...work, tx: null, resolve, reject });
      this.#queued_bytes += work.bytes;
      this.#schedule();
    });
  }

  /**
   * Runs a group at once if the store is idle, or if enough is queued. It waits for more writes only right after a
   * group, and only if groups usually have several. A client that sends one write at a time would gain nothing from
   * waiting: a chain of steps takes 3.0 ms per step instead of 7.4.
   */
  #schedule(): void {
    if (this.#busy || this.#queue.length === 0) return;
    const wait_ms = this.#gather_until_ms - performance.now();
    if (wait_ms <= 0 || this.#queued_bytes >= limits.group_now_bytes || this.#closing !== null) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
      this.#busy = true;
      setImmediate(() => void this.#runGroups());
    } else {
      this.#timer ??= setTimeout(() => {
        this.#timer = undefined;
        this.#gather_until_ms = 0;
        this.#schedule();
      }, wait_ms);
    }
  }

  #next(): QueuedWrite | undefined {
    const item = this.#queue.shift();
    this.#queued_bytes -= item?.bytes ?? 0;
    return item;
  }

  /**
   * Commits a group, syncs it on another thread, and only then makes it visible and answers it. If enough writes are
   * waiting for the next group, the answers are sent during that group's sync: handling them takes about as long as the
   * disk.
   */
  async #runGroups(): Promise<void> {
    let unanswered_group: Group | null = null;
    do {
      await this.#reader.pin();
      const group = await this.#commitGroup();
      const syncing = this.#sync(group);
      if (unanswered_group !== null) {
        // Let timers and I/O run first, because committing and answering without a pause would block the event loop for too
        // long. The first of these turns comes before them.
        await yieldToEventLoop();
        await yieldToEventLoop();
        this.#answer(unanswered_group);
      }
      await syncing;
      await this.#reader.release();
      unanswered_group = group;
      const copied = this.#checkpoints.afterGroup();
      if (copied !== null) {
        this.#answer(unanswered_group);
        unanswered_group = null;
        await copied;
      }
    } while (this.#queued_bytes >= limits.group_now_bytes);
    if (unanswered_group !== null) this.#answer(unanswered_group);
    this.#busy = false;
    if (this.#queue.length === 0) this.#idle?.();
    else this.#schedule();
  }

  async #commitGroup(): Promise<Group> {
    const outcomes = this.#failed ? this.#rejectAll(this.#failed) : await this.#commit(() => this.#next());
    this.#group_writes += (outcomes.length - this.#group_writes) / 8;
    this.#gather_until_ms = this.#group_writes > 1.5 ? performance.now() + limits.group_commit_ms : 0;
    return { outcomes };
  }

  async #sync(group: Group): Promise<void> {
    if (!group.outcomes.some((outcome) => 'value' in outcome)) return;
    try {
      await this.#wal.sync();
    } catch (error) {
      this.#failed = storageFailed();
      this.#log.fatal({ err: error }, 'a database sync failed; all writes are rejected until a restart');
      group.outcomes = group.outcomes.map(({ item }) => ({ item, error: this.#failed }));
    }
  }

  #answer({ outcomes }: Group): void {
    for (const outcome of outcomes) {
      if ('value' in outcome) outcome.item.tx?.after_commit?.run(this.wakes, this.#log);
    }
    for (const outcome of outcomes) {
      if ('error' in outcome) outcome.item.reject(outcome.error);
      else outcome.item.resolve(outcome.value);
    }
  }

  #rejectAll(problem: Problem): Outcome[] {
    const outcomes = this.#queue.map((item) => ({ item, error: problem }));
    this.#queue = [];
    this.#queued_bytes = 0;
    return outcomes;
  }

  /** Commits the next items as one group. If that fails, commits each of them alone, so that small ones succeed. */
  async #commit(next: () => QueuedWrite | undefined): Promise<Outcome[]> {
    const group: QueuedWrite[] = [];
    try {
      return await this.#transaction(next, group);
    } catch (error) {
      if (group.length === 1) return [{ item: group[0]!, error: this.#toProblem(error) }];
      this.#log.warn(
        { err: error, items: group.length },
        'cannot commit a group; trying its items one by one',
      );
      const outcomes: Outcome[] = [];
      for (const item of group) {
        const alone = [item];
        outcomes.push(...(await this.#commit(() => alone.shift())));
      }
      return outcomes;
    }
  }

  async #transaction(next: () => QueuedWrite | undefined, group: QueuedWrite[]): Promise<Outcome[]> {
    const { db } = this.#writer;
    const outcomes: Outcome[] = [];
    const end_ms = performance.now() + limits.group_run_ms_max;
    let bytes = 0;
    try {
      for (let item = next(); item; item = next()) {
        group.push(item);
        if (group.length === 1) this.#writer.statement('BEGIN IMMEDIATE').run();
        outcomes.push(
          item.in_savepoint ? await this.#savepoint(item) : { item, value: await item.run(item) },
        );
        bytes += item.bytes;
        if (bytes >= limits.group_bytes_max || performance.now() >= end_ms) break;
      }
      failpoint('commit');
      this.#writer.statement('COMMIT').run();
      failpoint('committed');
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK');
      this.#batches.forget();
      throw error;
    }
    this.#checkpoints.grew(bytes + outcomes.length * limits.database_page_bytes);
    return outcomes;
  }

  /** Runs one item. If it throws, only this item is rolled back, unless SQLite rolled back the whole transaction. */
  async #savepoint(item: QueuedWrite): Promise<Outcome> {
    this.#writer.statement('SAVEPOINT item').run();
    try {
      if (BODIES_RUN_TWICE) {
        await item.run(item);
        this.#writer.statement('ROLLBACK TO item').run();
      }
      const value = await item.run(item);
      this.#writer.statement('RELEASE item').run();
      return { item, value };
    } catch (error) {
      if (!this.#writer.db.isTransaction) throw error;
      this.#writer.statement('ROLLBACK TO item').run();
      this.#writer.statement('RELEASE item').run();
      this.#batches.forget();
      return { item, error: this.#toProblem(error) };
    }
  }

  #toProblem(error: unknown): unknown {
    const problem = storageProblem(error) ?? (isBlocked(error) ? storageFailed() : null);
    if (!problem) return error;
    const hint = isDamage(error) ? 'restore a backup with svc restore FILE' : undefined;
    this.#log.error({ err: error, path: this.path, hint }, problem.message);
    return problem;
  }
}
