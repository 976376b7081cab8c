/** What bodies of transactions may wait for. */
import { readFile } from 'node:fs/promises';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect } from 'vitest';
import { stores, type TestStore } from '../testing/stores.ts';
import {
  ForeignWait,
  NestedTransaction,
  type Reader,
  type Store,
  TransactionEnded,
  type Tx,
} from './store.ts';

const setMeta = (tx: Tx, key: string, value = '') => tx.run(tx.sql.insertInto('meta').values({ key, value }));
const keysOf = async (reader: Reader) =>
  (await reader.all(reader.sql.selectFrom('meta').select('key').orderBy('key'))).map(({ key }) => key);

/** What a body must not wait for. */
const foreign: Record<string, () => Promise<unknown>> = {
  'a timer': () => sleep(0),
  'a turn of the event loop': () => nextTurn(),
  'a file': () => readFile(import.meta.filename),
  'nothing that ever happens': () => new Promise(() => {}),
};

describe.each(stores)('$kind', ({ open, it }) => {
  let opened: TestStore;
  let store: Store;

  beforeEach(async () => {
    opened = await open();
    store = opened.store;
  });
  afterEach(() => opened.remove());

  const metaKeys = () => store.read(keysOf);

  it.for(Object.entries(foreign))('rolls back a write that waits for %s', async ([, wait]) => {
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

  it.for(Object.entries(foreign))('fails a read that waits for %s', async ([, wait]) => {
    const read = store.read(async (reader) => {
      await keysOf(reader);
      await wait();
      return keysOf(reader);
    });
    await expect(read).rejects.toBeInstanceOf(ForeignWait);
    await store.write((tx) => setMeta(tx, 'a'));
    expect(await metaKeys()).toEqual(['a']);
  });

  it('the error names the body, its last statement and the caller', async () => {
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
    expect(error.stack).toContain('body.test.ts');
  });

  it('a statement after the end of its body is rejected, and changes nothing', async () => {
    let kept: Tx | undefined;
    await store.write((tx) => {
      kept = tx;
    });
    await expect(setMeta(kept!, 'a')).rejects.toBeInstanceOf(TransactionEnded);
    await expect(keysOf(kept!)).rejects.toBeInstanceOf(TransactionEnded);
    expect(() => kept!.afterCommit(() => {})).toThrow(TransactionEnded);
    // While another body runs.
    const other = store.write(async (tx) => {
      await setMeta(tx, 'b');
      await expect(setMeta(kept!, 'a')).rejects.toBeInstanceOf(TransactionEnded);
    });
    await other;
    expect(await metaKeys()).toEqual(['b']);
  });

  it('a body cannot continue after it failed', async () => {
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

  it.for([
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

  it('what a body starts may use the store after the body', async () => {
    let later: Promise<unknown> | undefined;
    await store.write(async (tx) => {
      await setMeta(tx, 'a');
      later ??= sleep(5).then(() => store.write((next) => setMeta(next, 'b')));
    });
    await later;
    expect(await metaKeys()).toEqual(['a', 'b']);
  });

  it('a read sees one snapshot, whatever is committed between its statements', async () => {
    // Reads of different lengths begin whenever a write is answered, and run while the next groups commit.
    const torn: unknown[] = [];
    let running = true;
    const reading = async () => {
      while (running) {
        await store.read(async (reader) => {
          const first = await keysOf(reader);
          for (let i = 0; i < 20; i++) await reader.get(reader.sql.selectFrom('meta').select('key'));
          const last = await keysOf(reader);
          if (first.length !== last.length) torn.push([first, last]);
        });
        await nextTurn();
      }
    };
    const readers = [reading(), reading(), reading()];
    for (let i = 0; i < 40; i++) {
      const written = store.write((tx) => setMeta(tx, `${i}`.padStart(3, '0'), 'x'.repeat(100_000)));
      void store.write((tx) => tx.run(tx.sql.updateTable('meta').set({ value: `${i}` })));
      await written;
      expect(await metaKeys()).toHaveLength(i + 1);
    }
    running = false;
    await Promise.all(readers);
    expect(torn).toEqual([]);
  });

  it('a value whose computation failed is computed again', async () => {
    const failing = store.cachedRead('keys', async (reader) => {
      await keysOf(reader);
      await sleep(0);
      return ['from the failed body'];
    });
    await expect(failing).rejects.toBeInstanceOf(ForeignWait);
    const keys = () => store.cachedRead('keys', keysOf);
    expect(await keys()).toEqual([]);
    // The failed body ends now.
    await sleep(5);
    expect(await keys()).toEqual([]);
  });
});
