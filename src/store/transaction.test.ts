import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../base/log.ts';
import { openReader, openSqlite } from './sqlite.ts';
import {
  ForeignWait,
  NestedTransaction,
  type Reader,
  type Store,
  TransactionEnded,
  type Tx,
} from './store.ts';

let folder: string;
let store: Store;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-store-'));
  store = await openSqlite({ path: join(folder, 'svc.db'), log: silentLog });
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

const setMeta = (tx: Tx, key: string, value = '') => tx.run(tx.sql.insertInto('meta').values({ key, value }));
const keysOf = async (reader: Reader) =>
  (await reader.all(reader.sql.selectFrom('meta').select('key').orderBy('key'))).map(({ key }) => key);
const metaKeys = () => store.read(keysOf);

/** What a body must not wait for. */
const foreign: Record<string, () => Promise<unknown>> = {
  'a timer': () => sleep(0),
  'a turn of the event loop': () => nextTurn(),
  'a file': () => readFile(join(folder, 'svc.db')),
  'nothing that ever happens': () => new Promise(() => {}),
};

test.for(Object.entries(foreign))('rolls back a write that waits for %s', async ([, wait]) => {
  const results = await Promise.allSettled([
    store.write((tx) => setMeta(tx, 'before')),
    store.write(async (tx) => {
      tx.afterCommit(() => expect.unreachable());
      await setMeta(tx, 'during');
      await wait();
      await setMeta(tx, 'late');
    }),
    store.write((tx) => setMeta(tx, 'after')),
  ]);
  await sleep(10);
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(results[1]).toMatchObject({ reason: expect.any(ForeignWait) });
  expect(await metaKeys()).toEqual(['after', 'before']);
});

test.for(Object.entries(foreign))('fails a read that waits for %s', async ([, wait]) => {
  const read = store.read(async (reader) => {
    await keysOf(reader);
    await wait();
    return keysOf(reader);
  });
  await expect(read).rejects.toBeInstanceOf(ForeignWait);
  await store.write((tx) => setMeta(tx, 'a'));
  expect(await metaKeys()).toEqual(['a']);
});

test('the error names the body, its last statement and the caller', async () => {
  const write = store.write(async function waitsForATimer(tx) {
    await setMeta(tx, 'a');
    await sleep(1);
  });
  const error: Error = await write.then(
    () => expect.unreachable(),
    (reason) => reason,
  );
  expect(error.message).toContain('insert into "meta"');
  expect(error.message).toContain('waitsForATimer');
  expect(error.stack).toContain('transaction.test.ts');
});

test('a statement after the end of its body is rejected, and changes nothing', async () => {
  let kept: Tx | undefined;
  await store.write((tx) => {
    kept = tx;
  });
  await expect(setMeta(kept!, 'a')).rejects.toBeInstanceOf(TransactionEnded);
  await expect(keysOf(kept!)).rejects.toBeInstanceOf(TransactionEnded);
  await expect(kept!.memo('key', () => 1)).rejects.toBeInstanceOf(TransactionEnded);
  expect(() => kept!.afterCommit(() => {})).toThrow(TransactionEnded);
  // While another body runs.
  const other = store.write(async (tx) => {
    await setMeta(tx, 'b');
    await expect(setMeta(kept!, 'a')).rejects.toBeInstanceOf(TransactionEnded);
  });
  await other;
  expect(await metaKeys()).toEqual(['b']);
});

test('a body cannot continue after it failed', async () => {
  let late: Promise<unknown> | undefined;
  const write = store.write(async (tx) => {
    await setMeta(tx, 'a');
    await sleep(0);
    late = setMeta(tx, 'late');
    await late;
  });
  await expect(write).rejects.toBeInstanceOf(ForeignWait);
  await expect.poll(() => late !== undefined).toBe(true);
  await expect(late).rejects.toBeInstanceOf(TransactionEnded);
  expect(await metaKeys()).toEqual([]);
});

test.for([
  ['a read in a write', () => store.write(() => metaKeys())],
  ['a write in a write', () => store.write(() => store.write((tx) => setMeta(tx, 'inner')))],
  ['a read in a read', () => store.read(() => metaKeys())],
  ['a write in a read', () => store.read(() => store.write((tx) => setMeta(tx, 'inner')))],
  [
    'a write in a write after a statement',
    () =>
      store.write(async (tx) => {
        await setMeta(tx, 'outer');
        await store.write((inner) => setMeta(inner, 'inner'));
      }),
  ],
] as const)('rejects %s', async ([, nested]) => {
  await expect(nested()).rejects.toBeInstanceOf(NestedTransaction);
  expect(await metaKeys()).toEqual([]);
});

