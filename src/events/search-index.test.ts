import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, vi } from 'vitest';
import { silentLog } from '../base/log.ts';
import { deleteAgent } from '../features/agents/queries/agents.ts';
import { resizeHead, skipTo } from '../store/event-rows/heads.ts';
import { deleteEvents } from '../store/event-rows/retention.ts';
import { openReader } from '../store/open.ts';
import { planeIdentity } from '../store/plane-id.ts';
import { recordRestore } from '../store/restored.ts';
import type { Store } from '../store/store.ts';
import { addAgent, addSession, batch } from '../store/testing.ts';
import { emptyStores, stores } from '../testing/stores.ts';
import { limits } from './limits.ts';
import { type EventLog, openEventLog } from './log.ts';
import { SearchIndex, type Updated } from './search-index.ts';
import { segmentReader } from './segment-storage.ts';
import { moveSegment, SEARCHER, storedSegments } from './testing.ts';

const finished: Updated = { unfinished: [], unreadable: [] };

describe.each(stores)('$kind', ({ open: openStore, it }) => {
  let folder: string;
  const empty = emptyStores(openStore);
  let store: Store;
  let events: EventLog;

  beforeEach(async () => {
    store = await empty.open();
    folder = await mkdtemp(join(tmpdir(), 'svc-search-'));
    events = openEventLog({ store, data_dir: folder, clock: { now: () => 1 }, log: silentLog });
  });
  afterEach(async () => {
    await events.close();
    await empty.clear();
    await rm(folder, { recursive: true, force: true });
  });

  it('removes a deleted agent from the index', async () => {
    const num = await addAgent(store, 'agt_1');
    await addSession(store, num, 'ses_1');
    events.start();
    const lines = Array.from({ length: 500 }, (_, n) => `needle ${n}\n`);
    await store.ingest(batch('agt_1', 'ses_1', 0, lines, { stream: 'stdout', ts_ms: 1 }));
    const found = async () =>
      (await events.search('agt_1', { ...SEARCHER, text: 'needle 499', limit: 1 })).hits.length;
    await expect.poll(found, { timeout: 20_000 }).toBe(1);
    await store.write(async (tx) => {
      await events.drop(tx, num);
      await deleteAgent(tx, num);
    });
    const index = new DatabaseSync(join(folder, 'search.db'), { readOnly: true });
    const words = index.prepare("SELECT count(*) AS n FROM words WHERE words MATCH 'needle'");
    await expect.poll(() => words.get()!.n, { timeout: 20_000 }).toBe(0);
    index.close();
  });

  it('opens although the entries of deleted agents cannot be deleted', async () => {
    const path = join(folder, 'search.db');
    const open = async () =>
      SearchIndex.open(path, await openReader(store.source), segmentReader(store, join(folder, 'log')));
    await open();
    const file = new DatabaseSync(path);
    file.exec(`INSERT INTO cursors VALUES (999, 1);
      CREATE TRIGGER full BEFORE DELETE ON cursors BEGIN SELECT RAISE(ABORT, 'full'); END`);
    const index = await open();
    // An error that nobody handles would have ended the worker by now.
    await setImmediate();
    expect(await index.stale()).toEqual([]);
    file.close();
  });

  it('finds messages and tool calls, but not their replays', async () => {
    const num = await addAgent(store, 'agt_1');
    await addSession(store, num, 'ses_1');
    events.start();
    const frame = (method: string, params: object, fields: object = {}) => ({
      type: 'acp_event' as const,
      session_id: 'ses_1',
      ts_ms: 1,
      fields: { direction: 'from_agent', method, ...fields },
      payload: JSON.stringify({ jsonrpc: '2.0', method, params }),
    });
    const chunk = (text: string) => ({
      update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } },
    });
    const call = { sessionUpdate: 'tool_call', title: 'Tidying', rawInput: { command: 'npm prune' } };
    await store.write((tx) =>
      events.append(tx, 'agt_1', [
        frame('session/prompt', { prompt: [{ type: 'text', text: 'tidy the garden' }] }),
        frame('session/update', chunk('the garden is tidy')),
        frame('session/update', { update: call }),
        frame('session/update', chunk('the garden is tidy'), { replay: true }),
      ]),
    );
    const found = async (text: string) =>
      (await events.search('agt_1', { ...SEARCHER, text, limit: 9 })).hits.map(
        ({ seq, snippet }) => `${seq} ${snippet}`,
      );
    await expect.poll(() => found('prune'), { timeout: 20_000 }).toEqual(['3 Tidying npm prune']);
    expect(await found('garden')).toEqual(['2 the garden is tidy', '1 tidy the garden']);
  });

  it('after a restart, updates only agents whose entries differ from their log', async () => {
    const nums: number[] = [];
    for (const id of ['1', '2', '3']) {
      nums.push(await addAgent(store, `agt_${id}`));
      await addSession(store, nums.at(-1)!, `ses_${id}`);
      await store.ingest(batch(`agt_${id}`, `ses_${id}`, 0, ['needle\n', 'needle\n', 'straw\n']));
    }
    const path = join(folder, 'search.db');
    const reader = await openReader(store.source);
    const open = () => SearchIndex.open(path, reader, segmentReader(reader, join(folder, 'log')));
    const first = await open();
    expect(await first.stale()).toEqual(nums);
    expect(await first.update(nums)).toEqual(finished);
    expect(await first.stale()).toEqual([]);
    await store.ingest(batch('agt_2', 'ses_2', 20, ['needle\n']));
    await store.write((tx) => resizeHead(tx, nums[2]!, 0, 3));
    const second = await open();
    expect(await second.stale()).toEqual([nums[1], nums[2]]);
    expect(await second.update(nums)).toEqual(finished);
    expect(await (await open()).stale()).toEqual([]);
    const query = { text: 'needle', before: 9, first_seq: 1, limit: 9 };
    const found = nums.map((agent_num) => second.find({ agent_num, ...query }).seqs);
    expect(found).toEqual([[2, 1], [4, 2, 1], []]);
    // As if the settings now named another database.
    await planeIdentity(store, { now: () => 1 });
    const third = await open();
    expect(third.find({ agent_num: nums[0]!, ...query }).seqs).toEqual([]);
    expect(await third.stale()).toEqual(nums);
    expect(await third.update(nums)).toEqual(finished);
    expect(await (await open()).stale()).not.toContain(nums[0]);
    // After a restore, the same number may be another agent's.
    await store.write((tx) => recordRestore(tx, 2));
    expect(await (await open()).stale()).toEqual(nums);
    await reader.close();
  });

  it('examines few events at a time if that is slow, and finds each match once', async () => {
    const num = await addAgent(store, 'agt_1');
    await addSession(store, num, 'ses_1');
    const count = 3 * limits.search_events_min;
    const lines = Array.from({ length: count }, (_, n) => (n % 2 === 0 ? 'needle\n' : 'straw\n'));
    await store.ingest(batch('agt_1', 'ses_1', 0, lines, { stream: 'stdout', ts_ms: 1 }));
    const reader = await openReader(store.source);
    const segments = segmentReader(reader, join(folder, 'log'));
    const index = await SearchIndex.open(join(folder, 'search.db'), reader, segments);
    while ((await index.update([num])).unfinished.length > 0);
    const request = { agent_num: num, text: 'needle', first_seq: 1, limit: count };
    // Each reading of this clock is a second later, so each query uses up the time of a part.
    let now_ms = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now_ms += 1_000));
    const parts = [index.find({ ...request, before: count + 1 })];
    while (parts.at(-1)!.before > 1) parts.push(index.find({ ...request, before: parts.at(-1)!.before }));
    clock.mockRestore();
    expect(parts.map(({ seqs }) => seqs.length)).toEqual(Array(3).fill(limits.search_events_min / 2));
    const needles = Array.from({ length: count / 2 }, (_, n) => count - 1 - 2 * n);
    expect(parts.flatMap(({ seqs }) => seqs)).toEqual(needles);
    expect(index.find({ ...request, before: count + 1 })).toEqual({ seqs: needles, before: 1 });
    await reader.close();
  });

  it('skips numbers without events', async () => {
    const num = await addAgent(store, 'agt_1');
    await addSession(store, num, 'ses_1');
    await store.ingest(batch('agt_1', 'ses_1', 0, ['needle\n']));
    await store.write((tx) => skipTo(tx, num, 1_000_000_000));
    await store.ingest(batch('agt_1', 'ses_1', 7, ['straw\n']));
    const reader = await openReader(store.source);
    const segments = segmentReader(reader, join(folder, 'log'));
    const index = await SearchIndex.open(join(folder, 'search.db'), reader, segments);
    while ((await index.update([num])).unfinished.length > 0);
    const request = { agent_num: num, text: 'needle', first_seq: 1, limit: 1 };
    let now_ms = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now_ms += 1_000));
    const part = index.find({ ...request, before: 1_000_000_002 });
    clock.mockRestore();
    expect(part).toEqual({ seqs: [], before: 2 });
    expect(index.find({ ...request, before: part.before })).toEqual({ seqs: [1], before: 1 });
    await reader.close();
  });

  it('finishes an agent whose last events are no longer kept, and tries again if they are missing', async () => {
    await events.close();
    const sealing = { from_bytes: 1, busy_ms: 0, keep_bytes: 0, idle_from_bytes: 1 };
    events = openEventLog({ store, data_dir: folder, clock: { now: () => 1 }, log: silentLog, sealing });
    const expired = await addAgent(store, 'agt_1');
    const missing = await addAgent(store, 'agt_2');
    await addSession(store, expired, 'ses_1');
    await addSession(store, missing, 'ses_2');
    const status = { type: 'status', session_id: 'ses_1', ts_ms: 1, fields: { status: 'running' } } as const;
    await store.write((tx) => events.append(tx, 'agt_1', [status]));
    await store.ingest(batch('agt_1', 'ses_1', 0, ['needle\n', 'needle\n']));
    // As retention does. The status event stays.
    await store.write(async (tx) => {
      await deleteEvents(tx, expired, 1, 3);
      await resizeHead(tx, expired, 0, 4);
    });
    await store.ingest(batch('agt_2', 'ses_2', 0, ['needle\n'], { ts_ms: 1 }));
    await events.runMaintenance();
    const [path] = await storedSegments(store, folder);
    await moveSegment(store, folder, path!, `${path}.gone`);
    const reader = await openReader(store.source);
    const segments = segmentReader(reader, join(folder, 'log'));
    const index = await SearchIndex.open(join(folder, 'search.db'), reader, segments);
    let left = [expired, missing];
    const unreadable: string[] = [];
    for (let calls = 0; calls < 5; calls++) {
      const updated = await index.update(left);
      left = updated.unfinished;
      unreadable.push(...updated.unreadable);
    }
    expect(left).toEqual([]);
    expect(unreadable).toEqual(['agt_2']);
    expect(await index.stale()).toEqual([missing]);
    await moveSegment(store, folder, `${path}.gone`, path!);
    expect(await index.update([missing])).toEqual(finished);
    expect(await index.stale()).toEqual([]);
    const query = { text: 'needle', before: 9, first_seq: 1, limit: 9 };
    expect(index.find({ agent_num: missing, ...query }).seqs).toEqual([1]);
    await store.ingest(batch('agt_1', 'ses_1', 14, ['needle\n']));
    expect(await index.update([expired])).toEqual(finished);
    expect(index.find({ agent_num: expired, ...query }).seqs).toEqual([4]);
    await reader.close();
  });

  it('finds sealed events and rows, newest first', async () => {
    await events.close();
    const sealing = { from_bytes: 1, busy_ms: 0, keep_bytes: 0, idle_from_bytes: 1 };
    events = openEventLog({ store, data_dir: folder, clock: { now: () => 1 }, log: silentLog, sealing });
    const num = await addAgent(store, 'agt_1');
    await addSession(store, num, 'ses_1');
    const texts = ['needle one\n', 'straw\n', 'needle two\n'];
    const first = batch('agt_1', 'ses_1', 0, texts, { ts_ms: 1 });
    await store.ingest(first);
    await events.runMaintenance();
    expect(await storedSegments(store, folder)).toHaveLength(1);
    await store.ingest(batch('agt_1', 'ses_1', first.to, ['needle three\n'], { ts_ms: 1 }));
    const options = { store, data_dir: folder, clock: { now: () => 1 }, log: silentLog };
    await events.close();
    events = openEventLog(options);
    events.start();
    const found = async () =>
      (await events.search('agt_1', { ...SEARCHER, text: 'needle', limit: 9 })).hits.map(
        ({ seq, snippet }) => `${seq} ${snippet}`,
      );
    await expect.poll(found, { timeout: 20_000 }).toEqual(['4 needle three', '3 needle two', '1 needle one']);
  });
});
