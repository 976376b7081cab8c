import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pino from 'pino';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { Feed } from '../events/feed.ts';
import type { Store } from '../store/store.ts';
import { addAgent, addSession, batch } from '../store/testing.ts';
import { openTestDatabase } from '../testing/empty-sqlite.ts';
import { backup, restore } from './backup.ts';
import { removeAbandonedRestores } from './data-dir.ts';
import { lockDataDir } from './lock.ts';

const now = Date.parse('2026-01-02T03:04:05.678Z');
let top: string;
let data: string;
let file: string;

beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), 'svc-backup-'));
  data = join(top, 'data');
  file = join(top, 'copy.tar.gz');
  mkdirSync(data);
});
afterEach(() => rmSync(top, { recursive: true, force: true }));

async function withStore<T>(fn: (store: Store) => Promise<T>): Promise<T> {
  const store = await openTestDatabase(join(data, 'svc.db'));
  try {
    return await fn(store);
  } finally {
    await store.close();
  }
}

const heads = (store: Store) =>
  store.read((reader) => reader.all(reader.sql.selectFrom('heads').select(['agent_num', 'last_seq'])));

test('a backup of an open store restores completely, and keeps the old files', async () => {
  await withStore(async (store) => {
    const num = await addAgent(store, 'agt_1');
    await addSession(store, num, 'ses_1');
    await store.ingest(batch('agt_1', 'ses_1', 0, ['one\n', 'two\n']));
    mkdirSync(join(data, 'log/1'), { recursive: true });
    writeFileSync(join(data, 'log/1/a.seg'), 'segment');
    await store.write(async (tx) => {
      const values = { agent_num: num, last_ts: 0, bytes: 7, blocks: new Uint8Array() };
      const insert = tx.sql.insertInto('segments');
      await tx.run(insert.values({ ...values, first_seq: 1, last_seq: 1, path: '1/a.seg' }));
      await tx.run(insert.values({ ...values, first_seq: 2, last_seq: 2, path: '1/gone.seg' }));
    });
    const made = await backup(data, file, '1.0.0', now);
    expect(made).toEqual({ file, bytes: statSync(file).size });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(data).filter((name) => name.startsWith('.svc-'))).toEqual([]);
    await store.ingest(batch('agt_1', 'ses_1', 8, ['three\n', 'four\n', 'five\n']));
  });
  writeFileSync(join(data, 'log/1/a.seg'), 'changed');

  const { aside } = await restore(data, file, now);
  expect(readFileSync(join(data, 'log/1/a.seg'), 'utf8')).toBe('segment');
  expect(readFileSync(join(aside!, 'log/1/a.seg'), 'utf8')).toBe('changed');
  expect(readdirSync(data).filter((name) => name.startsWith('.svc-'))).toEqual([]);
  await withStore(async (store) => {
    // Number 5 was used before, so the next number is above it, and the gap is reported.
    expect(await heads(store)).toEqual([{ agent_num: 1, last_seq: 6 }]);
    const event = await store.read((reader) =>
      reader.get(reader.sql.selectFrom('events').selectAll().where('seq', '=', 6)),
    );
    expect(event).toMatchObject({ type: 4, ts: now });
    expect(JSON.parse(Buffer.from(event!.data).toString())).toMatchObject({
      code: 'log_gap',
      from: 3,
      to: 5,
    });
  });
});

test('a restore over a damaged database skips every number that may have been used', async () => {
  await withStore((store) => addAgent(store, 'agt_1'));
  await backup(data, file, '1.0.0', now);
  writeFileSync(join(data, 'svc.db'), 'rubbish'.repeat(1000));
  await restore(data, file, now);
  const [head] = await withStore(heads);
  expect(head!.last_seq).toBeGreaterThan(1_000_000);
});

test('a restore creates the data directory of a new machine', async () => {
  await withStore((store) => addAgent(store, 'agt_1'));
  await backup(data, file, '1.0.0', now);
  const elsewhere = join(dirname(data), 'new/data');
  expect(await restore(elsewhere, file, now)).toEqual({ aside: null });
  expect(statSync(elsewhere).mode & 0o777).toBe(0o700);
  expect(statSync(join(elsewhere, 'svc.db')).size).toBeGreaterThan(0);
});

