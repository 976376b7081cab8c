/** Facts that a consumer cannot handle: it handles them later, and until then only later facts about the same record wait. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { silentLog } from '../base/log.ts';
import { storageFailed } from '../store/problems.ts';
import type { Store, Tx } from '../store/store.ts';
import { SOON } from '../testing/features-fixture.ts';
import { openTestStore } from '../testing/test-store.ts';
import { type Fact, type FactHandlers, Facts } from './facts.ts';
import { limits } from './limits.ts';
import { Timers } from './timers.ts';

const payload = { agent_id: 'agt_1', session_id: 'ses_1', status: 'failed' };

let folder: string;
let store: Store;
let now = 1_000_000;
let broken: boolean;
const seen: string[] = [];
let facts: Facts;
let timers: Timers;

const common = () => ({ store, log: silentLog });
const open = async (more: Record<string, FactHandlers> = {}) => {
  const clock = { now: () => now };
  facts = new Facts({ ...common(), clock, retry_ms: 5 });
  timers = new Timers({ ...common(), clock });
  const session_ended = async (tx: Tx, { ref, payload: { status } }: Fact<'session_ended'>) => {
    if (broken && status === 'odd') throw new TypeError('an odd status');
    tx.afterCommit(() => void seen.push(`${ref} ${status}`));
  };
  await facts.open({ one: { session_ended }, ...more });
  timers.open(facts.timers());
};
const close = async () => {
  await facts.close();
  await timers.close();
};
const record = (ref: string, status: string) =>
  store.write((tx) => facts.record(tx, 'session_ended', ref, { ...payload, status }));
const untilSeen = (expected: string[]) =>
  vi.waitFor(() => {
    expect(seen).toEqual(expected);
    seen.length = 0;
  }, SOON);
/** Lets the time of the timers pass. */
const pass = (ms: number) => {
  now += ms;
  return store.write(async (tx) => tx.wake('timers', null));
};
/** Records a fact that cannot be handled, and waits until the consumer has moved on to the next one. */
const recordOdd = async () => {
  await record('ses_1', 'odd');
  await record('ses_2', 'failed');
  await untilSeen(['ses_2 failed']);
};
/** Records another fact about the same record, and waits until the consumer has moved on to the next one. */
const recordLater = async () => {
  await record('ses_1', 'later');
  await record('ses_3', 'failed');
  await untilSeen(['ses_3 failed']);
};

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-held-'));
  store = await openTestStore(folder);
  broken = true;
  seen.length = 0;
});
afterEach(async () => {
  await close();
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

describe('a fact that a consumer cannot handle', () => {
  test('delays only later facts about the same record', async () => {
    await open();
    await recordOdd();
    await recordLater();
    broken = false;
    await pass(limits.unexpected_pause_ms_max);
    await untilSeen(['ses_1 odd', 'ses_1 later']);
    await record('ses_1', 'new');
    await untilSeen(['ses_1 new']);
  });

  test('keeps any number of later facts in order without a growing timer, and deletes them when they are handled', async () => {
    const stored = (table: 'facts' | 'timers') =>
      store.read((reader) => reader.all(reader.sql.selectFrom(table).selectAll()));
    await open();
    await recordOdd();
    const [before] = await stored('timers');
    const later = Array.from({ length: 2 * limits.facts_per_transaction + 3 }, (_, i) => `later ${i}`);
    await store.write(async (tx) => {
      for (const status of later) await facts.record(tx, 'session_ended', 'ses_1', { ...payload, status });
    });
    await record('ses_3', 'failed');
    await untilSeen(['ses_3 failed']);
    expect(await stored('timers')).toEqual([before]);
    broken = false;
    await pass(limits.unexpected_pause_ms_max);
    await untilSeen(['ses_1 odd', ...later.map((status) => `ses_1 ${status}`)]);
    expect([await stored('facts'), await stored('timers')]).toEqual([[], []]);
  });

  test('is kept for the consumer that cannot handle it when another one handles it later', async () => {
    let slow = true;
    const session_ended = async (tx: Tx, { ref, payload: { status } }: Fact<'session_ended'>) => {
      if (slow) throw storageFailed();
      tx.afterCommit(() => void seen.push(`two ${ref} ${status}`));
    };
    await open({ two: { session_ended } });
    await recordOdd();
    slow = false;
    await untilSeen(['two ses_1 odd', 'two ses_2 failed']);
    broken = false;
    await pass(limits.unexpected_pause_ms_max);
    await untilSeen(['ses_1 odd']);
  });

  test('is handled after a restart, before later facts about the same record', async () => {
    await open();
    await recordOdd();
    await close();
    await open();
    await recordLater();
    broken = false;
    await pass(limits.unexpected_pause_ms_max);
    await untilSeen(['ses_1 odd', 'ses_1 later']);
  });

  test('is handled before later facts if an earlier version kept it in its timer', async () => {
    const facts = ['first', 'second'].map((status, i) => ({
      ...{
        id: i + 1,
        ts: 0,
        kind: 'session_ended',
        ref: 'ses_1',
        payload: JSON.stringify({ ...payload, status }),
      },
    }));
    const timer = { kind: 'fact_retry', ref: 'one ses_1', due_at: now + 1_000 };
    await store.write((tx) =>
      tx.run(
        tx.sql.insertInto('timers').values({ ...timer, payload: JSON.stringify({ consumer: 'one', facts }) }),
      ),
    );
    await open();
    await recordLater();
    await pass(1_000);
    await untilSeen(['ses_1 first', 'ses_1 second', 'ses_1 later']);
  });

  test('delays no other fact, even if its payload cannot be parsed', async () => {
    await open();
    await store.write(async (tx) => {
      const row = { ts: 0, kind: 'session_ended', ref: 'ses_1', payload: '{' };
      await tx.run(tx.sql.insertInto('facts').values(row));
    });
    await record('ses_2', 'failed');
    await untilSeen(['ses_2 failed']);
  });

  test('is found if it is not known whose statement failed', async () => {
    const session_ended = async (tx: Tx, { ref, payload: { status } }: Fact<'session_ended'>) => {
      if (status === 'odd')
        tx.atEnd(
          'turn',
          async () => null,
          () => Promise.reject(new TypeError('an odd status')),
        );
      tx.afterCommit(() => void seen.push(`two ${ref}`));
    };
    broken = false;
    await open({ two: { session_ended } });
    await record('ses_1', 'odd');
    await record('ses_2', 'failed');
    await untilSeen(['ses_1 odd', 'ses_2 failed', 'two ses_2']);
  });

  test('is left to a newer program whose consumer this one does not know', async () => {
    broken = false;
    let is_fixed = false;
    const newer: FactHandlers = {
      session_ended: async (tx, { ref, payload: { status } }) => {
        if (!is_fixed) throw new TypeError('an odd status');
        tx.afterCommit(() => void seen.push(`newer ${ref} ${status}`));
      },
    };
    await open({ newer });
    await record('ses_1', 'odd');
    await untilSeen(['ses_1 odd']);
    await vi.waitFor(async () => {
      const timers = await store.read((reader) => reader.all(reader.sql.selectFrom('timers').select('ref')));
      expect(timers).toEqual([{ ref: 'newer ses_1' }]);
    }, SOON);
    await close();
    await open();
    const due_at = async () =>
      (await store.read((reader) => reader.get(reader.sql.selectFrom('timers').select('due_at'))))?.due_at;
    const before = await due_at();
    await pass(limits.unexpected_pause_ms_max);
    await record('ses_2', 'failed');
    await untilSeen(['ses_2 failed']);
    await vi.waitFor(async () => {
      expect(await due_at()).toBeGreaterThan(before!);
    }, SOON);
    await close();
    is_fixed = true;
    await open({ newer });
    await pass(limits.unexpected_pause_ms_max);
    await vi.waitFor(() => {
      expect(seen.toSorted()).toEqual(['newer ses_1 odd', 'newer ses_2 failed']);
    }, SOON);
  });
});
