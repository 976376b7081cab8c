import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { systemClock } from '../base/clock.ts';
import { type Logger, silentLog } from '../base/log.ts';
import { Problem, problems } from '../core/problem.ts';
import { noSpace, storageFailed } from '../store/problems.ts';
import type { Store, Tx } from '../store/store.ts';
import { SOON } from '../testing/features-fixture.ts';
import { openTestStore, sqliteTest } from '../testing/test-store.ts';
import { type Fact, Facts } from './facts.ts';
import { limits } from './limits.ts';
import { type Intent, type IntentHandlers, Outbox } from './outbox.ts';

let folder: string;
let store: Store;
const common = () => ({ store, clock: systemClock, log: silentLog });

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-flow-'));
  store = await openTestStore(folder);
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

const payload = { agent_id: 'agt_1', session_id: 'ses_1', status: 'failed' };

test('a fact reaches every consumer once, including one that starts later', async () => {
  const facts = new Facts(common());
  const seen: string[] = [];
  const note = (who: string) => ({
    session_ended: async (tx: Tx, fact: Fact) => tx.afterCommit(() => void seen.push(`${who} ${fact.ref}`)),
  });
  await store.write((tx) => facts.record(tx, 'session_ended', 'ses_1', payload));
  await facts.open({ one: note('one') });
  await vi.waitFor(() => expect(seen).toEqual(['one ses_1']), SOON);
  await store.write((tx) => facts.record(tx, 'session_ended', 'ses_2', payload));
  await vi.waitFor(() => expect(seen).toEqual(['one ses_1', 'one ses_2']), SOON);
  await facts.close();

  const again = new Facts(common());
  await again.open({ one: note('again') });
  await store.write((tx) => again.record(tx, 'session_ended', 'ses_3', payload));
  await vi.waitFor(() => expect(seen.at(-1)).toBe('again ses_3'), SOON);
  expect(seen).toHaveLength(3);
  await again.close();
});

test('a fact is deleted only when every consumer has handled it, including those that start later', async () => {
  const facts = new Facts(common());
  const seen: string[] = [];
  const note = (who: string) => ({
    session_ended: async (tx: Tx, fact: Fact) => tx.afterCommit(() => void seen.push(`${who} ${fact.ref}`)),
  });
  await store.write((tx) => facts.record(tx, 'session_ended', 'ses_1', payload));
  await facts.open({ one: note('one'), two: note('two') });
  await vi.waitFor(() => expect(seen.toSorted()).toEqual(['one ses_1', 'two ses_1']), SOON);
  await vi.waitFor(
    async () =>
      expect(await store.read((reader) => reader.all(reader.sql.selectFrom('facts').select('id')))).toEqual(
        [],
      ),
    SOON,
  );
  await facts.close();
});

test('a consumer that fails does not delay the others, and handles the fact again later', async () => {
  const facts = new Facts(common());
  const seen: string[] = [];
  let failures = 1;
  const note = (who: string, fail = false) => ({
    session_ended: async (tx: Tx, fact: Fact) => {
      if (fail && failures-- > 0) throw new Error('not now');
      tx.afterCommit(() => void seen.push(`${who} ${fact.ref}`));
    },
  });
  await store.write(async (tx) => {
    for (const ref of ['ses_1', 'ses_2']) await facts.record(tx, 'session_ended', ref, payload);
  });
  await facts.open({ failing: note('failing', true), other: note('other') });
  const handled = ['other ses_1', 'other ses_2', 'failing ses_1', 'failing ses_2'];
  await vi.waitFor(() => expect(seen).toEqual(handled), SOON);
  await facts.close();
});

test('a fact of a rolled-back transaction is never delivered', async () => {
  const facts = new Facts(common());
  const seen: string[] = [];
  await facts.open({
    one: { session_ended: async (tx, fact) => tx.afterCommit(() => void seen.push(fact.ref)) },
  });
  const undone = store.write(async (tx) => {
    await facts.record(tx, 'session_ended', 'ses_1', payload);
    throw new Error('undone');
  });
  await expect(undone).rejects.toThrow('undone');
  await store.write((tx) => facts.record(tx, 'session_ended', 'ses_2', payload));
  await vi.waitFor(() => expect(seen).toEqual(['ses_2']), SOON);
  await facts.close();
});

