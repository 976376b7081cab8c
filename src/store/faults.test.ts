import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, open, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../base/log.ts';
import { limits } from './limits.ts';
import { migrate, migrations, schemaVersion } from './migrate.ts';
import { openSqlite } from './sqlite.ts';
import { StaleBatch, type Store, StoreDamaged } from './store.ts';
import { addAgent, addSession, batch } from './testing.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-faults-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const at = (name: string) => join(folder, name);
const openAt = (path: string) => openSqlite({ path, log: silentLog });
const setMeta = (store: Store, key: string, value = '') =>
  store.write((tx) => tx.run(tx.sql.insertInto('meta').values({ key, value })));
const metaKeys = (store: Store) =>
  store.read(async (r) =>
    (await r.all(r.sql.selectFrom('meta').select('key').orderBy('key'))).map((row) => row.key),
  );

/** Copies the files of a database in use, as a kill at this moment would leave them. */
async function afterKill(writes: number): Promise<string> {
  const store = await openAt(at('live.db'));
  for (let i = 0; i < writes; i++) await setMeta(store, `key ${i}`, 'x'.repeat(3_000));
  for (const suffix of ['', '-wal', '-shm', '-boot'])
    await copyFile(at(`live.db${suffix}`), at(`dead.db${suffix}`));
  await store.close();
  return at('dead.db');
}

async function garble(path: string, position: number, length: number): Promise<void> {
  const file = await open(path, 'r+');
  await file.write(Buffer.alloc(length, 0xa5), 0, length, position);
  await file.close();
}

test('opens with every acknowledged write after a kill', async () => {
  const store = await openAt(await afterKill(20));
  expect(await metaKeys(store)).toHaveLength(20);
  await store.close();
});

test('reports a corrupted tail of the write-ahead log and suggests a restore', async () => {
  const path = await afterKill(20);
  const { length } = await readFile(`${path}-wal`);
  await garble(`${path}-wal`, length - 5_000, 5_000);
  await expect(openAt(path)).rejects.toThrow(/damaged: .*committed frames.*svc restore FILE/);
  await expect(openAt(path)).rejects.toBeInstanceOf(StoreDamaged);
});

test('reports a write-ahead log that lacks its end or its beginning', async () => {
  const path = await afterKill(20);
  const { length } = await readFile(`${path}-wal`);
  await truncate(`${path}-wal`, length - 10);
  await expect(openAt(path)).rejects.toBeInstanceOf(StoreDamaged);
  await garble(`${path}-wal`, 0, 32);
  await expect(openAt(path)).rejects.toBeInstanceOf(StoreDamaged);
});

test('a torn, unacknowledged write is not an error', async () => {
  const path = await afterKill(20);
  const wal = await readFile(`${path}-wal`);
  // This is the beginning of another frame, as if the process had died in the middle of a write.
  await writeFile(`${path}-wal`, Buffer.concat([wal, wal.subarray(32, 4_000)]));
  const store = await openAt(path);
  expect(await metaKeys(store)).toHaveLength(20);
  await store.close();
});

test('detects a corrupted page at startup after a kill, and in a check after a clean stop', async () => {
  const path = await afterKill(200);
  const store = await openAt(path);
  expect(store.files.unchecked).toBe(false);
  await store.close();
  const { length } = await readFile(path);
  await garble(path, Math.floor(length / 2 / 8192) * 8192, 8192);
  const damaged = await openAt(path);
  expect(damaged.files.unchecked).toBe(true);
  expect((await damaged.files.check()).length).toBeGreaterThan(0);
  await damaged.close();
  await writeFile(`${path}-wal`, 'a log of which nothing can be read');
  await expect(openAt(path)).rejects.toThrow(/is damaged: .*svc restore FILE/);
});

test('reports a file that is not a database and suggests a restore', async () => {
  await writeFile(at('x.db'), 'x'.repeat(10_000));
  await expect(openAt(at('x.db'))).rejects.toThrow(/is damaged: .*svc restore FILE/);
});

test('rejects a database of a newer version and names both versions', async () => {
  const store = await openAt(at('a.db'));
  await store.close();
  const { DatabaseSync } = await import('node:sqlite');
  const db = new DatabaseSync(at('a.db'));
  db.exec(`PRAGMA user_version = ${migrations.length + 7}`);
  db.close();
  await expect(openAt(at('a.db'))).rejects.toThrow(
    new RegExp(`version ${migrations.length + 7}, .* up to ${migrations.length}`),
  );
});

