/** Segments in PostgreSQL: lost connections and commits, and what happens at the same time as sealing. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect } from 'vitest';
import { silentLog } from '../base/log.ts';
import { openPostgres } from '../store/postgres/postgres.ts';
import type { Store } from '../store/store.ts';
import { addAgent, addSession, batch } from '../store/testing.ts';
import { createDatabase, execute, postgresTest as it, type TestDatabase } from '../testing/postgres.ts';
import { PostgresProxy } from '../testing/postgres-proxy.ts';
import { limits } from './limits.ts';
import { type EventLog, openEventLog } from './log.ts';
import { SegmentRows } from './segment-rows.ts';

let folder: string;
let database: TestDatabase;
let proxy: PostgresProxy;
let store: Store;
let events: EventLog;
/** All output so far. */
let written: Buffer;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-segments-'));
  database = await createDatabase();
  proxy = await PostgresProxy.open(database.url);
  store = await openPostgres({ url: proxy.url, log: silentLog, lost_ms_max: 3_000 });
  events = openEventLog({
    store,
    data_dir: folder,
    clock: { now: () => 1_700_000_001_000 },
    log: silentLog,
    sealing: { from_bytes: 1, busy_ms: 0, keep_bytes: 0, idle_from_bytes: 1 },
  });
  await addSession(store, await addAgent(store, 'agt_1'), 'ses_1');
  written = Buffer.alloc(0);
});
afterEach(async () => {
  await events.close();
  await store.close();
  await proxy.close();
  await database.drop();
  await rm(folder, { recursive: true, force: true });
});

async function output(...texts: (string | Uint8Array)[]): Promise<void> {
  const made = batch('agt_1', 'ses_1', written.length, texts);
  await store.ingest(made);
  written = Buffer.concat([written, made.bytes]);
}

/** Output that cannot be compressed, so that it takes several transactions to store it. */
const incompressible = () => output(...Array.from({ length: 24 }, () => randomBytes(64 * 1024)));

async function readBack(): Promise<Buffer> {
  const { read, size_bytes } = await events.output('agt_1', 'ses_1', null);
  const parts: Buffer[] = [];
  for await (const part of read(0, size_bytes)) parts.push(part);
  return Buffer.concat(parts);
}

/** Calls `before` before the write of this number, counted from 1. */
function beforeWrite(number: number, before: () => Promise<void> | void): void {
  const { write } = store;
  let writes = 0;
  store.write = async (fn) => {
    if (++writes === number) {
      store.write = write;
      await before();
    }
    return write.call(store, fn) as never;
  };
}

/** What is stored, as seen without the proxy. */
async function stored() {
  const [found] = await execute(
    database.url,
    `SELECT (SELECT count(*) FROM events) AS rows, (SELECT count(*) FROM segments) AS segments,
      (SELECT count(DISTINCT path) FROM segment_blocks) AS with_blocks`,
  );
  return Object.values(found!).map(Number);
}

async function expectSealed(): Promise<void> {
  expect(await stored()).toEqual([0, 1, 1]);
  expect((await readBack()).equals(written)).toBe(true);
}

it('stores a large segment in several transactions, and reads it back byte for byte', async () => {
  await incompressible();
  let writes = 0;
  const { write } = store;
  store.write = (fn) => {
    writes++;
    return write.call(store, fn) as never;
  };
  await events.runMaintenance();
  store.write = write;
  expect(writes).toBeGreaterThan(written.length / limits.segment_write_bytes);
  await expectSealed();
});

it('removes the stored part of a segment if the rest cannot be stored, and seals again', async () => {
  await incompressible();
  beforeWrite(2, () => {
    throw new Error('no answer');
  });
  await events.runMaintenance();
  expect(await stored()).toEqual([24, 0, 1]);
  expect((await readBack()).equals(written)).toBe(true);
  await events.runMaintenance();
  await expectSealed();
});

it.for([
  ['answer', 1],
  ['request', 0],
] as const)('finds out later whether a segment was recorded if the %s was lost', async ([part, segments]) => {
  await output('one\n', Buffer.from([255]), 'two\n');
  // The first write stores the block.
  beforeWrite(2, () => proxy.loseCommit(part, true));
  await events.runMaintenance();
  expect(await stored()).toEqual([3, segments, 1]);
  proxy.accept();
  expect((await readBack()).equals(written)).toBe(true);
  await events.runMaintenance();
  await expectSealed();
});

it('does not record a segment whose blocks were deleted as orphans', async () => {
  await output('one\n', 'two\n');
  beforeWrite(2, () => new SegmentRows(store).deleteOrphans());
  await events.runMaintenance();
  expect(await stored()).toEqual([2, 0, 0]);
  expect((await readBack()).equals(written)).toBe(true);
  await events.runMaintenance();
  await expectSealed();
});

it('does not delete blocks as orphans once their segment is recorded', async () => {
  await output('one\n');
  await events.runMaintenance();
  const segments = new SegmentRows(store);
  const [name] = await store.read((reader) =>
    reader.all(reader.sql.selectFrom('segments').select(['agent_num', 'path'])),
  );
  await segments.delete(name!);
  await segments.deleteOrphans();
  await expectSealed();
});

it('seals while output arrives', async () => {
  let sealing = true;
  const sealed = (async () => {
    while (sealing) await events.runMaintenance();
  })();
  const segments = async () => (await stored())[1]!;
  let count = 0;
  // Until both have happened several times.
  for (; count < 40 || (await segments()) < 2; count++)
    await output(`${count}\n`.padEnd(200), randomBytes(100));
  sealing = false;
  await sealed;
  expect((await readBack()).equals(written)).toBe(true);
  const { events: page } = await events.page('agt_1', { limit: 2 * count });
  expect(page.map(({ seq }) => seq)).toEqual(Array.from({ length: 2 * count }, (_, i) => i + 1));
  expect((await stored())[2]).toBe(await segments());
});