/** Looks often, because the test itself lets time pass. */
const AT_ONCE = { ...SOON, interval: 5 };

function handlers(carryOut: (intent: Intent) => Promise<unknown>): IntentHandlers {
  const input = (intent: Intent) => carryOut(intent).then(() => 0);
  const others = {
    discard: carryOut,
    pursue: carryOut,
    prepare: carryOut,
    collect: carryOut,
    collect_message: carryOut,
    collect_failure: carryOut,
    push: carryOut,
    forget_owner: carryOut,
    discard_worktree: carryOut,
  };
  return { start: carryOut, stop: carryOut, input, forget: carryOut, ...others };
}

test('carries out the intents of a session in order, and those of different sessions in parallel', async () => {
  const outbox = new Outbox(common());
  const done: string[] = [];
  let release = () => {};
  const blocked = new Promise<void>((resolve) => {
    release = resolve;
  });
  await outbox.open(
    handlers(async (intent) => {
      if (intent.lane === 'ses_a' && intent.kind === 'start') await blocked;
      done.push(`${intent.lane} ${intent.kind}`);
    }),
  );
  const last = await store.write(async (tx) => {
    await outbox.enqueue(tx, 'main', 'ses_a', 'start', {});
    await outbox.enqueue(tx, 'main', 'ses_b', 'start', {});
    return outbox.enqueue(tx, 'main', 'ses_a', 'stop', { grace_ms: 0 });
  });
  const outcome = outbox.outcome(last);
  await vi.waitFor(() => expect(done).toEqual(['ses_b start']), SOON);
  release();
  await outcome;
  expect(done).toEqual(['ses_b start', 'ses_a start', 'ses_a stop']);
  outbox.close();
});

test('carries out the intents that an earlier process left', async () => {
  const first = new Outbox(common());
  await store.write((tx) => first.enqueue(tx, 'main', 'ses_a', 'stop', { grace_ms: 7 }));
  first.close();
  const second = new Outbox(common());
  const seen: Intent[] = [];
  await second.open(handlers(async (intent) => void seen.push(intent)));
  await vi.waitFor(() => expect(seen).toHaveLength(1), SOON);
  expect(seen[0]).toMatchObject({ lane: 'ses_a', kind: 'stop', payload: { grace_ms: 7 } });
  second.close();
});

test('carries out what is enqueued before and during open once, in order', async () => {
  const first = new Outbox(common());
  const enqueue = (outbox: Outbox, grace_ms: number) =>
    store.write((tx) => outbox.enqueue(tx, 'main', 'ses_a', 'stop', { grace_ms }));
  await enqueue(first, 1);
  first.close();

  const read: Store['read'] = async (fn) => {
    const rows = await store.read(fn);
    await enqueue(second, 4);
    return rows;
  };
  const write: Store['write'] = (fn) => store.write(fn);
  const second = new Outbox({ ...common(), store: { read, write } as Store });
  await enqueue(second, 2);
  await store.write((tx) => second.enqueue(tx, 'main', 'ses_a', 'start', {}));
  await store.write((tx) => second.withdraw(tx, 'ses_a', ['start']));
  // The store may report a commit later than others see it.
  let report = () => {};
  await store.write((tx) => {
    const late = {
      get: tx.get.bind(tx),
      sql: tx.sql,
      database: tx.database,
      afterCommit: (fn: () => void) => {
        report = fn;
      },
    };
    return second.enqueue(late as unknown as Tx, 'main', 'ses_a', 'stop', { grace_ms: 3 });
  });

  const seen: unknown[] = [];
  await second.open(handlers(async ({ payload }) => void seen.push(payload)));
  report();
  await vi.waitFor(() => expect(second.size).toBe(0), SOON);
  expect(seen).toEqual([1, 2, 3, 4].map((grace_ms) => ({ grace_ms })));
  second.close();
});

