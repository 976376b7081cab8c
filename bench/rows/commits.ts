/** Writing to the database, without processes and sockets. Look here first if a row with the whole path misses its goal. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { DatabaseSync } from 'node:sqlite';
import { silentLog } from '../../src/base/log.ts';
import { type EventLog, openEventLog } from '../../src/events/log.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import type { Store } from '../../src/store/store.ts';
import { addAgent, addSession, batch } from '../../src/store/testing.ts';
import { type Figure, MB, type Row } from '../figure.ts';

/** A fixed time for all events, so that retention deletes none of them. */
const clock = { now: () => 1_700_000_000_123 };

export const commits: Row = {
  name: 'commits',
  how:
    'The store alone, in the process of the benchmark, compared with plain inserts of the same rows. There ' +
    'are no goals: if `throughput` misses its goal, this row shows whether the database is the reason.',
  run: async ({ quick }) => [
    await ingestRows(quick ? 40_000 : 200_000),
    ...(await ingestBytes(quick ? 50 * MB : 400 * MB)),
  ],
};

interface Bench {
  store: Store;
  events: EventLog;
  folder: string;
}

async function withPlane<T>(keeping: 'rows' | 'as usual', fn: (bench: Bench) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const store = await openSqlite({ path: join(folder, 'svc.db'), log: silentLog });
  const sealing = keeping === 'rows' ? { from_bytes: 1e12, idle_from_bytes: 1e12 } : {};
  const events = openEventLog({
    store,
    data_dir: folder,
    clock,
    log: silentLog,
    sealing,
    ...(keeping === 'rows' && { retention: () => ({ bytes_per_agent: 1e12 }) }),
  });
  try {
    return await fn({ store, events, folder });
  } finally {
    await events.close();
    await store.close();
    await rm(folder, { recursive: true, force: true });
  }
}

function line(i: number): string {
  return `2026-11-20T12:00:00.${String(i % 1000).padStart(3, '0')}Z INFO worker ${i} did something worth a line of log\n`;
}

/** The limit of the disk: inserts the same rows with one prepared statement, `per` rows in each transaction. */
export function rawRows(folder: string, rows: readonly Buffer[], per: number): number {
  const db = new DatabaseSync(join(folder, 'raw.db'));
  db.exec(
    'PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 8000',
  );
  db.exec('CREATE TABLE raw (id INTEGER PRIMARY KEY, data BLOB NOT NULL)');
  const insert = db.prepare('INSERT INTO raw (data) VALUES (?)');
  const begun_ms = performance.now();
  for (let i = 0; i < rows.length; i += per) {
    db.exec('BEGIN');
    for (const row of rows.slice(i, i + per)) insert.run(row);
    db.exec('COMMIT');
  }
  const seconds = (performance.now() - begun_ms) / 1000;
  db.close();
  return rows.length / seconds;
}

/** Small events of four concurrent agents through `ingest`, in batches of `per`. */
async function ingestRows(total: number, per = 500): Promise<Figure> {
  return withPlane('rows', async ({ store, folder }) => {
    const texts = Array.from({ length: per }, (_, i) => line(i));
    const limit = rawRows(
      folder,
      Array.from({ length: total }, (_, i) => Buffer.from(line(i))),
      per * 4,
    );
    const begun_ms = performance.now();
    await Promise.all([1, 2, 3, 4].map((n) => fill(store, `agt_${n}`, texts, total / 4 / per)));
    const value = total / ((performance.now() - begun_ms) / 1000);
    return { what: 'small events committed', unit: 'rows/s', value, limit, limit_is: 'plain insert' };
  });
}

/** One stream in events of 64 KiB, with sealing and retention, and how long the event loop is blocked meanwhile. */
async function ingestBytes(total_bytes: number): Promise<Figure[]> {
  return withPlane('as usual', async ({ store, events, folder }) => {
    const row = Buffer.alloc(64 * 1024, line(1));
    const count = Math.ceil(total_bytes / row.length);
    const limit =
      (rawRows(
        folder,
        Array.from({ length: 1000 }, () => row),
        16,
      ) *
        row.length) /
      MB;
    events.start();
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    const begun_ms = performance.now();
    await fill(
      store,
      'agt_1',
      Array.from({ length: 16 }, () => row),
      count / 16,
    );
    const value = total_bytes / MB / ((performance.now() - begun_ms) / 1000);
    delay.disable();
    return [
      { what: 'one stream committed, 64 KiB events', unit: 'MB/s', value, limit, limit_is: 'plain insert' },
      { what: 'longest event loop stall', unit: 'ms', value: delay.max / 1e6 },
      { what: 'p99 of event loop stalls', unit: 'ms', value: delay.percentile(99) / 1e6 },
    ];
  });
}

async function fill(
  store: Store,
  id: string,
  texts: readonly (string | Buffer)[],
  batches: number,
): Promise<void> {
  const num = await addAgent(store, id);
  await addSession(store, num, `ses_${id}`);
  const made = batch(id, `ses_${id}`, 0, texts);
  let from = 0;
  for (let i = 0; i < batches; i++) {
    await store.ingest({ ...made, from, to: from + made.bytes.length });
    from += made.bytes.length;
  }
}
