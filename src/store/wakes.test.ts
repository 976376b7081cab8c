import pino from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { silentLog } from '../base/log.ts';
import { stores, type TestStore } from '../testing/stores.ts';
import { limits } from './limits.ts';
import { setMeta } from './meta.ts';
import type { Store, Tx } from './store.ts';
import { AfterCommit, LocalWakes, type Wakes } from './wakes.ts';

/** The keys of the sessions that are woken. */
function sessionsWoken(wakes: Wakes): unknown[] {
  const keys: unknown[] = [];
  wakes.on('sessions', (key) => keys.push(key));
  return keys;
}

describe.each(stores)('$kind', ({ open, it }) => {
  let opened: TestStore;
  let store: Store;

  beforeEach(async () => {
    opened = await open();
    store = opened.store;
  });
  afterEach(() => opened.remove());

  it('delivers each key once, in order, after the callbacks and before the write resolves', async () => {
    const order: unknown[] = [];
    store.wakes.on('sessions', (key) => order.push(key));
    await store.write(async (tx) => {
      for (const id of ['ses_a', 'ses_b', 'ses_a']) tx.wake('sessions', id);
      tx.afterCommit(() => order.push('callback'));
      await setMeta(tx, 'a', '1');
      tx.wake('sessions', 'ses_b');
      expect(order).toEqual([]);
    });
    expect(order).toEqual(['callback', 'ses_a', 'ses_b']);
  });

  it('delivers no wakes of a transaction that is rolled back', async () => {
    const keys = sessionsWoken(store.wakes);
    const write = (id: string, error?: Error) =>
      store.write(async (tx) => {
        tx.wake('sessions', id);
        await setMeta(tx, id, '1');
        if (error) throw error;
      });
    const results = await Promise.allSettled([
      write('ses_a'),
      write('ses_b', new Error('no')),
      write('ses_c'),
    ]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(keys.sort()).toEqual(['ses_a', 'ses_c']);
  });

  it('delivers only the wakes of the last run if a body runs several times', async () => {
    const keys = sessionsWoken(store.wakes);
    let runs = 0;
    const body = async (tx: Tx, key: string) => {
      tx.wake('sessions', `${key} ${++runs}`);
      await setMeta(tx, 'a', key);
    };
    await Promise.all([store.write((tx) => body(tx, 'a')), store.write((tx) => body(tx, 'b'))]);
    expect(keys).toHaveLength(2);
    expect(keys.at(-1)).toMatch(new RegExp(`^[ab] ${runs}$`));
  });

  it('lets listeners read what was committed', async () => {
    const found = new Promise((resolve) => {
      store.wakes.on('facts', () => {
        resolve(store.read((reader) => reader.all(reader.sql.selectFrom('meta').select('key'))));
      });
    });
    await store.write(async (tx) => {
      tx.wake('facts', null);
      await setMeta(tx, 'a', '1');
    });
    expect(await found).toContainEqual({ key: 'a' });
  });
});

test('a listener of a key is called for that key and for wakes of the whole topic', () => {
  const wakes = new LocalWakes(silentLog);
  let heard = 0;
  wakes.onKey('sessions', 'ses_a', () => heard++);
  wakes.deliver('sessions', 'ses_b');
  wakes.deliver('mail', 'ses_a');
  expect(heard).toBe(0);
  wakes.deliver('sessions', 'ses_a');
  wakes.deliver('sessions', null);
  expect(heard).toBe(2);
});

test('a listener that has unsubscribed is not called, even if it did so during the delivery', () => {
  const wakes = new LocalWakes(silentLog);
  const heard: string[] = [];
  const again = () => heard.push('again');
  const stops = [wakes.onKey('run_events', 1, again), wakes.onKey('run_events', 1, again)];
  wakes.on('run_events', () => stops.pop()?.());
  wakes.deliver('run_events', 1);
  expect(heard).toEqual(['again']);
  wakes.deliver('run_events', 1);
  wakes.deliver('run_events', 1);
  expect(heard).toEqual(['again']);
  wakes.onKey('run_events', 1, again);
  for (const stop of stops) stop();
  wakes.deliver('run_events', 1);
  expect(heard).toEqual(['again', 'again']);
});

test('the error of a listener or a callback is logged, and the others are still called', () => {
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => lines.push(line) });
  const wakes = new LocalWakes(log);
  const fail = () => {
    throw new Error('no');
  };
  wakes.on('sessions', fail);
  wakes.onKey('sessions', 'ses_a', fail);
  const keys = sessionsWoken(wakes);
  const after_commit = new AfterCommit();
  after_commit.add(fail);
  after_commit.wake('sessions', 'ses_a');
  after_commit.wake('sessions', 'ses_b');
  after_commit.run(wakes, log);
  expect(keys).toEqual(['ses_a', 'ses_b']);
  expect(lines).toHaveLength(4);
});

test('too many keys become a wake of the whole topic, and leave other topics alone', () => {
  const wakes = new LocalWakes(silentLog);
  const keys = sessionsWoken(wakes);
  const actors: unknown[] = [];
  wakes.on('mail', (key) => actors.push(key));
  const after_commit = new AfterCommit();
  after_commit.wake('mail', 'actor');
  for (let i = 0; i < limits.wakes_per_transaction_max + 5; i++) after_commit.wake('sessions', `ses_${i}`);
  after_commit.run(wakes, silentLog);
  expect(keys).toEqual([null]);
  expect(actors).toEqual(['actor']);
});