test('carries out an intent that an earlier version stored with old names of its kind and fields', async () => {
  const first = new Outbox(common());
  const payload = { assignment_num: 1, prompt_id: 'prm_1' };
  const stored = JSON.stringify({ attempt_num: 1, prompt_id: 'prm_1' });
  await store.write(async (tx) => {
    await first.enqueue(tx, 'main', 'ses_a', 'collect_message', payload);
    await tx.run(tx.sql.updateTable('outbox').set({ kind: 'hear', payload: stored }));
  });
  first.close();
  const second = new Outbox(common());
  const seen: Intent[] = [];
  await second.open(handlers(async (intent) => void seen.push(intent)));
  await vi.waitFor(() => expect(seen).toHaveLength(1), SOON);
  expect(seen.map((intent) => [intent.kind, intent.payload])).toEqual([['collect_message', payload]]);
  second.close();
});

test('stores fields under the names that earlier versions read', async () => {
  const outbox = new Outbox(common());
  const stored = await store.write(async (tx) => {
    await outbox.enqueue(tx, 'main', 'agt_a', 'prepare', { assignment_num: 1 });
    return tx.all(tx.sql.selectFrom('outbox').select('payload'));
  });
  expect(stored).toEqual([{ payload: '{"attempt_num":1}' }]);
  const seen: Intent[] = [];
  await outbox.open(handlers(async (intent) => void seen.push(intent)));
  await vi.waitFor(() => expect(seen[0]?.payload).toEqual({ assignment_num: 1 }), SOON);
  outbox.close();
});

test('starts although a stored intent cannot be parsed, and carries out those of other lanes', async () => {
  const first = new Outbox(common());
  await store.write(async (tx) => {
    const id = await first.enqueue(tx, 'main', 'ses_a', 'start', {});
    await tx.run(tx.sql.updateTable('outbox').set({ payload: '{' }).where('id', '=', id));
    await first.enqueue(tx, 'main', 'ses_a', 'stop', { grace_ms: 0 });
    await first.enqueue(tx, 'main', 'ses_b', 'start', {});
  });
  first.close();
  const error = vi.fn();
  const second = new Outbox({ ...common(), log: { ...silentLog, error } as unknown as Logger });
  const done: string[] = [];
  await second.open(handlers(async ({ lane, kind }) => void done.push(`${lane} ${kind}`)));
  await vi.waitFor(() => expect(done).toEqual(['ses_b start']), SOON);
  await vi.waitFor(() => expect(error).toHaveBeenCalledOnce(), SOON);
  expect(error.mock.calls[0]![0]).toMatchObject({ err: expect.any(SyntaxError), lane: 'ses_a' });
  await store.write((tx) => second.withdraw(tx, 'ses_a', ['start']));
  await vi.waitFor(() => expect(done).toEqual(['ses_b start', 'ses_a stop']), SOON);
  second.close();
});

test('answers the waiter of an intent that its handler completed', async () => {
  const outbox = new Outbox(common());
  await outbox.open(
    handlers(async (intent) => {
      await store.write((tx) => outbox.complete(tx, intent));
      expect(await store.read((reader) => outbox.isPending(reader, 'ses_a', 'start'))).toBe(false);
      return 'done';
    }),
  );
  const id = await store.write((tx) => outbox.enqueue(tx, 'main', 'ses_a', 'start', {}));
  expect(await outbox.outcome(id)).toBe('done');
  outbox.close();
});

test('reports an unreachable node to the waiter and retries', async () => {
  const outbox = new Outbox(common());
  let tries = 0;
  await outbox.open(
    handlers(async () => {
      tries += 1;
      if (tries === 1) throw problems.nodeUnreachable();
    }),
  );
  const id = await store.write((tx) => outbox.enqueue(tx, 'far', 'ses_a', 'start', {}));
  await expect(outbox.outcome(id)).rejects.toThrow('failed to connect to remote node');
  outbox.retryNow('far');
  await vi.waitFor(async () => {
    expect(tries).toBe(2);
    expect(await store.read((reader) => reader.all(reader.sql.selectFrom('outbox').selectAll()))).toEqual([]);
  }, SOON);
  outbox.close();
});