test('a restore right after the backup leaves the logs unchanged', async () => {
  await withStore((store) => addAgent(store, 'agt_1'));
  await backup(data, file, '1.0.0', now);
  await restore(data, file, now);
  expect(await withStore(heads)).toEqual([{ agent_num: 1, last_seq: 0 }]);
});

test('a restore rejects a data directory that a plane is using', async () => {
  await withStore((store) => addAgent(store, 'agt_1'));
  await backup(data, file, '1.0.0', now);
  const lock = lockDataDir(data, 'now');
  try {
    await expect(restore(data, file, now)).rejects.toThrow(`data directory ${data} is in use by pid`);
  } finally {
    lock.release();
  }
});

test('rejects a file that is not a backup, and changes nothing', async () => {
  await withStore((store) => addAgent(store, 'agt_1'));
  const text = join(top, 'text');
  writeFileSync(text, 'hello');
  await expect(restore(data, text, now)).rejects.toThrow(`${text} cannot be unpacked: `);
  const stranger = join(top, 'stranger.tar');
  execFileSync('tar', ['-cf', stranger, '-C', top, 'text']);
  await expect(restore(data, stranger, now)).rejects.toThrow(`${stranger} is not a backup of svc`);
  expect(readdirSync(data).filter((name) => /restore/.test(name))).toEqual([]);
  expect(existsSync(join(data, 'svc.db'))).toBe(true);
});

test('refuses a backup that a newer version has made, and changes nothing', async () => {
  await withStore((store) => addAgent(store, 'agt_1'));
  const path = join(data, 'svc.db');
  const setVersion = (change: number) => {
    const db = new DatabaseSync(path);
    const { user_version } = db.prepare('PRAGMA user_version').get() as { user_version: number };
    db.exec(`PRAGMA user_version = ${user_version + change}`);
    db.close();
  };
  setVersion(1);
  await backup(data, file, '9.0.0', now);
  setVersion(-1);
  await expect(restore(data, file, now)).rejects.toThrow('was made by a newer version of svc');
  expect(await withStore(heads)).toEqual([{ agent_num: 1, last_seq: 0 }]);
});

test('a restore over a database that does not know an agent skips all numbers that it may have used', async () => {
  await withStore((store) => addAgent(store, 'agt_1'));
  await backup(data, file, '1.0.0', now);
  // The disk was lost, and the service has started without it.
  rmSync(join(data, 'svc.db'));
  await withStore((store) => addAgent(store, 'agt_2'));
  await restore(data, file, now);
  const [head] = await withStore(heads);
  expect(head!.last_seq).toBeGreaterThan(1_000_000);
});

test('after a restore, followers of the fleet feed get a reset', async () => {
  const clock = { now: () => now };
  const add = (store: Store) => {
    const feed = new Feed({ store, clock });
    feed.close();
    return store.write((tx) => feed.append(tx, 'agent', 'usr_1', {}));
  };
  await withStore(add);
  await backup(data, file, '1.0.0', now);
  await withStore(add);
  await restore(data, file, now);
  const text = await withStore(async (store) => {
    await add(store);
    const feed = new Feed({ store, clock });
    const frames = feed.follow(() => true, { after: 2 }, new AbortController().signal);
    await frames.next();
    const { value } = await frames.next();
    await frames.return(undefined);
    feed.close();
    return String(value);
  });
  expect(text).toContain('"code":"reset"');
});

test('numbers of streams are not used again if the same backup is restored twice', async () => {
  await withStore((store) => addAgent(store, 'agt_1'));
  await backup(data, file, '1.0.0', now);
  const add = async (store: Store) => {
    const feed = new Feed({ store, clock: { now: () => now } });
    feed.close();
    await store.write((tx) => feed.append(tx, 'agent', 'usr_1', {}));
    const [entry] = await store.read((reader) => reader.all(reader.sql.selectFrom('feed').select('id')));
    return entry!.id;
  };
  const ids = [await withStore(add)];
  for (let at = 0; at < 2; at++) {
    await restore(data, file, now + at * 1000);
    ids.push(await withStore(add));
  }
  expect(new Set(ids).size).toBe(3);
});

