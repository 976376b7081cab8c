/** The feed on PostgreSQL, where an entry may be committed before one with a lower number. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect } from 'vitest';
import type { Store, Tx } from '../store/store.ts';
import { holdWrite } from '../testing/held-write.ts';
import { postgresTest as test } from '../testing/postgres.ts';
import { stores, type TestStore } from '../testing/stores.ts';
import { Feed } from './feed.ts';
import type { Position } from './position.ts';
import { type Frame, parseFrames } from './testing.ts';

let opened: TestStore;
let store: Store;
let feed: Feed;

beforeEach(async () => {
  opened = await stores[1].open();
  store = opened.store;
  feed = new Feed({ store, clock: { now: () => 1_000 } });
});
afterEach(async () => {
  feed.close();
  await opened.remove();
});

const append =
  (name: string, to = feed) =>
  (tx: Tx) =>
    to.append(tx, 'agent', 'usr_1', { name });
const nameOf = ({ data }: Frame) => (data.record as { name: string }).name;

/** A follower, and what it has received. */
function follow(position: Position, from = feed) {
  const stop = new AbortController();
  let text = '';
  const read = async () => {
    for await (const bytes of from.follow(() => true, position, stop.signal)) text += bytes.toString();
  };
  const ended = read();
  ended.catch(() => stop.abort());
  const frames = () => parseFrames(text);
  return {
    frames,
    names: () => frames().map(nameOf),
    /** Ends the stream once it contains an entry with this name. */
    until: async (name: string): Promise<string[]> => {
      while (!stop.signal.aborted && !frames().some((frame) => nameOf(frame) === name)) await sleep(5);
      stop.abort();
      await ended;
      const ids = frames().map(({ id }) => id);
      expect(ids).toEqual(ids.toSorted((a, b) => a! - b!));
      return frames().map(nameOf);
    },
  };
}

test('an entry waits for lower numbers that an open write may commit', async () => {
  await store.write(append('a'));
  const early = [follow({ after: 0 }), follow('start')];
  const held = await holdWrite(store, append('b'));
  await store.write(append('c'));
  const other_plane = new Feed({ store, clock: { now: () => 1_000 } });
  const late = [follow({ after: 0 }), follow('start'), follow({ after: 0 }, other_plane)];
  while (late.some((follower, at) => at !== 1 && follower.names().length === 0)) await sleep(5);
  await sleep(50);
  for (const follower of [...early, ...late]) expect(follower.names()).not.toContain('c');
  await held.commit();
  await store.write(append('d'));
  expect(await early[0]!.until('d')).toEqual(['a', 'b', 'c', 'd']);
  expect(await early[1]!.until('d')).toEqual(expect.arrayContaining(['b', 'c', 'd']));
  expect(await late[0]!.until('d')).toEqual(['a', 'b', 'c', 'd']);
  expect(await late[1]!.until('d')).toEqual(['b', 'c', 'd']);
  expect(await late[2]!.until('c')).toEqual(['a', 'b', 'c']);
  other_plane.close();
});

test('an entry is sent when the write with lower numbers is rolled back, which nobody reports', async () => {
  await store.write(append('a'));
  const follower = follow({ after: 0 });
  const held = await holdWrite(store, append('b'));
  await store.write(append('c'));
  await held.rollBack();
  expect(await follower.until('c')).toEqual(['a', 'c']);
});

test('a position that a follower was given stays valid while lower numbers are open', async () => {
  await store.write(append('a'));
  await store.write(append('b'));
  const before = follow({ after: 0 });
  await before.until('b');
  const last = before.frames().at(-1)!.id!;
  const held = await holdWrite(store, append('c'));
  const again = new Feed({ store, clock: { now: () => 1_000 } });
  const follower = follow({ after: last }, again);
  const other = follow({ after: last + 1_000 }, again);
  while (other.frames().length === 0) await sleep(5);
  expect(other.frames()[0]).toMatchObject({ data: { code: 'reset', head: last } });
  expect(follower.frames()).toEqual([]);
  await held.commit();
  await store.write(append('d', again));
  expect(await follower.until('d')).toEqual(['c', 'd']);
  again.close();
});

test('no follower skips or repeats an entry, whatever the order of the commits', async () => {
  const committed: string[] = [];
  const write = async (writer: number) => {
    for (let i = 0; i < 6; i++) {
      const names = Array.from({ length: 1 + (i % 3) }, (_, at) => `${writer}.${i}.${at}`);
      const appendAll = async (tx: Tx) => {
        for (const name of names) await append(name)(tx);
      };
      const held = await holdWrite(store, appendAll);
      if (i % 3 === 2) await held.rollBack();
      else {
        await held.commit();
        committed.push(...names);
      }
    }
  };
  const first = follow({ after: 0 });
  const resumed: { skipped: string[]; follower: ReturnType<typeof follow> }[] = [];
  let writing = true;
  const resume = async () => {
    while (writing && resumed.length < 20) {
      const sent = first.frames().slice(0, Math.floor(Math.random() * (first.frames().length + 1)));
      resumed.push({ skipped: sent.map(nameOf), follower: follow({ after: sent.at(-1)?.id ?? 0 }) });
      await sleep(20);
    }
  };
  const resuming = resume();
  await Promise.all([1, 2, 3, 4].map(write)).finally(() => (writing = false));
  await resuming;
  await store.write(append('last'));
  const all = await first.until('last');
  expect(all.toSorted()).toEqual([...committed, 'last'].toSorted());
  for (const { skipped, follower } of resumed) {
    expect([...skipped, ...(await follower.until('last'))]).toEqual(all);
  }
});