test('skips a withdrawn intent and carries out the next', async () => {
  const outbox = new Outbox(common());
  const done: string[] = [];
  let away = true;
  await outbox.open(
    handlers(async ({ kind }) => {
      if (away) throw problems.nodeUnreachable();
      done.push(kind);
    }),
  );
  const id = await store.write((tx) => outbox.enqueue(tx, 'far', 'ses_a', 'start', {}));
  await expect(outbox.outcome(id)).rejects.toThrow('failed to connect to remote node');
  away = false;
  const forget = await store.write(async (tx) => {
    expect(await outbox.isPending(tx, 'ses_a', 'start')).toBe(true);
    await outbox.withdraw(tx, 'ses_a', ['start', 'stop']);
    expect(await outbox.isPending(tx, 'ses_a', 'start')).toBe(false);
    return outbox.enqueue(tx, 'far', 'ses_a', 'forget', {});
  });
  await outbox.outcome(forget);
  expect(done).toEqual(['forget']);
  outbox.close();
});

sqliteTest('rejects the waiter of an intent that is withdrawn in the same group commit', async () => {
  const outbox = new Outbox(common());
  // On a slow machine, the writes are in two groups, and the intent is carried out in between.
  await outbox.open(handlers(() => new Promise(() => {})));
  const [id] = await Promise.all([
    store.write((tx) => outbox.enqueue(tx, 'far', 'ses_a', 'stop', { grace_ms: 0 })),
    store.write((tx) => outbox.withdraw(tx, 'ses_a', ['stop'])),
  ]);
  await expect(outbox.outcome(id)).rejects.toThrow('failed to connect to remote node');
  outbox.close();
});

test('rejects the waiter of an intent that is withdrawn during its execution, and does not retry it', async () => {
  const outbox = new Outbox(common());
  let tries = 0;
  let fail = (_error: Error) => {};
  await outbox.open(
    handlers(() => {
      tries += 1;
      return new Promise((_resolve, reject) => {
        fail = reject;
      });
    }),
  );
  const id = await store.write((tx) => outbox.enqueue(tx, 'far', 'ses_a', 'start', {}));
  const outcome = outbox.outcome(id);
  await vi.waitFor(() => expect(tries).toBe(1), SOON);
  await Promise.all([
    expect(outcome).rejects.toThrow('failed to connect to remote node'),
    store.write((tx) => outbox.withdraw(tx, 'ses_a', ['start'])),
  ]);
  fail(problems.nodeUnreachable());
  const stop = await store.write((tx) => outbox.enqueue(tx, 'far', 'ses_a', 'stop', { grace_ms: 0 }));
  await vi.waitFor(() => expect(tries).toBe(2), SOON);
  fail(new Problem('conflict', 'refused', 'refused'));
  await expect(outbox.outcome(stop)).rejects.toThrow('refused');
  outbox.close();
});

test('deletes an intent that failed permanently, and gives the waiter the reason', async () => {
  const outbox = new Outbox(common());
  await outbox.open(handlers(() => Promise.reject(problems.agentNoStdin())));
  const id = await store.write((tx) => outbox.enqueue(tx, 'main', 'ses_a', 'start', {}));
  await expect(outbox.outcome(id)).rejects.toThrow('agent has no stdin');
  expect(await store.read((reader) => reader.all(reader.sql.selectFrom('outbox').selectAll()))).toEqual([]);
  outbox.close();
});

sqliteTest(
  'repeats an intent after an unexpected error less and less often, and logs each reason once',
  async () => {
    const log = { error: vi.fn(), warn: vi.fn() };
    const outbox = new Outbox({ ...common(), log: log as unknown as Logger });
    const errors: Error[] = [new TypeError('x is not a function'), problems.nodeUnreachable()];
    let error: Error | undefined = errors[0];
    const tries: number[] = [];
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'], now: 0 });
    try {
      const handle = async () => {
        tries.push(Date.now());
        if (error) throw error;
      };
      await outbox.open(handlers(handle));
      await store.write((tx) => outbox.enqueue(tx, 'main', 'ses_a', 'start', {}));
      const until = (check: () => void, ms: number) =>
        vi.waitFor(() => {
          vi.advanceTimersByTime(ms);
          check();
        }, AT_ONCE);
      await until(() => expect(tries.length).toBeGreaterThan(13), 10_000);
      expect(tries.at(-1)! - tries.at(-2)!).toBeGreaterThanOrEqual(limits.unexpected_pause_ms_max);
      expect(log.error.mock.calls).toEqual([
        [{ err: error, intent: 'start', lane: 'ses_a', node_id: 'main', retry_ms: 500 }, expect.any(String)],
      ]);
      [, error] = errors;
      await until(() => expect(log.warn).toHaveBeenCalledOnce(), limits.unexpected_pause_ms_max);
      expect(log.warn.mock.lastCall![0]).toMatchObject({ retry_ms: limits.outbox_retry_ms_max });
      error = undefined;
      await until(() => expect(outbox.size).toBe(0), 1_000);
    } finally {
      vi.useRealTimers();
      outbox.close();
    }
  },
);