test('what a body starts may use the store after the body', async () => {
  let later: Promise<unknown> | undefined;
  await store.write(async (tx) => {
    await setMeta(tx, 'a');
    later ??= sleep(5).then(() => store.write((next) => setMeta(next, 'b')));
  });
  await later;
  expect(await metaKeys()).toEqual(['a', 'b']);
});

test('one body writes at a time, in the order of the calls', async () => {
  let order: string[] = [];
  await Promise.all(
    ['a', 'b', 'c'].map((name) =>
      store.write(async (tx) => {
        order = order.filter((step) => !step.startsWith(name));
        for (const step of [1, 2, 3]) {
          order.push(`${name}${step}`);
          await setMeta(tx, `${name}${step}`);
        }
      }),
    ),
  );
  expect(order.join(' ')).toBe('a1 a2 a3 b1 b2 b3 c1 c2 c3');
});

test('a read sees one snapshot, whatever is committed between its statements', async () => {
  // Reads of different lengths begin whenever a write is answered, and run while the next groups commit.
  const torn: unknown[] = [];
  let running = true;
  const reading = async () => {
    while (running) {
      await store.read(async (reader) => {
        const first = await keysOf(reader);
        for (let i = 0; i < 50; i++) await reader.get(reader.sql.selectFrom('meta').select('key'));
        const last = await keysOf(reader);
        if (first.length !== last.length) torn.push([first, last]);
      });
      await nextTurn();
    }
  };
  const readers = [reading(), reading(), reading()];
  for (let i = 0; i < 100; i++) {
    const written = store.write((tx) => setMeta(tx, `${i}`.padStart(3, '0'), 'x'.repeat(300_000)));
    void store.write((tx) => tx.run(tx.sql.updateTable('meta').set({ value: `${i}` })));
    await written;
    expect(await metaKeys()).toHaveLength(i + 1);
  }
  running = false;
  await Promise.all(readers);
  expect(torn).toEqual([]);
});

test('reads that overlap compute a remembered value once', async () => {
  let computed = 0;
  const remembered = (reader: Reader) =>
    reader.memo('keys', async () => {
      computed++;
      return keysOf(reader);
    });
  await store.write((tx) => setMeta(tx, 'a'));
  const all = await Promise.all([store.read(remembered), store.read(remembered), store.read(remembered)]);
  expect(all).toEqual([['a'], ['a'], ['a']]);
  expect(computed).toBe(1);
});

test('a value whose computation failed is computed again', async () => {
  const failing = (reader: Reader) =>
    reader.memo('keys', async () => {
      await keysOf(reader);
      await sleep(0);
    });
  await expect(store.read(failing)).rejects.toBeInstanceOf(ForeignWait);
  expect(await store.read((reader) => reader.memo('keys', () => keysOf(reader)))).toEqual([]);
});

test('a group that failed runs the bodies of its writes again', async () => {
  let runs = 0;
  const results = await Promise.allSettled([
    store.write(async (tx) => {
      runs++;
      await setMeta(tx, 'a');
    }),
    store.write((tx) => tx.run(tx.sql.insertInto('audit').values({ id: 1 } as never))),
    // Fails when the group commits.
    store.write(async (tx) => {
      await tx.run({ compile: () => ({ sql: 'PRAGMA defer_foreign_keys = ON', parameters: [] }) } as never);
      await tx.run(tx.sql.insertInto('heads').values({ agent_num: 77, last_seq: 0, first_seq: 1, bytes: 0 }));
    }),
  ]);
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
  expect(runs).toBeGreaterThan(1);
  expect(await metaKeys()).toEqual(['a']);
});

test('the reader of another thread has the same rules', async () => {
  await store.write((tx) => setMeta(tx, 'a'));
  const reader = openReader(store.source);
  try {
    expect(await reader.read(keysOf)).toEqual(['a']);
    await expect(reader.read(() => sleep(0))).rejects.toBeInstanceOf(ForeignWait);
    await store.write((tx) => setMeta(tx, 'b'));
    expect(await reader.read(keysOf)).toEqual(['a', 'b']);
  } finally {
    reader.close();
  }
});