test('a failed migration leaves the database as the previous version can use it', async () => {
  const { DatabaseSync } = await import('node:sqlite');
  const db = new DatabaseSync(at('m.db'));
  const [first, second, third] = ['CREATE TABLE a (x)', 'CREATE TABLE b (x)', 'CREATE TABLE c (x)'];
  expect(migrate(db, 'm.db', [first!])).toBe(1);
  expect(() => migrate(db, 'm.db', [first!, second!, `${third}; INSERT INTO nothing VALUES (1)`])).toThrow(
    'nothing',
  );
  expect(schemaVersion(db)).toBe(1);
  expect(migrate(db, 'm.db', [first!, second!, third!])).toBe(2);
  expect(schemaVersion(db)).toBe(3);
  db.close();
});

test('kill -9 while writing: keeps everything acknowledged, and bytes match events', async () => {
  const first = await openAt(at('a.db'));
  const num = await addAgent(first, 'agt_1');
  await addSession(first, num, 'ses_1');
  await first.close();
  const keys = new Set<string>();
  let last_seq = 0;
  let offset = 0;
  for (let run = 0; run < 6; run++) {
    for (const line of await runAndKill(`${run}`, 100 + run * 35)) {
      const [kind, a, b] = line.split(' ') as [string, string, string];
      if (kind === 'write') keys.add(a);
      else {
        last_seq = Number(a);
        offset = Number(b);
      }
    }
    const store = await openAt(at('a.db'));
    const found = new Set(await metaKeys(store));
    expect([...keys].filter((key) => !found.has(key))).toEqual([]);
    await store.read(async (r) => {
      const head = (await r.get(r.sql.selectFrom('heads').select(['last_seq', 'bytes'])))!;
      const spool = await r.get(r.sql.selectFrom('spools').select('offset').where('stream', '=', 1));
      const rows = await r.all(r.sql.selectFrom('events').select(['seq', 'offset', 'data']).orderBy('seq'));
      expect(head.last_seq).toBeGreaterThanOrEqual(last_seq);
      expect(spool?.offset ?? 0).toBeGreaterThanOrEqual(offset);
      expect(rows.map((row) => row.seq)).toEqual(rows.map((_, i) => i + 1));
      expect(rows).toHaveLength(head.last_seq);
      let end = 0;
      for (const row of rows) {
        expect(row.offset).toBe(end);
        end += row.data.length;
      }
      expect(end).toBe(spool?.offset ?? 0);
    });
    await store.close();
  }
  expect(keys.size).toBeGreaterThan(0);
});

/** Kills the child `after_ms` after its first line, and returns the lines that it had acknowledged. */
async function runAndKill(run: string, after_ms: number, failpoint = ''): Promise<string[]> {
  const script = fileURLToPath(new URL('./crash-child.ts', import.meta.url));
  const child = spawn(process.execPath, [script, at('a.db'), run], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, SVC_FAILPOINT: failpoint },
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    if (text === '' && failpoint === '') setTimeout(() => child.kill('SIGKILL'), after_ms);
    text += part;
  });
  await once(child, 'close');
  expect(child.signalCode).toBe('SIGKILL');
  return text.split('\n').slice(0, -1);
}

test('a kill before a commit loses the group, a kill after it does not', async () => {
  const first = await openAt(at('a.db'));
  await addSession(first, await addAgent(first, 'agt_1'), 'ses_1');
  await first.close();
  const before = await runAndKill('before', 0, 'commit:kill');
  expect(before).toEqual([]);
  let store = await openAt(at('a.db'));
  expect(await metaKeys(store)).toEqual([]);
  await store.close();
  const after = await runAndKill('after', 0, 'committed:kill');
  expect(after).toEqual([]);
  store = await openAt(at('a.db'));
  expect((await metaKeys(store)).length).toBeGreaterThan(0);
  await store.close();
});

