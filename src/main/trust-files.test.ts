/** The certificates that several planes share. */
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { silentLog } from '../base/log.ts';
import { storageFailed } from '../store/problems.ts';
import type { Store } from '../store/store.ts';
import { listTrustFiles } from '../store/trust-files.ts';
import { openTestStore, sqliteTest } from '../testing/test-store.ts';
import { limits } from './limits.ts';
import { TrustFiles } from './trust-files.ts';

const key = new Uint8Array(32).fill(1);

let folder: string;
let store: Store;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-trust-'));
  store = await openTestStore(folder);
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

async function plane(name: string, own_key = key, log = silentLog) {
  const path = join(folder, name);
  await mkdir(path, { recursive: true, mode: 0o700 });
  const files = new TrustFiles({ folder: path, key: own_key, log });
  const write = (file: string, text: string) => writeFile(join(path, file), text, { mode: 0o600 });
  const read = (file: string) => readFile(join(path, file), 'utf8');
  const take = async () => files.take(await rows());
  return { path, files, write, read, take };
}

const rows = () => store.read(listTrustFiles);

test('a plane takes the files of another one, which nobody else can read', async () => {
  const [a, b] = [await plane('a'), await plane('b')];
  await a.write('ca-key.pem', 'the key');
  await a.write('ca.pem', 'the certificate');
  await a.write('notes.txt', 'not shared');
  await a.files.store(store);
  expect((await rows()).map(({ name }) => name).toSorted()).toEqual(['ca-key.pem', 'ca.pem']);
  expect((await rows()).some(({ sealed }) => Buffer.from(sealed).includes('the'))).toBe(false);
  expect(await b.take()).toBe(true);
  expect([await b.read('ca-key.pem'), await b.read('ca.pem')]).toEqual(['the key', 'the certificate']);
  expect((await stat(join(b.path, 'ca-key.pem'))).mode & 0o777).toBe(0o600);
  expect(await b.take()).toBe(false);
});

test('a change that is made while the files are stored is kept', async () => {
  const a = await plane('a');
  await a.write('ca.pem', 'one');
  const { write } = store;
  store.write = async (fn, options) => {
    const value = await write.call(store, fn, options);
    await a.write('ca.pem', 'two');
    return value as never;
  };
  await a.files.store(store);
  store.write = write;
  expect(await a.take()).toBe(false);
  expect(await a.read('ca.pem')).toBe('two');
});

test('the later change counts, whichever plane made it', async () => {
  const [a, b] = [await plane('a'), await plane('b')];
  await a.write('ca.pem', 'one');
  await a.files.store(store);
  await b.take();
  // Changed while the plane did not run.
  await b.write('ca.pem', 'two');
  expect(await b.take()).toBe(false);
  await b.files.store(store);
  expect(await a.take()).toBe(true);
  expect(await a.read('ca.pem')).toBe('two');
});

test('if two planes changed a file, the one that is in the database counts', async () => {
  const [a, b] = [await plane('a'), await plane('b')];
  await a.write('ca.pem', 'one');
  await a.files.store(store);
  await b.take();
  await a.write('ca.pem', 'of a');
  await a.files.store(store);
  await b.write('ca.pem', 'of b');
  expect(await b.take()).toBe(true);
  expect(await b.read('ca.pem')).toBe('of a');
});

test('the files that were missing and came from the database are logged', async () => {
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line) => lines.push(line) });
  const [a, b] = [await plane('a'), await plane('b', key, log)];
  await a.write('ca-key.pem', 'the key');
  await a.write('ca.pem', 'one');
  await b.write('ca.pem', 'other');
  await a.files.store(store);
  await b.take();
  expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
    { folder: b.path, files: ['ca-key.pem'], msg: 'missing files were taken from the database' },
  ]);
});

test('a file that was removed is removed from the database', async () => {
  const a = await plane('a');
  await a.write('ca.pem', 'one');
  await a.write('auth.json', '{}');
  await a.files.store(store);
  await rm(join(a.path, 'auth.json'));
  await a.files.store(store);
  expect((await rows()).map(({ name }) => name)).toEqual(['ca.pem']);
});

test('refuses files that were encrypted with another key, and writes none', async () => {
  const [a, b] = [await plane('a'), await plane('b', new Uint8Array(32).fill(2))];
  await a.write('ca.pem', 'one');
  await a.files.store(store);
  await expect(b.take()).rejects.toMatchObject({ code: 'wrong_secret_key' });
  await expect(b.read('ca.pem')).rejects.toThrow('ENOENT');
});

sqliteTest('changed files are stored once the database is back, and the failure is logged once', async () => {
  const log = { error: vi.fn() };
  const a = await plane('a', key, log as never);
  await a.write('ca.pem', 'one');
  const { write } = store;
  let tries = 0;
  store.write = async (fn, options) => {
    if (++tries < 3) throw storageFailed();
    return write.call(store, fn, options) as never;
  };
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  try {
    const stored = a.files.storeEventually(store, new AbortController().signal);
    const triesAfterPause = () => {
      vi.advanceTimersByTime(limits.trust_files_retry_ms);
      return tries;
    };
    await expect.poll(triesAfterPause).toBe(3);
    vi.useRealTimers();
    await stored;
  } finally {
    vi.useRealTimers();
  }
  expect((await rows()).map(({ name }) => name)).toEqual(['ca.pem']);
  expect(log.error).toHaveBeenCalledOnce();
});
