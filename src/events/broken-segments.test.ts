/** Log maintenance and the search index go on with other logs if one segment or log is broken. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Logger, silentLog } from '../base/log.ts';
import { openReader } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import { addAgent, addSession, batch } from '../store/testing.ts';
import { openTestDatabase } from '../testing/empty-sqlite.ts';
import { type EventLog, openEventLog } from './log.ts';
import type { Retention } from './maintenance.ts';
import { SearchIndex } from './search-index.ts';
import { segmentReader } from './segment-storage.ts';
import { SEARCHER } from './testing.ts';

const DAY = 86_400_000;
const warn = vi.fn();

let folder: string;
let store: Store;
let events: EventLog;
let now: number;
let retention: Partial<Retention>;
let broken: DatabaseSync;
let nums: number[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-broken-'));
  store = await openTestDatabase(join(folder, 'svc.db'));
  broken = new DatabaseSync(join(folder, 'svc.db'));
  now = 1_700_000_000_000;
  retention = {};
  warn.mockReset();
  events = open();
  nums = [];
  for (const name of ['one', 'two']) {
    nums.push(await addAgent(store, `agt_${name}`));
    await addSession(store, nums.at(-1)!, `ses_${name}`);
    await output(name);
    now++;
  }
});
afterEach(async () => {
  broken.close();
  await events.close();
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

const open = () =>
  openEventLog({
    ...{ store, data_dir: folder, clock: { now: () => now }, retention: () => retention },
    log: { ...silentLog, warn } as unknown as Logger,
    sealing: { from_bytes: 1, busy_ms: 0, keep_bytes: 0, idle_from_bytes: 1 },
  });

const output = (name: string, from = 0) =>
  store.ingest(batch(`agt_${name}`, `ses_${name}`, from, ['needle\n'], { ts_ms: now }));

/** Rows of this table, of the first agent, can no longer be deleted. */
function breakFirst(table: 'segments' | 'events' | 'log_drops'): void {
  broken.exec(`CREATE TRIGGER broken BEFORE DELETE ON ${table} WHEN OLD.agent_num = ${nums[0]}
    BEGIN SELECT RAISE(ABORT, 'broken'); END`);
}
const repair = () => broken.exec('DROP TRIGGER broken');

/** The numbers of the agents with rows in a table. */
const agentsIn = (table: 'segments' | 'events' | 'log_drops') =>
  store.read(async (reader) =>
    (await reader.all(reader.sql.selectFrom(table).select('agent_num').distinct())).map(
      ({ agent_num }) => agent_num,
    ),
  );
const reports = () => warn.mock.calls.map(([about]) => about.err.message);

test('retention by age skips a segment that cannot be deleted, and logs it once', async () => {
  await events.runMaintenance();
  breakFirst('segments');
  now += 2 * DAY;
  retention = { days: 1 };
  await events.runMaintenance();
  await events.runMaintenance();
  expect(await agentsIn('segments')).toEqual([nums[0]]);
  expect(reports()).toEqual(['broken']);
  repair();
  await events.runMaintenance();
  expect(await agentsIn('segments')).toEqual([]);
});

test('retention by total size skips a segment that cannot be deleted, and keeps rows, which are newer', async () => {
  await events.runMaintenance();
  breakFirst('segments');
  await store.ingest(batch('agt_two', 'ses_two', 7, ['newer\n'], { ts_ms: now }));
  retention = { bytes_total: 0 };
  await events.runMaintenance();
  const left = await store.read((reader) =>
    reader.all(reader.sql.selectFrom('segments').select(['agent_num', 'first_seq']).orderBy('agent_num')),
  );
  // The newer row was sealed afterwards.
  expect(left).toEqual([
    { agent_num: nums[0], first_seq: 1 },
    { agent_num: nums[1], first_seq: 2 },
  ]);
  expect(reports()).toEqual(['broken']);
});

