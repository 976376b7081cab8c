/** What every store must do, whatever its database. */
import { afterEach, beforeEach, describe, expect } from 'vitest';
import { limits } from '../base/limits.ts';
import { stores, type TestStore } from '../testing/stores.ts';
import { StaleBatch, type Store, TransactionEnded, type Tx } from './store.ts';
import { addAgent, addSession, batch } from './testing.ts';

const setMeta = (tx: Tx, key: string, value: string) =>
  tx.run(tx.sql.insertInto('meta').values({ key, value }));

describe.each(stores)('$kind', ({ open, it }) => {
  let opened: TestStore;
  let store: Store;

  beforeEach(async () => {
    opened = await open();
    store = opened.store;
  });
  afterEach(() => opened.remove());

  const metaKeys = () =>
    store.read(async (r) =>
      (await r.all(r.sql.selectFrom('meta').select('key').orderBy('key'))).map((row) => row.key),
    );

  it('reads see a write once it is acknowledged', async () => {
    await store.write((tx) => setMeta(tx, 'a', '1'));
    expect(await metaKeys()).toEqual(['a']);
  });

  it('a visit of rows ends early or with an error', async () => {
    for (const key of ['a', 'b', 'c']) await store.write((tx) => setMeta(tx, key, '1'));
    const keysVisited = (visit: (key: unknown) => boolean) =>
      store.read(async (reader) => {
        const keys: unknown[] = [];
        await reader.each(reader.sql.selectFrom('meta').select('key').orderBy('key'), ([key]) => {
          keys.push(key);
          return visit(key);
        });
        return keys;
      });
    expect(await keysVisited(() => true)).toEqual(['a', 'b', 'c']);
    expect(await keysVisited((key) => key !== 'b')).toEqual(['a', 'b']);
    const failing = keysVisited(() => {
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(await keysVisited(() => true)).toEqual(['a', 'b', 'c']);
  });

  it('a value that cannot be computed is not remembered', async () => {
    const fail = () => {
      throw new Error('no');
    };
    await expect(store.cachedRead('a key', fail)).rejects.toThrow('no');
    expect(await store.cachedRead('a key', () => 1)).toBe(1);
  });

  it('a failed write rolls back only its own changes', async () => {
    const results = await Promise.allSettled([
      store.write((tx) => setMeta(tx, 'a', '1')),
      store.write(async (tx) => {
        await setMeta(tx, 'b', '1');
        throw new Error('no');
      }),
      store.write((tx) => setMeta(tx, 'c', '1')),
    ]);
    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await metaKeys()).toEqual(['a', 'c']);
  });

  it('queued statements run in order, before later ones, and their rows are there before the commit', async () => {
    let seen: unknown[] = [];
    await store.write(async (tx) => {
      const put = (key: string) => tx.sql.insertInto('meta').values({ key, value: '1' }).returning('key');
      let returned: { key: string }[] = [];
      tx.queue(put('a'));
      tx.queue(put('b'), (rows) => {
        returned = rows;
      });
      seen = [await tx.all(tx.sql.selectFrom('meta').select('key').orderBy('key'))];
      tx.queue(put('c'));
      tx.afterCommit(() => seen.push(returned));
    });
    expect(seen).toEqual([[{ key: 'a' }, { key: 'b' }], [{ key: 'b' }]]);
    expect(await metaKeys()).toEqual(['a', 'b', 'c']);
  });

  it('a queued statement that fails rolls back its transaction, even if nothing follows it', async () => {
    const put = (tx: Tx, key: string) => tx.queue(tx.sql.insertInto('meta').values({ key, value: '1' }));
    await store.write((tx) => put(tx, 'a'));
    const failing = store.write((tx) => {
      put(tx, 'b');
      put(tx, 'a');
    });
    await expect(failing).rejects.toThrow();
    let late: Tx | undefined;
    await store.write((tx) => {
      late = tx;
      put(tx, 'c');
    });
    expect(() => put(late!, 'd')).toThrow(TransactionEnded);
    expect(await metaKeys()).toEqual(['a', 'c']);
  });

  it('callbacks after a commit run in order, and never after a rollback', async () => {
    const seen: string[] = [];
    await store.write((tx) => tx.afterCommit(() => seen.push('first')));
    await Promise.allSettled([
      store.write((tx) => {
        tx.afterCommit(() => seen.push('undone'));
        throw new Error('no');
      }),
      store.write((tx) => {
        tx.afterCommit(() => seen.push('second'));
        tx.afterCommit(() => seen.push('third'));
      }),
    ]);
    expect(seen).toEqual(['first', 'second', 'third']);
  });

  it('ingest stores events and the offset together, with consecutive numbers', async () => {
    const num = await addAgent(store, 'agt_1');
    await addSession(store, num, 'ses_1');
    const heard: number[] = [];
    store.onIngested((_, appended) => heard.push(appended.last_seq));
    const first = await store.ingest(batch('agt_1', 'ses_1', 0, ['one\n', 'two\n']));
    const second = await store.ingest(batch('agt_1', 'ses_1', 8, ['three\n']));
    expect([first.first_seq, first.last_seq, second.first_seq, second.last_seq]).toEqual([1, 2, 3, 3]);
    expect(heard).toEqual([2, 3]);
    const rows = await store.read((r) =>
      r.all(r.sql.selectFrom('events').select(['seq', 'offset']).orderBy('seq')),
    );
    expect(rows.map((row) => [row.seq, row.offset])).toEqual([
      [1, 0],
      [2, 4],
      [3, 8],
    ]);
  });

  it('ingest rejects a batch that does not begin at the committed offset, and stores none of it', async () => {
    const num = await addAgent(store, 'agt_1');
    await addSession(store, num, 'ses_1');
    await store.ingest(batch('agt_1', 'ses_1', 0, ['one\n']));
    for (const from of [0, 3, 5]) {
      await expect(store.ingest(batch('agt_1', 'ses_1', from, ['x']))).rejects.toBeInstanceOf(StaleBatch);
    }
    const head = await store.read((r) => r.get(r.sql.selectFrom('heads').selectAll()));
    expect(head!.last_seq).toBe(1);
  });

  it('answers many batches in order, each visible to reads', async () => {
    const num = await addAgent(store, 'agt_1');
    await addSession(store, num, 'ses_1');
    const heard: number[] = [];
    store.onIngested((_, appended) => heard.push(appended.last_seq));
    const text = 'x'.repeat(400_000);
    const seen: number[] = [];
    await Promise.all(
      Array.from({ length: 12 }, async (_, i) => {
        await store.ingest(batch('agt_1', 'ses_1', i * text.length, [text]));
        seen.push(i + 1);
        const head = await store.read((r) => r.get(r.sql.selectFrom('heads').select('last_seq')));
        expect(head!.last_seq).toBeGreaterThanOrEqual(i + 1);
      }),
    );
    expect(seen).toEqual(Array.from({ length: 12 }, (_, i) => i + 1));
    expect(heard).toEqual(seen);
  });

  it('rejects the batches after a rejected one, and stores those before it', async () => {
    const num = await addAgent(store, 'agt_1');
    await addSession(store, num, 'ses_1');
    const results = await Promise.allSettled([
      store.ingest(batch('agt_1', 'ses_1', 0, ['one\n'])),
      store.write((tx) => setMeta(tx, 'between', '1')),
      store.ingest(batch('agt_1', 'ses_1', 5, ['two\n'])),
      store.ingest(batch('agt_1', 'ses_1', 9, ['three\n'])),
    ]);
    expect(results.map((result) => result.status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'rejected',
    ]);
    expect(await metaKeys()).toEqual(['between']);
    const rows = await store.read((r) => r.all(r.sql.selectFrom('events').select('offset')));
    expect(rows.map((row) => row.offset)).toEqual([0]);
  });

  it('ingest rejects the session of a deleted agent', async () => {
    const num = await addAgent(store, 'agt_1');
    await addSession(store, num, 'ses_1');
    await store.ingest(batch('agt_1', 'ses_1', 0, ['one\n']));
    await store.write((tx) => tx.run(tx.sql.deleteFrom('agents').where('num', '=', num)));
    await expect(store.ingest(batch('agt_1', 'ses_1', 4, ['x']))).rejects.toThrow();
  });

  it('a number that is reused after a rollback does not lead to the wrong agent', async () => {
    const undone = store.write(async (tx) => {
      await tx.run(tx.sql.insertInto('meta').values({ key: 'x', value: '' }));
      throw new Error('no');
    });
    await expect(undone).rejects.toThrow('no');
    const num = await addAgent(store, 'agt_1');
    await addSession(store, num, 'ses_1');
    const appended = await store.ingest(batch('agt_1', 'ses_1', 0, ['one\n']));
    const bytes = 4 + limits.event_row_bytes;
    expect(appended).toEqual({ agent_id: 'agt_1', agent_num: num, first_seq: 1, last_seq: 1, bytes });
  });

  it('a closed store rejects writes and has finished earlier ones', async () => {
    const pending = store.write((tx) => setMeta(tx, 'a', '1'));
    await store.close();
    await pending;
    await expect(store.write(() => 1)).rejects.toThrow('closed');
  });
});
