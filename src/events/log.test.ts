import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sleep } from '../base/async.ts';
import { systemClock } from '../base/clock.ts';
import { MIB } from '../base/limits.ts';
import { silentLog } from '../base/log.ts';
import type { Store } from '../store/store.ts';
import { addAgent, addSession, batch } from '../store/testing.ts';
import { emptyStores, stores } from '../testing/stores.ts';
import { History } from './history.ts';
import { type EventLog, openEventLog } from './log.ts';
import { type Position, parsePosition } from './position.ts';
import { segmentStorage } from './segment-storage.ts';
import { type Frame, parseFrames, storedSegments } from './testing.ts';

describe.each(stores)('$kind', ({ open, it }) => {
  let folder: string;
  const empty = emptyStores(open);
  let store: Store;
  let events: EventLog;
  let num: number;
  let offset: number;

  beforeEach(async () => {
    store = await empty.open();
    folder = await mkdtemp(join(tmpdir(), 'svc-events-'));
    events = openEventLog({ store, data_dir: folder, clock: systemClock, log: silentLog });
    num = await addAgent(store, 'agt_1');
    await addSession(store, num, 'ses_1');
    offset = 0;
  });
  afterEach(async () => {
    await events.close();
    await empty.clear();
    await rm(folder, { recursive: true, force: true });
  });

  async function output(...texts: (string | Uint8Array)[]): Promise<void> {
    const made = batch('agt_1', 'ses_1', offset, texts);
    offset = made.to;
    await store.ingest(made);
  }

  /** Follows until `enough` returns true. `seen` gets the frames as they arrive. */
  async function follow(
    position: Position,
    enough: (frames: Frame[]) => boolean,
    { log = events, seen = [] }: { log?: EventLog; seen?: Frame[] } = {},
  ): Promise<Frame[]> {
    const stop = new AbortController();
    for await (const bytes of log.follow('agt_1', position, stop.signal)) {
      seen.push(...parseFrames(bytes.toString()));
      if (enough(seen)) stop.abort();
    }
    return seen;
  }

  const count = (n: number) => (frames: Frame[]) => frames.length >= n;
  const ids = (frames: Frame[]) => frames.map((frame) => frame.id);

  it('output frames have exactly the documented format', async () => {
    await output('héllo\n', Buffer.from([0xff, 0x00]), 'a"\u0000\\\r');
    const stop = new AbortController();
    let text = '';
    for await (const bytes of events.follow('agt_1', 'start', stop.signal)) {
      text += bytes.toString();
      if (text.includes('"seq":3')) stop.abort();
    }
    const base = '"agent_id":"agt_1","session_id":"ses_1"';
    expect(text).toBe(
      'retry: 1000\n\n' +
        `id: 1\nevent: output\ndata: {"type":"output",${base},"seq":1,"ts":1700000000.123,"stream":"stdout","data":"héllo\\n"}\n\n` +
        `id: 2\nevent: output\ndata: {"type":"output",${base},"seq":2,"ts":1700000000.123,"stream":"stdout","data":"/wA=","encoding":"base64"}\n\n` +
        `id: 3\nevent: output\ndata: {"type":"output",${base},"seq":3,"ts":1700000000.123,"stream":"stdout","data":"a\\"\\u0000\\\\\\r"}\n\n`,
    );
  });

  it('live frames are identical to replayed ones', async () => {
    const texts = ['é', Buffer.from([0xc3]), 'plain\n', '', '\u2028', '😀'];
    const live = follow({ after: 0 }, count(7));
    await output(...texts);
    await store.write((tx) =>
      events.append(tx, 'agt_1', [
        { type: 'status', session_id: 'ses_1', ts_ms: 5, fields: { status: 'running', note: 'ü' } },
      ]),
    );
    expect(await live).toEqual(await follow('start', count(7)));
  });

  it('a follower gets stored and new events, each number once and in order', async () => {
    await output('1', '2', '3');
    const following = follow('start', count(6));
    await output('4');
    await output('5', '6');
    expect(ids(await following)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('a follower resumes after its position, or a number of events before the newest', async () => {
    await output('1', '2', '3');
    expect(ids(await follow({ after: 1 }, count(2)))).toEqual([2, 3]);
    expect(ids(await follow({ tail: 1 }, count(1)))).toEqual([3]);
    expect(ids(await follow({ tail: 99 }, count(3)))).toEqual([1, 2, 3]);
  });

  it('a position beyond the head gets a reset, followed by live events', async () => {
    await output('1', '2');
    for (const after of [3, 2 ** 63]) {
      const seen: Frame[] = [];
      const following = follow({ after }, count(2), { seen });
      await expect.poll(() => seen).toHaveLength(1);
      await output('x');
      const [reset, next] = await following;
      expect(reset!.event).toBe('error');
      expect(reset!.data).toMatchObject({ type: 'error', code: 'reset', head: reset!.id });
      expect(next!.id).toBe(reset!.id + 1);
    }
  });

  it('a gap is reported, followed by the remaining events', async () => {
    await output('1', '2', '3', '4');
    await store.write((tx) => tx.run(tx.sql.deleteFrom('events').where('seq', '<=', 2)));
    const frames = await follow({ after: 0 }, count(3));
    expect(ids(frames)).toEqual([2, 3, 4]);
    expect(frames[0]!.data).toMatchObject({
      type: 'error',
      code: 'events_truncated',
      first_available: 3,
      seq: 2,
    });
  });

  it('a log without stored events reports that and continues live', async () => {
    await output('1', '2');
    await store.write((tx) => tx.run(tx.sql.deleteFrom('events')));
    const seen: Frame[] = [];
    const following = follow('start', count(2), { seen });
    await expect.poll(() => seen).toHaveLength(1);
    await output('3');
    const frames = await following;
    expect(ids(frames)).toEqual([2, 3]);
    expect(frames[0]!.data.first_available).toBe(3);
  });

  it('heartbeats repeat the position, have no number, and have two fields', async () => {
    const quick = openEventLog({
      store,
      data_dir: folder,
      clock: systemClock,
      log: silentLog,
      heartbeat_ms: 10,
    });
    const before = await follow('start', count(1), { log: quick });
    expect(before[0]).toMatchObject({ id: 0, event: 'heartbeat' });
    await output('1');
    // The first one may be due before the event is sent.
    const fromEvent = (frames: Frame[]) => frames.filter(({ id }) => id > 0);
    const enough = (frames: Frame[]) => fromEvent(frames).length >= 3;
    const frames = fromEvent(await follow('start', enough, { log: quick }));
    expect(ids(frames)).toEqual([1, 1, 1]);
    expect(Object.keys(frames[1]!.data)).toEqual(['type', 'ts']);
    expect(Number.isInteger(frames[1]!.data.ts)).toBe(true);
    await quick.close();
  });

  it('with many followers and writers, each follower gets every event once', async () => {
    const total = 300;
    const followers = Array.from({ length: 20 }, (_, i) =>
      follow(i % 2 ? 'start' : { after: 0 }, (frames) => frames.at(-1)?.id === total),
    );
    for (let i = 0; i < total; i += 3) {
      await output(`${i}`, 'x', 'y');
      if (i % 30 === 0) followers.push(follow({ after: i }, (frames) => frames.at(-1)?.id === total));
    }
    const expected = Array.from({ length: total }, (_, i) => i + 1);
    for (const [i, frames] of (await Promise.all(followers)).entries()) {
      expect(ids(frames)).toEqual(i < 20 ? expected : expected.slice((i - 20) * 30));
    }
  });

  it('a client that takes some frames directly gets every event once and in order', async () => {
    const behind = 300;
    const total = behind + 20;
    const stop = new AbortController();
    let text = '';
    let direct = 0;
    const write = (bytes: Buffer) => {
      // Busy for some time after every fifth write.
      if (++direct % 5 === 0) return false;
      text += bytes.toString();
      if (text.includes(`id: ${total}\n`)) stop.abort();
      return true;
    };
    const following = (async () => {
      for await (const bytes of events.follow('agt_1', { after: 0 }, stop.signal, write)) {
        text += bytes.toString();
        if (text.includes(`id: ${total}\n`)) stop.abort();
        if (direct % 3 === 0) await sleep(1);
      }
    })();
    for (let i = 0; i < behind; i += 3) await output(`${i}`, 'x'.repeat(20_000), 'y');
    await expect.poll(() => text.includes(`id: ${behind}\n`)).toBe(true);
    const before = direct;
    for (let i = behind + 1; i <= total; i++) {
      await output(`${i}`);
      await expect.poll(() => text.includes(`id: ${i}\n`), { interval: 5 }).toBe(true);
    }
    await following;
    expect(direct - before).toBeGreaterThan(5);
    expect(ids(parseFrames(text))).toEqual(Array.from({ length: total }, (_, i) => i + 1));
  });

  it('a follower that falls behind the shared tail reads from the database', async () => {
    const stop = new AbortController();
    const following = events.follow('agt_1', { after: 0 }, stop.signal);
    let text = (await following.next()).value!.toString();
    const waiting = following.next();
    await output('first');
    text += (await waiting).value!.toString();
    for (let i = 0; i < 40; i++) await output('x'.repeat(60_000));
    while (!text.includes('id: 41\n')) text += (await following.next()).value!.toString();
    expect(ids(parseFrames(text))).toEqual(Array.from({ length: 41 }, (_, i) => i + 1));
    stop.abort();
    expect((await following.next()).done).toBe(true);
  });

  it('rejects a stream of an unknown agent', async () => {
    await expect(events.follow('agt_x', 'start', AbortSignal.abort()).next()).rejects.toThrow(
      'agent not found',
    );
  });

  it('a rolled-back append uses no number', async () => {
    const body = { type: 'error', session_id: null, ts_ms: 1, fields: { code: 'x', error: 'x' } } as const;
    const undone = store.write(async (tx) => {
      await events.append(tx, 'agt_1', [body]);
      throw new Error('no');
    });
    await expect(undone).rejects.toThrow('no');
    expect((await store.write((tx) => events.append(tx, 'agt_1', [body]))).first_seq).toBe(1);
  });

  it('pages go both ways and filter by type', async () => {
    await output('1', '2', '3');
    await store.write((tx) =>
      events.append(tx, 'agt_1', [{ type: 'status', session_id: null, ts_ms: 1, fields: { status: 'x' } }]),
    );
    await output('5');
    const seqs = async (options: Parameters<EventLog['page']>[1]) =>
      (await events.page('agt_1', options)).events.map((item) => item.seq);
    expect(await seqs({ limit: 2 })).toEqual([1, 2]);
    expect(await seqs({ after: 2, limit: 2 })).toEqual([3, 4]);
    expect(await seqs({ before: 5, limit: 2 })).toEqual([3, 4]);
    expect(await seqs({ after: 1, before: 4, limit: 9 })).toEqual([2, 3]);
    expect(await seqs({ limit: 9, types: ['status'] })).toEqual([4]);
    expect(await seqs({ limit: 9, types: ['output'], before: 6 })).toEqual([1, 2, 3, 5]);
  });

  const MESSAGES = 9;
  /** Messages of 1 MiB, each between two lines of output. */
  async function largeMessages(): Promise<void> {
    const payload = JSON.stringify({ method: '_x', params: 'x'.repeat(1 * MIB) });
    const fields = { direction: 'from_agent', method: '_x' } as const;
    const at = { session_id: 'ses_1', ts_ms: 1_700_000_000_123 };
    const message = { type: 'acp_event', ...at, fields, payload } as const;
    for (let i = 0; i < MESSAGES; i++) {
      await output('line\n');
      await store.write((tx) => events.append(tx, 'agt_1', [message]));
    }
    await output('line\n');
  }
  const all_seqs = Array.from({ length: 2 * MESSAGES + 1 }, (_, i) => i + 1);

  it.for([['rows'], ['a segment']])('pages of large messages in %s end early', async ([where]) => {
    await largeMessages();
    if (where === 'a segment') {
      await events.close();
      const sealing = { from_bytes: 1, busy_ms: 0, keep_bytes: 0, idle_from_bytes: 1 };
      const clock = { now: () => 1_700_000_001_000 };
      events = openEventLog({ store, data_dir: folder, clock, log: silentLog, sealing });
      await events.runMaintenance();
      expect(await storedSegments(store, folder)).toHaveLength(1);
    }
    const forwards: number[][] = [];
    for (let after = 0, has_more = true; has_more; after = forwards.at(-1)!.at(-1)!) {
      const page = await events.page('agt_1', { after, limit: 100 });
      forwards.push(page.events.map(({ seq }) => seq));
      has_more = page.has_more;
    }
    expect(forwards.flat()).toEqual(all_seqs);
    expect(forwards[0]).toEqual(all_seqs.slice(0, 8));
    const backwards: number[][] = [];
    for (let before = 100, has_more = true; has_more; before = backwards[0]![0]!) {
      const page = await events.page('agt_1', { before, limit: 100 });
      backwards.unshift(page.events.map(({ seq }) => seq));
      has_more = page.has_more;
    }
    expect(backwards.flat()).toEqual(all_seqs);
    expect(backwards.at(-1)).toEqual(all_seqs.slice(-8));
    const history = new History(store, segmentStorage(store, join(folder, 'log')));
    const found: number[] = [];
    for await (const batch of history.at({ num, id: 'agt_1' }, [...all_seqs, 999])) {
      expect(batch.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(6 * MIB);
      found.push(...batch.map(({ record }) => record.seq));
    }
    expect(found.toSorted((a, b) => a - b)).toEqual(all_seqs);
  });

  it('replays large messages in parts of one message each', async () => {
    await largeMessages();
    const stop = new AbortController();
    const found: number[] = [];
    for await (const bytes of events.follow('agt_1', { after: 0 }, stop.signal)) {
      expect(bytes.length).toBeLessThan(2 * MIB);
      found.push(...ids(parseFrames(bytes.toString())));
      if (found.at(-1) === all_seqs.at(-1)) stop.abort();
    }
    expect(found).toEqual(all_seqs);
  });
});

test('positions are numbers', () => {
  expect(parsePosition({ last_event_id: '7', after: 3 })).toEqual({ after: 7 });
  expect(parsePosition({ tail: 3 })).toEqual({ tail: 3 });
  expect(parsePosition({})).toBe('start');
  for (const bad of ['x', '-1', '1.5', '0x10', '']) {
    expect(() => parsePosition({ last_event_id: bad })).toThrow('invalid last event id');
  }
});