test('a log that becomes shorter keeps its first number when an older segment is deleted later', async () => {
  await events.runMaintenance();
  await output('one', 7);
  await events.runMaintenance();
  broken.exec(`CREATE TRIGGER broken BEFORE DELETE ON segments WHEN OLD.agent_num = ${nums[0]} AND OLD.first_seq = 1
    BEGIN SELECT RAISE(ABORT, 'broken'); END`);
  now += 2 * DAY;
  retention = { days: 1 };
  await events.runMaintenance();
  repair();
  await events.runMaintenance();
  const heads = await store.read((reader) =>
    reader.all(reader.sql.selectFrom('heads').select('first_seq').where('agent_num', '=', nums[0]!)),
  );
  expect(heads).toEqual([{ first_seq: 3 }]);
});

test('the log of a deleted agent is deleted although that of another one cannot be', async () => {
  for (const num of nums) await store.write((tx) => events.drop(tx, num));
  breakFirst('log_drops');
  await events.runMaintenance();
  expect(await agentsIn('log_drops')).toEqual([nums[0]]);
  repair();
  await events.runMaintenance();
  expect(await agentsIn('log_drops')).toEqual([]);
});

test('a start deletes the rows that a segment replaces although those of another one cannot be', async () => {
  broken.exec("CREATE TRIGGER broken BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'broken'); END");
  await events.runMaintenance();
  expect(await agentsIn('events')).toEqual(nums);
  await events.close();
  repair();
  breakFirst('events');
  events = open();
  events.start();
  await expect.poll(() => agentsIn('events'), { timeout: 20_000 }).toEqual([nums[0]]);
});

test('the search index contains the events of others if those of an agent cannot be read', async () => {
  await events.runMaintenance();
  await store.write((tx) =>
    tx.run(
      tx.sql
        .updateTable('segments')
        .set({ blocks: Buffer.from('{') })
        .where('agent_num', '=', nums[0]!),
    ),
  );
  const reader = await openReader(store.source);
  const segments = segmentReader(reader, join(folder, 'log'));
  const index = await SearchIndex.open(join(folder, 'search.db'), reader, segments);
  expect(await index.update(nums)).toEqual({
    unfinished: [],
    unreadable: ['agt_one'],
    reason: expect.stringContaining('SyntaxError'),
  });
  const query = { text: 'needle', before: 9, first_seq: 1, limit: 9 };
  expect(index.find({ agent_num: nums[1]!, ...query }).seqs).toEqual([1]);
  await reader.close();
});

test('logs once that the events of an agent cannot be read for the search index', async () => {
  await events.runMaintenance();
  await store.write((tx) => tx.run(tx.sql.updateTable('segments').set({ blocks: Buffer.from('{') })));
  events.start();
  await expect.poll(() => warn.mock.calls.length, { timeout: 20_000 }).toBe(1);
  const third = await addAgent(store, 'agt_three');
  await addSession(store, third, 'ses_three');
  await output('one', 7);
  await output('three');
  const found = async () =>
    (await events.search('agt_three', { ...SEARCHER, text: 'needle', limit: 1 })).hits.length;
  await expect.poll(found, { timeout: 20_000 }).toBe(1);
  expect(warn.mock.calls.map(([about]) => about.agent_ids)).toEqual([['agt_one', 'agt_two']]);
});

test('a search continues past matches that cannot be read', async () => {
  await output('one', 7);
  await output('one', 14);
  events.start();
  const search = (before?: number) =>
    events.search('agt_one', { ...SEARCHER, text: 'needle', limit: 1, before });
  await expect.poll(async () => (await search()).hits[0]?.seq, { timeout: 20_000 }).toBe(3);
  expect((await search()).next).toBe(3);
  await events.runMaintenance();
  await output('one', 21);
  await expect.poll(async () => (await search()).hits[0]?.seq, { timeout: 20_000 }).toBe(4);
  // Those with the others.
  await store.write((tx) => tx.run(tx.sql.deleteFrom('segments')));
  expect(await search(4)).toEqual({ hits: [], next: 3 });
  expect(await search(2)).toEqual({ hits: [], next: null });
});