sqliteTest('carries out the next intent at once if the one that is repeated is withdrawn', async () => {
  const outbox = new Outbox(common());
  const done: string[] = [];
  await outbox.open(
    handlers(async ({ kind }) => {
      if (kind === 'start') throw new TypeError('x is not a function');
      done.push(kind);
    }),
  );
  const [start, stop] = await store.write(async (tx) => [
    await outbox.enqueue(tx, 'main', 'ses_a', 'start', {}),
    await outbox.enqueue(tx, 'main', 'ses_a', 'stop', { grace_ms: 0 }),
  ]);
  const stopped = outbox.outcome(stop!);
  await expect(outbox.outcome(start!)).rejects.toThrow('x is not a function');
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  try {
    await store.write((tx) => outbox.withdraw(tx, 'ses_a', ['start']));
    await stopped;
  } finally {
    vi.useRealTimers();
    outbox.close();
  }
  expect(done).toEqual(['stop']);
});

test('repeats an intent whose handler failed because of the database, and rejects the waiter', async () => {
  const outbox = new Outbox(common());
  const handle = vi
    .fn(async () => {})
    .mockRejectedValueOnce(storageFailed())
    .mockRejectedValueOnce(noSpace());
  await outbox.open(handlers(handle));
  const id = await store.write((tx) => outbox.enqueue(tx, 'main', 'ses_a', 'start', {}));
  await expect(outbox.outcome(id)).rejects.toThrow('storage does not answer');
  await vi.waitFor(() => expect(handle).toHaveBeenCalledTimes(3), SOON);
  await vi.waitFor(
    async () =>
      expect(await store.read((reader) => reader.all(reader.sql.selectFrom('outbox').selectAll()))).toEqual(
        [],
      ),
    SOON,
  );
  outbox.close();
});

test('rejects a waiter after close, and keeps the intent', async () => {
  const outbox = new Outbox(common());
  await outbox.open(handlers(async () => {}));
  outbox.close();
  const id = await store.write((tx) => outbox.enqueue(tx, 'main', 'ses_a', 'start', {}));
  await expect(outbox.outcome(id)).rejects.toThrow('service is shutting down');
  expect(await store.read((reader) => reader.all(reader.sql.selectFrom('outbox').selectAll()))).toHaveLength(
    1,
  );
});

test('repeats an intent that cannot be deleted, and continues its lane', async () => {
  let full = false;
  const write: Store['write'] = (fn) => (full ? Promise.reject(problems.diskSpace()) : store.write(fn));
  const outbox = new Outbox({ ...common(), store: { read: (fn) => store.read(fn), write } as Store });
  const done: string[] = [];
  const carryOut = async (intent: Intent) => {
    done.push(intent.kind);
    if (intent.kind === 'start') throw problems.workdirMissing();
    return 'stopped';
  };
  await outbox.open(handlers(carryOut));
  const [start, stop] = await store.write(async (tx) => {
    const enqueue = outbox.enqueue.bind(outbox);
    tx.afterCommit(() => (full = true));
    return [
      await enqueue(tx, 'main', 'ses_a', 'start', {}),
      await enqueue(tx, 'main', 'ses_a', 'stop', { grace_ms: 0 }),
    ];
  });
  const stopped = outbox.outcome(stop);
  await expect(outbox.outcome(start)).rejects.toThrow('workdir does not exist');
  full = false;
  expect(await stopped).toBe('stopped');
  expect(done).toEqual(['start', 'start', 'stop']);
  await vi.waitFor(async () => {
    const left = await store.read((reader) => reader.all(reader.sql.selectFrom('outbox').select('id')));
    expect(left).toEqual([]);
  }, SOON);
  outbox.close();
});