test('any mix of writes, failed writes and batches matches a simple model', async () => {
  const step = fc.oneof(
    fc.record({
      kind: fc.constant('write' as const),
      key: fc.integer({ min: 0, max: 15 }),
      fails: fc.boolean(),
    }),
    fc.record({
      kind: fc.constant('ingest' as const),
      lengths: fc.array(fc.nat(20), { minLength: 1, maxLength: 4 }),
      stale: fc.boolean(),
    }),
    fc.record({ kind: fc.constant('wait' as const) }),
  );
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const store = await openAt(at(`p${run++}.db`));
      await addSession(store, await addAgent(store, 'agt_1'), 'ses_1');
      const keys: string[] = [];
      const expected_calls: number[] = [];
      const calls: number[] = [];
      let offset = 0;
      let events = 0;
      const pending: Promise<unknown>[] = [];
      for (const [i, one] of steps.entries()) {
        if (one.kind === 'wait') await Promise.all(pending.splice(0));
        else if (one.kind === 'write') {
          const key = String(one.key);
          const fails = one.fails || keys.includes(key);
          const done = store.write(async (tx) => {
            tx.afterCommit(() => calls.push(i));
            await tx.run(tx.sql.insertInto('meta').values({ key, value: '' }));
            if (one.fails) throw new Error('asked to fail');
          });
          if (!fails) {
            keys.push(key);
            expected_calls.push(i);
          }
          pending.push(fails ? expect(done).rejects.toThrow() : done);
        } else {
          const texts = one.lengths.map((length) => 'x'.repeat(length));
          const made = batch('agt_1', 'ses_1', offset + (one.stale ? 1 : 0), texts);
          const done = store.ingest(made);
          if (one.stale) pending.push(expect(done).rejects.toBeInstanceOf(StaleBatch));
          else {
            offset = made.to;
            const first_seq = events + 1;
            events += texts.length;
            pending.push(expect(done).resolves.toMatchObject({ first_seq, last_seq: events }));
          }
        }
      }
      await Promise.all(pending);
      expect(await metaKeys(store)).toEqual(keys.sort());
      expect(calls).toEqual(expected_calls);
      await store.read(async (r) => {
        expect((await r.get(r.sql.selectFrom('heads').select('last_seq')))!.last_seq).toBe(events);
        expect(
          (await r.get(r.sql.selectFrom('spools').select('offset').where('stream', '=', 1)))?.offset ?? 0,
        ).toBe(offset);
        expect(await r.all(r.sql.selectFrom('events').select('seq'))).toHaveLength(events);
      });
      await store.close();
    }),
    { numRuns: 25 },
  );
});

test('the write-ahead log stays bounded under continuous writes', async () => {
  const store = await openAt(at('a.db'));
  await addSession(store, await addAgent(store, 'agt_1'), 'ses_1');
  const made = batch('agt_1', 'ses_1', 0, [Buffer.alloc(512 * 1024, 'x'), Buffer.alloc(512 * 1024, 'y')]);
  let largest = 0;
  for (let from = 0; from < 200 * made.to; from += made.to) {
    await store.ingest({ ...made, from, to: from + made.to });
    largest = Math.max(largest, (await stat(at('a.db-wal'))).size);
  }
  expect(largest).toBeGreaterThan(0);
  expect(largest).toBeLessThan(2 * limits.wal_kept_bytes_max);
  await store.close();
});

const mayMount = process.platform === 'linux' && process.getuid?.() === 0;

test.runIf(mayMount)(
  'a full disk rejects writes, loses nothing, and recovers when space returns',
  async () => {
    const disk = at('disk');
    await mkdir(disk);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', disk]);
    try {
      const store = await openAt(join(disk, 'a.db'));
      await addSession(store, await addAgent(store, 'agt_1'), 'ses_1');
      await writeFile(join(disk, 'filler'), Buffer.alloc(20 * 1024 * 1024));
      const acknowledged: string[] = [];
      let refused: unknown;
      for (let i = 0; !refused; i++) {
        await setMeta(store, `key ${i}`, 'x'.repeat(50_000)).then(
          () => acknowledged.push(`key ${i}`),
          (error) => {
            refused = error;
          },
        );
      }
      expect(refused).toMatchObject({ kind: 'unavailable', message: 'not enough disk space' });
      const big = batch('agt_1', 'ses_1', 0, ['y'.repeat(1_000_000)]);
      await expect(store.ingest(big)).rejects.toMatchObject({ message: 'not enough disk space' });
      expect((await metaKeys(store)).length).toBe(acknowledged.length);
      await rm(join(disk, 'filler'));
      await store.ingest(batch('agt_1', 'ses_1', 0, ['back']));
      await setMeta(store, 'back');
      await store.close();
      const again = await openAt(join(disk, 'a.db'));
      expect((await metaKeys(again)).sort()).toEqual([...acknowledged, 'back'].sort());
      await again.close();
    } finally {
      execFileSync('umount', [disk]);
    }
  },
);

test('a database that another program has locked is a failure of the storage, until it is free', async () => {
  const store = await openAt(at('locked.db'));
  const other = new DatabaseSync(at('locked.db'));
  other.exec('BEGIN IMMEDIATE');
  await expect(setMeta(store, 'a')).rejects.toMatchObject({ code: 'storage_failed', is_of_store: true });
  other.close();
  await setMeta(store, 'b');
  expect(await metaKeys(store)).toContain('b');
  await store.close();
});
