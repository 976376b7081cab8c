import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Logger, silentLog } from '../base/log.ts';
import type { Store } from '../store/store.ts';
import { SOON } from '../testing/features-fixture.ts';
import { openTestStore, sqliteTest } from '../testing/test-store.ts';
import { limits } from './limits.ts';
import { Timers } from './timers.ts';

let folder: string;
let store: Store;
let now = 1_000_000;
const clock = { now: () => now };
const payload = { session_id: 'ses_1' };

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-timers-'));
  store = await openTestStore(folder);
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

test('fires due timers once, in order, and keeps later ones', async () => {
  const timers = new Timers({ store, clock, log: silentLog });
  const fired: string[] = [];
  await store.write(async (tx) => {
    await timers.set(tx, 'agent_restart', 'later', now + 60_000, payload);
    await timers.set(tx, 'agent_restart', 'second', now - 1, payload);
    await timers.set(tx, 'agent_restart', 'first', now - 2, payload);
  });
  timers.open({ agent_restart: async (tx, timer) => tx.afterCommit(() => void fired.push(timer.ref)) });
  await vi.waitFor(() => expect(fired).toEqual(['first', 'second']), SOON);
  now += 60_001;
  await store.write((tx) => timers.set(tx, 'agent_restart', 'wake', now, payload));
  await vi.waitFor(() => expect(fired).toEqual(['first', 'second', 'later', 'wake']), SOON);
  await timers.close();
});

sqliteTest('fires a timer after the clock has advanced more than the delay', async () => {
  const timers = new Timers({ store, clock, log: silentLog });
  const fired: string[] = [];
  await store.write((tx) => timers.set(tx, 'agent_restart', 'later', now + 3_600_000, payload));
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    timers.open({ agent_restart: async (tx, timer) => tx.afterCommit(() => void fired.push(timer.ref)) });
    await vi.waitFor(() => expect(vi.getTimerCount()).toBeGreaterThan(0), SOON);
    // As if the machine had slept for an hour.
    now += 3_600_000;
    await vi.advanceTimersByTimeAsync(limits.timer_look_ms);
  } finally {
    vi.useRealTimers();
  }
  await vi.waitFor(() => expect(fired).toEqual(['later']), SOON);
  await timers.close();
});

test('moves a timer that is set again, and never fires a cleared one', async () => {
  const timers = new Timers({ store, clock, log: silentLog });
  const fired: string[] = [];
  await store.write(async (tx) => {
    await timers.set(tx, 'agent_restart', 'moved', now - 1, payload);
    await timers.set(tx, 'agent_restart', 'moved', now + 60_000, payload);
    await timers.set(tx, 'agent_restart', 'cleared', now - 1, payload);
    await timers.clear(tx, 'agent_restart', 'cleared');
    await timers.set(tx, 'agent_restart', 'due', now - 1, payload);
  });
  timers.open({ agent_restart: async (tx, timer) => tx.afterCommit(() => void fired.push(timer.ref)) });
  await vi.waitFor(() => expect(fired).toEqual(['due']), SOON);
  await timers.close();
});

test('a timer that was set again is not moved if the outcome of its commit is unknown', async () => {
  const again_at = now + 3_600_000;
  const { write } = store;
  const timers = new Timers({ store, clock, log: silentLog });
  await store.write((tx) => timers.set(tx, 'agent_restart', 'again', now - 1, payload));
  let is_lost = false;
  store.write = async (fn, options) => {
    const value = await write.call(store, fn, options);
    if (is_lost) return value as never;
    is_lost = true;
    throw new Error('the answer to the commit was lost');
  };
  timers.open({ agent_restart: (tx, { ref }) => timers.set(tx, 'agent_restart', ref, again_at, payload) });
  await vi.waitFor(() => expect(is_lost).toBe(true), SOON);
  await timers.close();
  store.write = write;
  const due = await store.read((reader) => reader.all(reader.sql.selectFrom('timers').select('due_at')));
  expect(due).toEqual([{ due_at: again_at }]);
});

test('a failed timer does not block others and survives a restart', async () => {
  const first = new Timers({ store, clock, log: silentLog });
  let tries = 0;
  let other = 0;
  await store.write(async (tx) => {
    await first.set(tx, 'agent_restart', 'one', now - 2, payload);
    await first.set(tx, 'agent_restart', 'other', now - 1, payload);
  });
  first.open({
    agent_restart: async (tx, timer) => {
      if (timer.ref === 'other') {
        tx.afterCommit(() => {
          other += 1;
        });
        return;
      }
      tries += 1;
      throw new Error('not now');
    },
  });
  await vi.waitFor(() => expect([tries, other]).toEqual([1, 1]), SOON);
  await first.close();
  now += 60_000;
  const second = new Timers({ store, clock, log: silentLog });
  const fired: string[] = [];
  second.open({ agent_restart: async (tx, timer) => tx.afterCommit(() => void fired.push(timer.ref)) });
  await vi.waitFor(() => expect(fired).toEqual(['one']), SOON);
  await second.close();
});

test('a failed lookup does not postpone the timer that fired before it', async () => {
  const timers = new Timers({ store, clock, log: silentLog });
  let fails = false;
  let tries = 0;
  const read = store.read.bind(store);
  store.read = (fn) => {
    if (!fails) return read(fn);
    tries += 1;
    fails = tries < 2;
    return Promise.reject(new Error('no answer'));
  };
  const due_at = now + 300_000;
  await store.write((tx) => timers.set(tx, 'agent_restart', 'again', now, payload));
  timers.open({
    agent_restart: async (tx) => {
      await timers.set(tx, 'agent_restart', 'again', due_at, payload);
      fails = true;
    },
  });
  await vi.waitFor(() => expect(tries).toBe(2), { timeout: 10_000 });
  await timers.close();
  store.read = read;
  const rows = await store.read((reader) => reader.all(reader.sql.selectFrom('timers').select('due_at')));
  expect(rows).toEqual([{ due_at }]);
});

test('repeats a timer that fails less and less often, and logs each reason once', async () => {
  const log = { error: vi.fn() };
  const timers = new Timers({ store, clock, log: log as unknown as Logger });
  const begun = now;
  const tries: number[] = [];
  let fails = true;
  await store.write((tx) => timers.set(tx, 'agent_restart', 'broken', now, payload));
  timers.open({
    agent_restart: async () => {
      if (tries.at(-1) !== now) tries.push(now);
      if (fails) throw new TypeError('x is not a function');
    },
  });
  const due = () =>
    store.read((reader) => reader.all(reader.sql.selectFrom('timers').select(['ref', 'due_at'])));
  for (
    let pause_ms = limits.timer_retry_ms;
    now < begun + limits.unexpected_pause_ms_max * 3;
    pause_ms *= 2
  ) {
    const next = now + Math.min(pause_ms, limits.unexpected_pause_ms_max);
    await vi.waitFor(async () => expect(await due()).toEqual([{ ref: 'broken', due_at: next }]), SOON);
    now = next;
    await store.write((tx) => timers.set(tx, 'trigger', 'wake', now + 1, {}));
    await store.write((tx) => timers.clear(tx, 'trigger', 'wake'));
  }
  expect(log.error).toHaveBeenCalledOnce();
  expect(log.error.mock.lastCall![0]).toMatchObject({ timer: { kind: 'agent_restart', ref: 'broken' } });
  fails = false;
  await vi.waitFor(async () => {
    now += limits.unexpected_pause_ms_max;
    await store.write(async (tx) => tx.wake('timers', null));
    expect(await due()).toEqual([]);
  }, SOON);
  await timers.close();
});
