import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sleep } from '../base/async.ts';
import type { Store } from '../store/store.ts';
import { openTestStore } from '../testing/test-store.ts';
import { Feed } from './feed.ts';
import { limits } from './limits.ts';
import type { Position } from './position.ts';
import { type Frame, parseFrames } from './testing.ts';

let folder: string;
let store: Store;
let now = 1_000;
let feed: Feed;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-feed-'));
  store = await openTestStore(folder);
  now = 1_000;
  feed = new Feed({ store, clock: { now: () => now } });
});
afterEach(async () => {
  feed.close();
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

const tell = (owner_id: string, name: string) =>
  store.write((tx) => feed.append(tx, 'agent', owner_id, { name }));

async function follow(
  owner: string | null,
  position: Position,
  enough: number,
  from = feed,
): Promise<Frame[]> {
  const stop = new AbortController();
  let text = '';
  for await (const bytes of from.follow(
    ({ owner_id }) => owner === null || owner_id === owner,
    position,
    stop.signal,
  )) {
    text += bytes.toString();
    if (parseFrames(text).length >= enough) stop.abort();
  }
  return parseFrames(text);
}

test('each follower gets their own records in order, and root gets all', async () => {
  await tell('usr_1', 'a');
  await tell('usr_2', 'b');
  const one = follow('usr_1', { after: 0 }, 2);
  const all = follow(null, { after: 0 }, 3);
  await tell('usr_1', 'c');
  expect((await one).map((frame) => frame.id)).toEqual([1, 3]);
  expect((await all).map((frame) => (frame.data.record as { name: string }).name)).toEqual(['a', 'b', 'c']);
  expect((await all)[0]).toEqual({
    id: 1,
    event: 'agent',
    data: { type: 'agent', ts: 1, record: { name: 'a' } },
  });
});

/** Appends an entry whose commit this process hears of only when the returned function is called. */
function appendLate(name: string): Promise<() => void> {
  return store.write(async (tx) => {
    let report = () => {};
    const late = {
      sql: tx.sql,
      queue: tx.queue.bind(tx),
      afterCommit: (callback: () => void) => {
        report = callback;
      },
    } as typeof tx;
    await feed.append(late, 'agent', 'usr_1', { name });
    return () => report();
  });
}

test('a follower reads entries from the database that another process wrote or that are reported late', async () => {
  await tell('usr_1', 'a');
  const following = follow(null, { after: 0 }, 4);
  const report = await appendLate('b');
  await tell('usr_1', 'c');
  report();
  await tell('usr_1', 'd');
  expect((await following).map((frame) => frame.id)).toEqual([1, 2, 3, 4]);
  expect((await follow(null, { after: 1 }, 3)).map((frame) => frame.id)).toEqual([2, 3, 4]);
});

test('a follower without a position gets new entries only', async () => {
  await tell('usr_1', 'old');
  let is_following = true;
  const following = follow(null, 'start', 1).finally(() => {
    is_following = false;
  });
  // It is not known when the follower has read where the feed ends.
  for (; is_following; await sleep(20)) await tell('usr_1', 'new');
  expect((await following)[0]!.data.record).toEqual({ name: 'new' });
});

test('a rolled-back change is not sent and leaves no trace', async () => {
  const undone = store.write(async (tx) => {
    await feed.append(tx, 'agent', 'usr_1', { name: 'no' });
    throw new Error('no');
  });
  await expect(undone).rejects.toThrow('no');
  await tell('usr_1', 'yes');
  expect((await follow(null, { after: 0 }, 1))[0]!.data.record).toEqual({ name: 'yes' });
});

test('a position that is too old or too new gets a reset to the head, even after a restart', async () => {
  await tell('usr_1', 'old');
  await tell('usr_1', 'old too');
  now += limits.feed_keep_ms + 1;
  expect(await feed.trim()).toBe(true);
  expect(await feed.trim()).toBe(false);
  const again = new Feed({ store, clock: { now: () => now } });
  for (const after of [0, 1, 3, 2 ** 63]) {
    const [reset] = await follow(null, { after }, 1, again);
    expect(reset).toMatchObject({ id: 2, event: 'error', data: { type: 'error', code: 'reset', head: 2 } });
  }
  const following = follow(null, { after: 2 }, 1, again);
  await store.write((tx) => again.append(tx, 'agent', 'usr_1', { name: 'next' }));
  expect((await following)[0]).toMatchObject({ id: 3, event: 'agent' });
  again.close();
});

test('a follower gets what is committed right after it has the first frame', async () => {
  const stop = new AbortController();
  const frames = feed.follow(() => true, 'start', stop.signal);
  await frames.next();
  // The client has the beginning of the stream, and reads the lists. The service has not asked for the next frame yet.
  await tell('usr_1', 'new');
  const { value } = await frames.next();
  expect(parseFrames(value!.toString())).toMatchObject([{ data: { record: { name: 'new' } } }]);
  stop.abort();
  await frames.return(undefined);
});

test('announces to current followers what they may see, without storing it', async () => {
  await tell('usr_1', 'a');
  const announced = (owner_id: string, id: string) => ({
    owner_id,
    team_num: null,
    agent_id: id,
    record: { id },
  });
  feed.announce('activity', 'agents', [announced('usr_1', 'early')]);
  const frames = feed.follow(
    ({ owner_id }) => owner_id === 'usr_1',
    { after: 0 },
    new AbortController().signal,
  );
  let text = '';
  const receive = async (count: number) => {
    while (parseFrames(text).length < count) text += (await frames.next()).value;
  };
  await receive(1);
  feed.announce('activity', 'agents', [announced('usr_1', 'x'), announced('usr_2', 'y')]);
  await receive(2);
  await frames.return(undefined);
  const [stored, activity] = parseFrames(text);
  expect(stored).toMatchObject({ id: 1, event: 'agent' });
  expect(activity).toMatchObject({ id: 1, event: 'activity', data: { agents: [{ id: 'x' }] } });
  const later = follow('usr_1', { after: 0 }, 2);
  await tell('usr_1', 'b');
  expect((await later).map(({ id, event }) => [id, event])).toEqual([
    [1, 'agent'],
    [2, 'agent'],
  ]);
});

test('a follower that was slow gets the latest announcement of each kind', async () => {
  const one = (id: string) => [{ owner_id: 'usr_1', team_num: null, agent_id: null, record: { id } }];
  const frames = feed.follow(() => true, { after: 0 }, new AbortController().signal);
  await frames.next();
  feed.announce('activity', 'agents', one('a'));
  feed.announce('mail', 'mail', one('b'));
  feed.announce('activity', 'agents', one('c'));
  const sent = (await frames.next()).value!;
  await frames.return(undefined);
  expect(parseFrames(sent.toString()).map(({ data }) => data)).toMatchObject([
    { agents: [{ id: 'c' }] },
    { mail: [{ id: 'b' }] },
  ]);
});
