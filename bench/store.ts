/**
 * Bytes into the database and events out of it, without processes and sockets: committed rows, replay before and after
 * sealing, fan-out inside the process. Each beside its limit in the same run.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { DatabaseSync } from 'node:sqlite';
import { silentLog } from '../src/base/log.ts';
import { type EventLog, openEventLog } from '../src/events/log.ts';
import { openSqlite } from '../src/store/sqlite.ts';
import type { Store } from '../src/store/store.ts';
import { addAgent, addSession, batch } from '../src/store/testing.ts';
import type { Figure } from './figure.ts';

const MB = 1_000_000;
/** The time of the events: nothing here is older than retention allows. */
const clock = { now: () => 1_700_000_000_123 };

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

/** The disk's own limit: the same rows by one prepared statement, a transaction per `per` rows. */
function rawRows(folder: string, rows: readonly Buffer[], per: number): number {
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

/** Small events through `ingest`, four agents at once, in batches of `per`. */
export async function ingestRows(total = 200_000, per = 500): Promise<Figure> {
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
    return { what: 'small events committed', unit: 'rows/s', value, limit, limit_is: 'bare insert' };
  });
}

/** One stream in 64 KiB events, and how long the loop stood still meanwhile, sealing and retention included. */
export async function ingestBytes(total_bytes = 400 * MB): Promise<Figure[]> {
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
      { what: 'one stream committed, 64 KiB events', unit: 'MB/s', value, limit, limit_is: 'bare insert' },
      { what: 'longest loop stall meanwhile', unit: 'ms', value: delay.max / 1e6 },
      { what: 'p99 of loop stalls meanwhile', unit: 'ms', value: delay.percentile(99) / 1e6 },
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

/** A whole log of small events as frames, from rows and from segments. */
export async function replay(total = 100_000): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const sealed of [false, true]) {
    await withPlane('rows', async ({ store, events, folder }) => {
      await fill(
        store,
        'agt_1',
        Array.from({ length: 1000 }, (_, i) => line(i)),
        total / 1000,
      );
      let log = events;
      if (sealed) {
        log = openEventLog({
          store,
          data_dir: folder,
          clock,
          log: silentLog,
          sealing: { from_bytes: 1, keep_bytes: 0, idle_from_bytes: 1 },
        });
        await log.keep();
      }
      const values: number[] = [];
      for (let run = 0; run < 5; run++) values.push(await readAll(log, total));
      const value = values.sort((a, b) => a - b)[2]!;
      figures.push({ what: `replay of small events, ${sealed ? 'sealed' : 'rows'}`, unit: 'MB/s', value });
      if (sealed) await log.close();
    });
  }
  return figures;
}

async function readAll(log: EventLog, total: number): Promise<number> {
  const stop = new AbortController();
  const last = `id: ${total}\n`;
  let bytes = 0;
  const begun_ms = performance.now();
  for await (const part of log.follow('agt_1', 'start', stop.signal)) {
    bytes += part.length;
    if (part.subarray(-1024).includes(last)) stop.abort();
  }
  return bytes / MB / ((performance.now() - begun_ms) / 1000);
}

/** One agent's live events to many followers in the process: no sockets, the cost of the log alone. */
export async function fanOut(followers = 1_000, total = 20_000): Promise<Figure> {
  return withPlane('rows', async ({ store, events }) => {
    const num = await addAgent(store, 'agt_1');
    await addSession(store, num, 'ses_1');
    const stop = new AbortController();
    let done = 0;
    let ready = 0;
    const last = `id: ${total}\n`;
    const following = Array.from({ length: followers }, async () => {
      for await (const part of events.follow('agt_1', { after: 0 }, stop.signal)) {
        if (part.length < 20) ready++;
        if (part.subarray(-1024).includes(last) && ++done === followers) stop.abort();
      }
    });
    while (ready < followers) await new Promise((resolve) => setImmediate(resolve));
    const made = batch(
      'agt_1',
      'ses_1',
      0,
      Array.from({ length: 20 }, (_, i) => line(i)),
    );
    const begun_ms = performance.now();
    for (let i = 0, from = 0; i < total / 20; i++, from += made.bytes.length) {
      await store.ingest({ ...made, from, to: from + made.bytes.length });
    }
    await Promise.all(following);
    const value = (followers * total) / ((performance.now() - begun_ms) / 1000);
    return { what: `fan-out to ${followers} followers, no sockets`, unit: 'deliveries/s', value };
  });
}