test('backups to one file do not disturb each other, and what a killed one left is removed', async () => {
  await withStore((store) => addAgent(store, 'agt_1'));
  const left = [join(data, '.svc-backup-abcdef'), `${file}.svc-backup-abcdef.part`];
  mkdirSync(left[0]!);
  writeFileSync(left[1]!, '');
  // A person's own backups.
  const kept = ['backup-2026-01-02.tar.gz', 'backup-before'].map((name) => join(data, name));
  writeFileSync(kept[0]!, '');
  mkdirSync(kept[1]!);
  for (const path of [...left, ...kept]) utimesSync(path, 0, 0);
  const outcomes = await Promise.allSettled([1, 2].map(() => backup(data, file, '1.0.0', now)));
  expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  expect(readdirSync(top).sort()).toEqual(['copy.tar.gz', 'data']);
  expect(readdirSync(data).filter((name) => name.includes('backup-'))).toEqual(
    kept.map((path) => basename(path)),
  );
  expect(await restore(data, file, now)).toMatchObject({ aside: expect.any(String) });
});

test('a restore deletes what a killed one left, and nothing that is only named like it', async () => {
  await withStore((store) => addAgent(store, 'agt_1'));
  await backup(data, file, '1.0.0', now);
  mkdirSync(join(data, '.svc-restore-abc123'));
  writeFileSync(join(data, '.svc-restore-abc123', 'svc.db'), '');
  mkdirSync(join(data, 'restore-before'));
  await restore(data, file, now);
  expect(readdirSync(data).filter((name) => /^(\.svc-)?restore-/.test(name))).toEqual(['restore-before']);
});

test('what a killed restore left and cannot be deleted is logged', async () => {
  const left = join(data, '.svc-restore-abc123');
  // Paths in it are too long for Node.js.
  const deep = Array.from({ length: 10 }, () => 'x'.repeat(250));
  for (const folder of [left, join(top, 'more')]) mkdirSync(join(folder, ...deep), { recursive: true });
  renameSync(join(top, 'more'), join(left, ...deep, 'more'));
  const lines: { path: string }[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  await removeAbandonedRestores(data, log);
  expect(lines).toMatchObject([{ level: 40, path: left }]);
  execFileSync('rm', ['-r', left]);
});

test('an aborted backup removes what it has written', async () => {
  await withStore((store) => addAgent(store, 'agt_1'));
  await expect(backup(data, file, '1.0.0', now, AbortSignal.abort())).rejects.toThrow(/aborted/);
  expect(readdirSync(top)).toEqual(['data']);
  expect(readdirSync(data).filter((name) => name.startsWith('.svc-'))).toEqual([]);
});

test('a backup that is aborted while tar writes removes what it has written', async () => {
  await withStore(async (store) => {
    const agent_num = await addAgent(store, 'agt_1');
    mkdirSync(join(data, 'log/1'), { recursive: true });
    writeFileSync(join(data, 'log/1/a.seg'), randomBytes(32 * 1024 * 1024));
    await store.write(async (tx) => {
      const values = { agent_num, first_seq: 1, last_seq: 1, last_ts: 0, bytes: 7, blocks: new Uint8Array() };
      await tx.run(tx.sql.insertInto('segments').values({ ...values, path: '1/a.seg' }));
    });
  });
  const stop = new AbortController();
  const part = watch(top, (_, name) => {
    if (name?.endsWith('.part') && (statSync(join(top, name), { throwIfNoEntry: false })?.size ?? 0) > 0)
      stop.abort();
  });
  onTestFinished(() => part.close());
  // This is the error of the call that runs tar.
  await expect(backup(data, file, '1.0.0', now, stop.signal)).rejects.toThrow('The operation was aborted');
  expect(readdirSync(top)).toEqual(['data']);
  expect(readdirSync(data).filter((name) => name.startsWith('.svc-'))).toEqual([]);
});

test('a backup overwrites no file', async () => {
  await withStore((store) => addAgent(store, 'agt_1'));
  writeFileSync(file, 'mine');
  await expect(backup(data, file, '1.0.0', now)).rejects.toThrow('already exists');
  expect(readFileSync(file, 'utf8')).toBe('mine');
});

test('a copy is a separate database', async () => {
  await withStore((store) => addAgent(store, 'agt_1'));
  await backup(data, file, '1.0.0', now);
  execFileSync('tar', ['-xf', file, '-C', top, './svc.db']);
  const db = new DatabaseSync(join(top, 'svc.db'), { readOnly: true });
  expect(db.prepare('SELECT id FROM agents').all()).toEqual([{ id: 'agt_1' }]);
  db.close();
});
