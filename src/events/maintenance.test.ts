import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect } from 'vitest';
import { silentLog } from '../base/log.ts';
import { bytesOfLogs, type LogShare } from '../store/event-rows/heads.ts';
import { skipNumbers } from '../store/restored.ts';
import type { Reader, Store } from '../store/store.ts';
import { addAgent, addSession, batch } from '../store/testing.ts';
import { emptyStores, stores } from '../testing/stores.ts';
import { limits } from './limits.ts';
import { type EventLog, openEventLog } from './log.ts';
import type { Retention, Sealing } from './maintenance.ts';
import { OutputMissing } from './output.ts';
import { type Frame, parseFrames, SEARCHER, spoilSegment, storedSegments } from './testing.ts';

const HOUR = 60 * 60 * 1000;
const everything: Partial<Sealing> = { from_bytes: 1, busy_ms: 0, keep_bytes: 0, idle_from_bytes: 1 };

const ids = (frames: Frame[]) => frames.map((frame) => frame.id);
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

describe.each(stores)('$kind', ({ open: openStore, it }) => {
  let folder: string;
  const empty = emptyStores(openStore);
  let store: Store;
  let now: number;
  let retention: Partial<Retention>;
  let events: EventLog;
  let num: number;
  let offsets: { stdout: number; stderr: number };

  beforeEach(async () => {
    store = await empty.open();
    folder = await mkdtemp(join(tmpdir(), 'svc-maintenance-'));
    now = 1_700_000_000_000;
    retention = {};
    events = open(everything);
    num = await addAgent(store, 'agt_1');
    await addSession(store, num, 'ses_1');
    offsets = { stdout: 0, stderr: 0 };
  });
  afterEach(async () => {
    await events.close();
    await empty.clear();
    await rm(folder, { recursive: true, force: true });
  });

  function open(sealing: Partial<Sealing>, of: Store = store): EventLog {
    return openEventLog({
      store: of,
      data_dir: folder,
      clock: { now: () => now },
      log: silentLog,
      retention: () => retention,
      sealing,
    });
  }

  async function output(
    texts: (string | Uint8Array)[],
    stream: 'stdout' | 'stderr' = 'stdout',
  ): Promise<void> {
    const made = batch('agt_1', 'ses_1', offsets[stream], texts, { stream, ts_ms: now });
    offsets[stream] = made.to;
    await store.ingest(made);
  }

  const status = (text: string) =>
    store.write((tx) =>
      events.append(tx, 'agt_1', [
        { type: 'status', session_id: 'ses_1', ts_ms: now, fields: { status: text } },
      ]),
    );

  async function replay(after: number, until: number): Promise<Frame[]> {
    const stop = new AbortController();
    const frames: Frame[] = [];
    for await (const bytes of events.follow('agt_1', { after }, stop.signal)) {
      frames.push(...parseFrames(bytes.toString()));
      if (frames.at(-1)?.id === until) stop.abort();
    }
    return frames;
  }

  const rowSeqs = () =>
    store.read(async (r) =>
      (await r.all(r.sql.selectFrom('events').select('seq').orderBy('seq'))).map((row) => row.seq),
    );
  const segments = () => storedSegments(store, folder);

  /** Blocks of a segment that was never recorded, as after a kill. */
  async function addOrphan(path: string): Promise<void> {
    const data = Buffer.from('x');
    if (!store.files) {
      const block = { agent_num: num, path, at: 0, data };
      await store.write((tx) => tx.run(tx.sql.insertInto('segment_blocks').values(block)));
      return;
    }
    const file = join(folder, 'log', path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, data);
  }

  it('a replay is identical before and after sealing', async () => {
    await status('running');
    await output(['héllo\n', Buffer.from([0xff]), 'x'.repeat(70_000)]);
    await output(['to stderr\n'], 'stderr');
    await output(Array.from({ length: 5_000 }, (_, i) => `line ${i} ${'y'.repeat(100)}\n`));
    const before = await replay(0, 5_005);
    await events.runMaintenance();
    expect(await rowSeqs()).toEqual([1]);
    expect(await segments()).toHaveLength(1);
    expect(await replay(0, 5_005)).toEqual(before);
    expect(await replay(2_500, 5_005)).toEqual(before.slice(2_500));
  });

  it('a replay goes from segments to rows to live events without gaps or duplicates', async () => {
    await output(range(1, 100).map(String));
    await events.runMaintenance();
    await output(range(101, 150).map(String));
    await events.runMaintenance();
    await events.close();
    events = open({});
    await output(range(151, 180).map(String));
    const following = replay(0, 200);
    await output(range(181, 200).map(String));
    expect(ids(await following)).toEqual(range(1, 200));
  });

  it('followers keep their position during sealing', async () => {
    const total = 3_000;
    const following = Promise.all([replay(0, total), replay(0, total)]);
    for (let i = 0; i < total; i += 100) {
      await output(range(1, 100).map((n) => `${i + n}`.padEnd(500)));
      if (i % 500 === 0) await events.runMaintenance();
    }
    for (const frames of await following) expect(ids(frames)).toEqual(range(1, total));
  });

  it('pages include sealed events, in both directions and by type', async () => {
    await status('running');
    await output(['2', '3', '4']);
    await events.runMaintenance();
    await output(['5', '6']);
    await status('completed');
    const seqs = async (options: Parameters<EventLog['page']>[1]) =>
      (await events.page('agt_1', options)).events.map((item) => item.seq);
    expect(await seqs({ limit: 10 })).toEqual(range(1, 7));
    expect(await seqs({ limit: 3, before: 7 })).toEqual([4, 5, 6]);
    expect(await seqs({ limit: 10, before: 4 })).toEqual([1, 2, 3]);
    expect(await seqs({ limit: 10, types: ['status'] })).toEqual([1, 7]);
    expect(await seqs({ limit: 10, types: ['status'], before: 7 })).toEqual([1]);
    expect(await seqs({ limit: 2, types: ['output'], before: 8 })).toEqual([5, 6]);
    expect(await seqs({ limit: 4, types: ['output', 'error'], after: 1 })).toEqual([2, 3, 4, 5]);
  });

  it('output returns the exact bytes, in ranges, across segments and rows', async () => {
    const pieces: { stream: 'stdout' | 'stderr'; bytes: Buffer }[] = [];
    for (let i = 0; i < 400; i++) {
      const stream = i % 7 === 3 ? 'stderr' : 'stdout';
      const bytes = Buffer.from(Array.from({ length: (i * 37) % 900 }, (_, n) => (i + n) % 256));
      if (bytes.length === 0) continue;
      pieces.push({ stream, bytes });
      await output([bytes], stream);
      if (i === 150 || i === 300) await events.runMaintenance();
    }
    for (const stream of ['stdout', 'stderr', null] as const) {
      const expected = Buffer.concat(
        pieces.filter((piece) => stream === null || piece.stream === stream).map((piece) => piece.bytes),
      );
      const found = await events.output('agt_1', 'ses_1', stream);
      expect([found.size_bytes, found.lost_bytes]).toEqual([expected.length, 0]);
      const length = expected.length;
      for (const [from, to] of [
        [0, length],
        [1, 2],
        [length - 5, length],
        [Math.floor(length / 3), Math.floor(length / 2)],
        [Math.floor(length * 0.8), Math.floor(length * 0.9)],
      ] as const) {
        const parts: Buffer[] = [];
        for await (const part of found.read(from, to)) parts.push(part);
        expect(Buffer.concat(parts).equals(expected.subarray(from, to))).toBe(true);
      }
    }
  });

  it('finds ranges in a long log by binary search', async () => {
    const line = (i: number) => `${i}`.padStart(9, '0');
    for (let i = 0; i < 20_000; i += 1000) await output(range(i, i + 999).map(line));
    const found = await events.output('agt_1', 'ses_1', 'stdout');
    let text = '';
    for await (const part of found.read(9 * 15_000 + 3, 9 * 15_001)) text += part.toString();
    expect(text).toBe('015000');
  });

  it('reads all output if a read of the database runs again', async () => {
    await output(range(0, 999).map((i) => `${i}`.padEnd(1_000)));
    const { read } = store;
    store.read = (fn) =>
      read.call(store, async (reader) => {
        await fn(reader);
        return fn(reader);
      }) as never;
    const found = await events.output('agt_1', 'ses_1', null);
    let text = '';
    for await (const part of found.read(500, found.size_bytes)) text += part.toString();
    store.read = read;
    expect(text.length).toBe(999_500);
    expect(text.slice(-1_000)).toBe('999'.padEnd(1_000));
  });

  it.for([1, 2, 3, 4])('output is complete if it is sealed before read %i of the database', async (at) => {
    await output(range(0, 99).map((i) => `${i}`.padEnd(10)));
    // Caches the agent, so that the reads below are always the same ones.
    await events.output('agt_1', 'ses_1', 'stderr');
    const { read } = store;
    let reads = 0;
    store.read = async (fn) => {
      reads++;
      if (reads === at) {
        store.read = read;
        await events.runMaintenance();
      }
      return read.call(store, fn) as never;
    };
    const found = await events.output('agt_1', 'ses_1', 'stdout');
    store.read = read;
    expect([found.size_bytes, found.lost_bytes]).toEqual([1_000, 0]);
  });

  it.for([
    ['one stream', 'stdout'],
    ['both streams', null],
  ] as const)('reports output of %s that is deleted while it is read', async ([, stream]) => {
    await output(['first\n', 'first\n']);
    await events.runMaintenance();
    await output(['second\n', 'second\n']);
    await events.runMaintenance();
    now += 48 * HOUR;
    await output(['third\n']);
    const found = await events.output('agt_1', 'ses_1', stream);
    const reading = found.read(0, found.size_bytes);
    expect((await reading.next()).value!.toString()).toBe('first\n');
    retention = { days: 1 };
    await events.runMaintenance();
    await output(['fourth\n', 'fourth\n']);
    const rest = (async () => {
      let text = '';
      for await (const part of reading) text += part.toString();
      return text;
    })();
    await expect(rest).rejects.toThrow(new OutputMissing('bytes 12 to 26 of stdout are missing'));
    expect((await events.output('agt_1', 'ses_1', stream)).lost_bytes).toBe(26);
  });

  it('reads no output that was written after it was opened', async () => {
    await output(['one\n']);
    await output(['two\n'], 'stderr');
    const found = await events.output('agt_1', 'ses_1', null);
    await output(['three\n']);
    const texts: string[] = [];
    for (const sealed of [false, true]) {
      if (sealed) await events.runMaintenance();
      let text = '';
      for await (const part of found.read(0, 100)) text += part.toString();
      texts.push(text);
    }
    expect(texts).toEqual(['one\ntwo\n', 'one\ntwo\n']);
  });

  it('rejects the output of an unknown session', async () => {
    await expect(events.output('agt_1', 'ses_x', null)).rejects.toThrow('session not found');
  });

  it('retention by bytes deletes the oldest first, keeps status events and reports every gap', async () => {
    await status('running');
    await output(range(2, 50).map((n) => `${n}`.padEnd(1000)));
    await status('completed');
    await events.runMaintenance();
    await output(range(52, 60).map((n) => `${n}`.padEnd(1000)));
    retention = { bytes_per_agent: 12_000 };
    // The compressed segment is small, so the test sets its size to the original one.
    await store.write(async (tx) => {
      await tx.run(tx.sql.updateTable('segments').set({ bytes: 50_000 }));
      await tx.run(tx.sql.updateTable('heads').set((eb) => ({ bytes: eb('bytes', '+', 49_000) })));
    });
    await events.runMaintenance();
    const frames = await replay(0, 60);
    expect(ids(frames)).toEqual([1, 50, 51, ...range(52, 60)]);
    expect(frames[1]!.data).toMatchObject({ type: 'error', code: 'events_truncated', first_available: 51 });
    expect(frames[2]!.data).toMatchObject({ type: 'status', status: 'completed' });
    expect((await replay(1, 60))[0]!.data).toMatchObject({ code: 'events_truncated', first_available: 51 });
    const found = await events.output('agt_1', 'ses_1', 'stdout');
    expect([found.size_bytes, found.lost_bytes]).toEqual([9_000, 49_000]);
  });

  it('does not seal the events of an agent that is writing until they are large', async () => {
    await events.close();
    events = open({ ...everything, busy_from_bytes: 20_000, busy_ms: 1_000 });
    await output(['x'.repeat(10_000)]);
    await events.runMaintenance();
    expect(await segments()).toEqual([]);
    await output(['y'.repeat(10_000)]);
    await events.runMaintenance();
    expect(await segments()).toHaveLength(1);
    await output(['z'.repeat(10_000)]);
    now += 1_000;
    await events.runMaintenance();
    expect(await segments()).toHaveLength(2);
  });

  it('seals events whose numbers continue far ahead, as after a failover, and keeps the newest', async () => {
    const write = (count: number) => output(range(1, count).map((n) => `${n}`.padEnd(1_000)));
    await write(10);
    await events.runMaintenance();
    await events.close();
    events = open({ ...everything, keep_bytes: 5_000 });
    await store.write((tx) => skipNumbers(tx, { agent_num: num, last_seq: 10 }, 1_000_000_000, now));
    await write(100);
    await events.runMaintenance();
    expect(await segments()).toHaveLength(2);
    expect((await rowSeqs()).length).toBeLessThan(10);
    expect(await rowSeqs()).toContain(1_000_000_101);
  });

  it('retention by bytes deletes rows if nothing is sealed', async () => {
    await events.close();
    events = open({ from_bytes: 1e9, idle_from_bytes: 1e9 });
    for (let i = 0; i < 20; i++) await output(range(1, 100).map((n) => `${n}`.padEnd(100)));
    retention = { bytes_per_agent: 50_000 };
    await events.runMaintenance();
    const rows = await rowSeqs();
    expect(rows).toEqual(range(2_001 - Math.floor(50_000 / 148), 2_000));
    const head = await store.read((r) => r.get(r.sql.selectFrom('heads').selectAll()));
    expect(head!.first_seq).toBe(rows[0]);
    expect(head!.bytes).toBe(rows.length * 148);
  });

  it('retention by age deletes old segments and rows', async () => {
    retention = { days: 1 };
    await output(['old', 'old']);
    await events.runMaintenance();
    now += 23 * HOUR;
    await output(['young']);
    now += 2 * HOUR;
    await events.runMaintenance();
    expect(await segments()).toHaveLength(1);
    expect(ids(await replay(0, 3))).toEqual([2, 3]);
    await events.close();
    events = open({ from_bytes: 1e9, idle_from_bytes: 1e9 });
    await output(['a row']);
    now += 48 * HOUR;
    await output(['new']);
    await events.runMaintenance();
    expect(await rowSeqs()).toEqual([5]);
    expect(await segments()).toEqual([]);
  });

  it('total retention deletes the oldest segment of the owner’s agents', async () => {
    const other = await addAgent(store, 'agt_2');
    await addSession(store, other, 'ses_2');
    await store.ingest(batch('agt_2', 'ses_2', 0, ['x'.repeat(5_000)], { ts_ms: now }));
    await events.runMaintenance();
    now += HOUR;
    await output(['y'.repeat(5_000)]);
    await events.runMaintenance();
    const sizes = await store.read((r) => r.all(r.sql.selectFrom('segments').select('bytes').orderBy('id')));
    retention = { bytes_total: sizes[1]!.bytes };
    await events.runMaintenance();
    const left = await store.read((r) => r.all(r.sql.selectFrom('segments').select('agent_num')));
    expect(left).toEqual([{ agent_num: num }]);
  });

  const incompressible = (bytes: number) => Buffer.from(randomBytes(bytes).toString('base64'));

  /** Agents of others than the owner of `agt_1`, each with this many segments. */
  async function addLogs(prefix: string, share: Partial<LogShare>, agents: number, count = 1) {
    for (const n of range(1, agents)) {
      const [id, session_id] = [`agt_${prefix}${n}`, `ses_${prefix}${n}`];
      await addSession(store, await addAgent(store, id, share), session_id);
      for (let at = 0, i = 0; i < count; i++) {
        const made = batch(id, session_id, at, [incompressible(3_000)], { ts_ms: ++now });
        at = made.to;
        await store.ingest(made);
        await events.runMaintenance();
      }
    }
  }

  /** The agents with segments, each as often as it has one, oldest first. */
  const sealed = async () => {
    const query = (r: Reader) =>
      r.all(
        r.sql
          .selectFrom('segments')
          .innerJoin('agents', 'agents.num', 'segments.agent_num')
          .select('agents.id')
          .orderBy('last_ts'),
      );
    return (await store.read(query)).map(({ id }) => id);
  };

  const bytesOfAll = async () => store.read(bytesOfLogs);

  it('total retention deletes only logs of the owner who uses the most', async () => {
    await output([incompressible(3_000)]);
    await events.runMaintenance();
    await addLogs('other', { owner_id: 'usr_2' }, 4);
    retention = { bytes_total: (await bytesOfAll()) / 2 };
    await events.runMaintenance();
    expect(await sealed()).toEqual(['agt_1', 'agt_other4']);
    // Both use as much, so both have to give.
    retention = { bytes_total: 0 };
    await events.runMaintenance();
    expect(await sealed()).toEqual([]);
  });

  it('total retention deletes rows of the owner who uses the most before segments of others', async () => {
    await output([incompressible(3_000)]);
    await events.runMaintenance();
    await events.close();
    events = open({ from_bytes: 1e9, idle_from_bytes: 1e9 });
    await addLogs('other', { owner_id: 'usr_2' }, 1, 4);
    expect(await rowSeqs()).toEqual([1, 2, 3, 4]);
    retention = { bytes_total: (await bytesOfAll()) / 2 };
    await events.runMaintenance();
    expect(await rowSeqs()).toEqual([4]);
    expect(await sealed()).toEqual(['agt_1']);
  });

  it('total retention deletes nothing of others while the owner who uses the most goes on writing', async () => {
    await addLogs('mine', {}, 2);
    await addLogs('other', { owner_id: 'usr_2' }, 3);
    await events.close();
    let writes = 0;
    const writeOn = async () => {
      if (++writes > 6) return;
      now += limits.retention_shares_ms;
      const at = writes * incompressible(3_000).length;
      await store.ingest(batch('agt_other1', 'ses_other1', at, [incompressible(3_000)], { ts_ms: now }));
    };
    const growing = new Proxy(store, {
      get(target, key: keyof Store) {
        if (key === 'write') {
          return async (body: Parameters<Store['write']>[0]) => {
            const value = await target.write(body);
            await writeOn();
            return value;
          };
        }
        const value = target[key];
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    events = open({ from_bytes: 1e9, idle_from_bytes: 1e9 }, growing);
    retention = { bytes_total: (await bytesOfAll()) - 1 };
    await events.runMaintenance();
    expect((await sealed()).filter((id) => id.startsWith('agt_mine'))).toEqual(['agt_mine1', 'agt_mine2']);
    expect(writes).toBeGreaterThan(6);
  });

  it('total retention counts agents that were recovered from a node as those of the node', async () => {
    await output([incompressible(3_000)]);
    await events.runMaintenance();
    await addLogs('evil', { recovered_from: 'evil' }, 3);
    await addLogs('good', { recovered_from: 'good' }, 1);
    retention = { bytes_total: (await bytesOfAll()) - 3_000 };
    await events.runMaintenance();
    expect(await sealed()).toEqual(['agt_1', 'agt_evil2', 'agt_evil3', 'agt_good1']);
  });

  it('deleting an agent ends its followers and deletes its rows and segments', async () => {
    await output(['1', '2']);
    await events.runMaintenance();
    await output(['3']);
    let text = '';
    const following = (async () => {
      const { signal } = new AbortController();
      for await (const bytes of events.follow('agt_1', { after: 0 }, signal)) text += bytes.toString();
    })();
    await expect.poll(() => ids(parseFrames(text))).toEqual([1, 2, 3]);
    await store.write(async (tx) => {
      await events.drop(tx, num);
      await tx.run(tx.sql.deleteFrom('agents').where('num', '=', num));
    });
    await following;
    await events.runMaintenance();
    expect(await rowSeqs()).toEqual([]);
    expect(await segments()).toEqual([]);
    expect(await store.read((r) => r.all(r.sql.selectFrom('log_drops').selectAll()))).toEqual([]);
  });

  it('startup deletes blocks without a record and rows that a segment replaces', async () => {
    await output(range(1, 10).map(String));
    const rows = await store.read((r) => r.all(r.sql.selectFrom('events').selectAll()));
    await events.runMaintenance();
    // This is the state after a kill between recording the segment and deleting the rows.
    await store.write(async (tx) => {
      for (const row of rows) await tx.run(tx.sql.insertInto('events').values(row));
      await tx.run(tx.sql.updateTable('segments').set({ swept: 0 }));
    });
    await addOrphan(`${num}/orphan.seg`);
    expect(ids(await replay(0, 10))).toEqual(range(1, 10));
    expect(await segments()).toHaveLength(2);
    events.start();
    await expect.poll(rowSeqs, { timeout: 20_000 }).toEqual([]);
    await expect.poll(segments, { timeout: 20_000 }).toHaveLength(1);
    expect(ids(await replay(0, 10))).toEqual(range(1, 10));
  });

  it('reports a missing or damaged segment as a gap', async () => {
    await output(range(1, 5).map(String));
    await events.runMaintenance();
    await output(['6']);
    const [path] = await segments();
    const garbage = Buffer.from('garbage garbage garbage garbage garbage');
    await spoilSegment(store, folder, path!, garbage);
    expect((await replay(0, 6))[0]!.data).toMatchObject({ code: 'events_truncated', first_available: 6 });
    const { read, size_bytes } = await events.output('agt_1', 'ses_1', null);
    await expect(read(0, size_bytes).next()).rejects.toThrow(OutputMissing);
    await spoilSegment(store, folder, path!, null);
    expect(ids(await replay(2, 6))).toEqual([5, 6]);
  });

  it('a reader continues with what is left if the segment that it reads is deleted', async () => {
    await output(range(1, 900).map((n) => `${n}`.padEnd(1000)));
    await status('completed');
    await events.runMaintenance();
    const [path] = await segments();
    now += 48 * HOUR;
    await output(['902']);
    const stop = new AbortController();
    const following = events.follow('agt_1', { after: 0 }, stop.signal);
    let text = '';
    while (!text.includes('id: 1\n')) text += (await following.next()).value!.toString();
    expect(text).not.toContain('id: 900\n');
    retention = { days: 1 };
    await events.runMaintenance();
    expect(await segments()).not.toContain(path);
    while (!text.includes('id: 902\n')) text += (await following.next()).value!.toString();
    stop.abort();
    await following.return(undefined);
    const frames = parseFrames(text);
    // SQLite's segment is a file, which can be read until it is closed.
    const gap = frames.findIndex(({ data }) => data.code === 'events_truncated');
    expect(gap < 0).toBe(store.files !== null);
    const read = gap < 0 ? frames.length - 2 : gap;
    expect(ids(frames.slice(0, read))).toEqual(range(1, read));
    expect(frames.at(-2)).toMatchObject({ id: 901, data: { type: 'status', status: 'completed' } });
    if (gap < 0) expect(read).toBe(900);
    else expect(frames[gap]!.data.first_available).toBe(901);
  });

  it('search finds output within seconds, newest first', async () => {
    events.start();
    await output([
      'first Héllo world\n',
      '\u001b[31mERROR\u001b[0m: disk full\n',
      'another hello-world "quoted"\n',
    ]);
    await output([Buffer.from([0xff, 0xfe])]);
    const seqs = async (text: string, before?: number) =>
      (await events.search('agt_1', { ...SEARCHER, text, limit: 10, before })).hits.map((hit) => hit.seq);
    await expect.poll(() => seqs('hello'), { timeout: 20_000 }).toEqual([3, 1]);
    expect(await seqs('world', 3)).toEqual([1]);
    expect(await seqs('error disk')).toEqual([2]);
    expect(await seqs('"quoted" OR nothing')).toEqual([]);
    expect(await seqs('"quoted"')).toEqual([3]);
    for (const hostile of ['"', '*', 'NOT', 'text:', '(', 'a AND', "'; DROP TABLE words"]) {
      expect(await seqs(hostile)).toEqual([]);
    }
    const [hit] = (await events.search('agt_1', { ...SEARCHER, text: 'disk', limit: 1 })).hits;
    expect(hit).toEqual({
      seq: 2,
      ts: now / 1000,
      session_id: 'ses_1',
      stream: 'stdout',
      snippet: 'ERROR: disk full',
    });
  });

  it('search works after sealing, rebuilds a missing or broken index, and forgets deleted agents', async () => {
    await output(['needle one\n']);
    await events.runMaintenance();
    await output(['needle two\n']);
    events.start();
    const seqs = async () =>
      (await events.search('agt_1', { ...SEARCHER, text: 'needle', limit: 10 })).hits.map((hit) => hit.seq);
    await expect.poll(seqs, { timeout: 20_000 }).toEqual([2, 1]);
    await events.close();
    for (const suffix of ['-wal', '-shm']) await rm(join(folder, `search.db${suffix}`), { force: true });
    await writeFile(join(folder, 'search.db'), 'this is not a database at all, not at all, not at all');
    events = open(everything);
    events.start();
    await expect.poll(seqs, { timeout: 20_000 }).toEqual([2, 1]);
  });

  it('a failed pass does not stop log maintenance', async () => {
    await output(['one\n']);
    const read = store.read;
    let fails = 100;
    store.read = (fn) =>
      fails-- > 0 ? Promise.reject(new Error('no answer')) : (read.call(store, fn) as never);
    await events.runMaintenance();
    fails = 0;
    await events.runMaintenance();
    store.read = read;
    const segments = await store.read((reader) => reader.all(reader.sql.selectFrom('segments').select('id')));
    expect(segments).toHaveLength(1);
  });

  it('close does not wait for the index or for rows that the next start deletes', async () => {
    for (let i = 0; i < 40; i++) await output(Array.from({ length: 500 }, (_, n) => `line ${n}\n`));
    await store.write((tx) => events.drop(tx, num));
    const write = store.write;
    let slices = 0;
    const closed = new Promise<void>((resolve, reject) => {
      store.write = (fn) => {
        if (++slices === 3) events.close().then(resolve, reject);
        return write.call(store, fn) as never;
      };
    });
    events.start();
    await closed;
    store.write = write;
    expect(await left()).toBeGreaterThan(0);
    events = open(everything);
    await events.runMaintenance();
    expect(await left()).toBe(0);
  });

  const left = async () =>
    Number(
      await store.read(
        async (reader) =>
          (await reader.get(reader.sql.selectFrom('events').select((eb) => eb.fn.countAll().as('count'))))!
            .count,
      ),
    );

  it('the search index shrinks with retention, and never returns events of another agent', async () => {
    events.start();
    await output(['needle one\n']);
    const other = await addAgent(store, 'agt_2');
    await addSession(store, other, 'ses_2');
    await store.ingest(batch('agt_2', 'ses_2', 0, ['needle two\n']));
    const seqs = async (agent_id: string, before?: number) =>
      (await events.search(agent_id, { ...SEARCHER, text: 'needle', limit: 10, before })).hits.map(
        (hit) => hit.seq,
      );
    await expect.poll(() => seqs('agt_1'), { timeout: 20_000 }).toEqual([1]);
    await expect.poll(() => seqs('agt_2'), { timeout: 20_000 }).toEqual([1]);
    await output(['nothing\n']);
    const hits = await Promise.all([2 ** 42, Number.MAX_SAFE_INTEGER].map((before) => seqs('agt_1', before)));
    expect(hits).toEqual([[1], [1]]);

    now += 40 * 24 * HOUR;
    await output(['nothing\n']);
    await events.runMaintenance();
    await output(['nothing\n']);
    const words = () => {
      const db = new DatabaseSync(join(folder, 'search.db'), { readOnly: true });
      try {
        return db
          .prepare('SELECT rowid & 1099511627775 AS seq FROM words WHERE rowid >> 40 = ? ORDER BY rowid')
          .all(num)
          .map((row) => row.seq);
      } finally {
        db.close();
      }
    };
    await expect.poll(words, { timeout: 20_000 }).toContain(4);
    expect(words()).not.toContain(1);
  });
});
