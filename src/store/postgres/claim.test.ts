/** One plane at a time writes to a database, whatever connections are lost. */
import pg from 'pg';
import { afterEach, beforeEach, expect } from 'vitest';
import { sleep } from '../../base/async.ts';
import { type Logger, silentLog } from '../../base/log.ts';
import type { Problem } from '../../core/problem.ts';
import {
  createDatabase,
  createEmptyDatabase,
  execute,
  postgresTest as it,
  type TestDatabase,
} from '../../testing/postgres.ts';
import { PostgresProxy } from '../../testing/postgres-proxy.ts';
import type { Store, Tx } from '../store.ts';
import { addAgent, addSession, batch } from '../testing.ts';
import { openPostgres } from './postgres.ts';

let database: TestDatabase;
let proxy: PostgresProxy;
const opened: Store[] = [];
/** The errors with which the stores lost their claims, by holder. */
let lost: Record<string, Problem[]>;

beforeEach(async () => {
  database = await createDatabase();
  proxy = await PostgresProxy.open(database.url);
  lost = {};
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
  await proxy.close();
  await database.drop();
});

async function open(holder: string, url = database.url): Promise<Store> {
  lost[holder] = [];
  const onClaimLost = (problem: Problem) => lost[holder]!.push(problem);
  const store = await openPostgres({ url, holder, onClaimLost, log: silentLog, lost_ms_max: 3_000 });
  opened.push(store);
  return store;
}

const setMeta = (tx: Tx, key: string) => tx.run(tx.sql.insertInto('meta').values({ key, value: '' }));
const keys = async () =>
  (await execute(database.url, 'SELECT key FROM meta ORDER BY key')).map(({ key }) => key);

/** The locks of the claim, not those of other databases on the server. */
const CLAIM = `pg_locks WHERE locktype = 'advisory' AND objsubid = 1
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

const endClaim = () => execute(database.url, `SELECT pg_terminate_backend(pid) FROM ${CLAIM}`);

it('refuses a second plane while the first one lives, and names the first one', async () => {
  const first = await open('pid 1 on host-a');
  const url = new URL(database.url);
  url.password = 'hush';
  const error = await open('pid 2 on host-b', url.href).catch((reason: Error) => reason);
  expect(error).toMatchObject({ kind: 'conflict', code: 'database_in_use' });
  expect((error as Error).message).toMatch(/^the database svc_test_\w+ .* is in use by pid 1 on host-a$/);
  expect((error as Error).message).not.toContain('hush');
  await first.write((tx) => setMeta(tx, 'a'));
  expect(await keys()).toEqual(['a']);
});

it('can be opened again after it was closed, and after its connections were lost', async () => {
  await (await open('one')).close();
  await open('two', proxy.url);
  proxy.cut();
  const third = await open('three');
  await third.write((tx) => setMeta(tx, 'a'));
  expect(await keys()).toEqual(['a']);
});

it('does not commit what a plane writes that has lost its claim without noticing it', async () => {
  const first = await open('one', proxy.url);
  const num = await addAgent(first, 'agt_1');
  await addSession(first, num, 'ses_1');
  proxy.cut();
  const second = await open('two');
  proxy.accept();
  const results = await Promise.allSettled([
    first.write((tx) => setMeta(tx, 'a')),
    first.ingest(batch('agt_1', 'ses_1', 0, ['one\n'])),
    // What the body itself throws may follow from what the other plane wrote.
    first.write(async (tx) => {
      await tx.get(tx.sql.selectFrom('meta').select('key'));
      throw new Error('of the body');
    }),
    // The statement is not awaited.
    first.write((tx) => {
      setMeta(tx, 'b').catch(() => {});
    }),
  ]);
  const claim_lost = { status: 'rejected', reason: expect.objectContaining({ code: 'claim_lost' }) };
  expect(results).toEqual(results.map(() => claim_lost));
  await second.write((tx) => setMeta(tx, 'c'));
  expect(await keys()).toEqual(['c']);
  expect(await second.ingest(batch('agt_1', 'ses_1', 0, ['two\n']))).toMatchObject({ last_seq: 1 });
  expect(lost.one).toHaveLength(1);
  expect(lost.two).toEqual([]);
});

it('notices that another plane has taken over without writing anything', async () => {
  await open('one', proxy.url);
  proxy.cut();
  await open('two');
  proxy.accept();
  await expect.poll(() => lost.one).toMatchObject([{ code: 'claim_lost' }]);
});

it('keeps its claim when only the connection is lost', async () => {
  const store = await open('one');
  for (let i = 0; i < 3; i++) {
    await endClaim();
    await store.write((tx) => setMeta(tx, String(i)));
    await expect.poll(endClaim).toHaveLength(1);
  }
  expect(await keys()).toEqual(['0', '1', '2']);
  await expect.poll(() => execute(database.url, `SELECT FROM ${CLAIM}`)).not.toEqual([]);
  expect(lost.one).toEqual([]);
});

it('takes the claim only after the writes of an earlier plane have ended', async () => {
  const earlier = new pg.Client({ connectionString: database.url });
  await earlier.connect();
  try {
    await earlier.query('BEGIN; LOCK TABLE gate IN ROW SHARE MODE; SELECT number FROM plane_claim');
    let is_open = false;
    const opening = open('one').then((store) => {
      is_open = true;
      return store;
    });
    await sleep(300);
    expect(is_open).toBe(false);
    await earlier.query(`INSERT INTO meta VALUES ('a', ''); COMMIT`);
    const store = await opening;
    const read = await store.read((reader) => reader.all(reader.sql.selectFrom('meta').select('key')));
    expect(read).toEqual([{ key: 'a' }]);
  } finally {
    await earlier.end();
  }
});

it('lets one of several planes create the schema', async () => {
  const empty = await createEmptyDatabase();
  try {
    const results = await Promise.allSettled(
      ['one', 'two', 'three'].map((holder) => open(holder, empty.url)),
    );
    expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected', 'rejected']);
    await Promise.all(opened.splice(0).map((store) => store.close()));
  } finally {
    await empty.drop();
  }
});

it('loses the claim if the database was replaced', async () => {
  await open('one', proxy.url);
  proxy.cut();
  await execute(
    database.url,
    'CREATE TABLE restored AS SELECT * FROM plane_claim; DROP TABLE plane_claim; ALTER TABLE restored RENAME TO plane_claim',
  );
  proxy.accept();
  await expect.poll(() => lost.one).toMatchObject([{ message: expect.stringContaining('start svc again') }]);
});

it('says why it cannot connect, without the password', async () => {
  const url = 'postgres://svc:hush@127.0.0.1:1/none';
  const opening = openPostgres({ url, log: silentLog, lost_ms_max: 0 });
  await expect(opening).rejects.toMatchObject({
    code: 'database_unreachable',
    message: 'cannot connect to the database none at 127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1',
  });
  const missing = new URL(database.url);
  missing.pathname = '/none';
  await expect(open('one', missing.href)).rejects.toThrow(/: database "none" does not exist$/);
});

it('waits while it starts for a server that does not answer', async () => {
  proxy.freeze();
  const warned = Promise.withResolvers<unknown>();
  const log = { ...silentLog, warn: (...line: unknown[]) => warned.resolve(line) } as Logger;
  const opening = openPostgres({ url: proxy.url, log, lost_ms_max: 20_000 });
  expect(await warned.promise).toEqual([{ reason: 'timeout expired' }, 'waiting for PostgreSQL']);
  proxy.thaw();
  opened.push(await opening);
});

it('keeps the connection that holds the claim while the server rejects its statements', async () => {
  const warned = Promise.withResolvers<string>();
  const log = { ...silentLog, warn: (_fields: object, message: string) => warned.resolve(message) } as Logger;
  opened.push(await openPostgres({ url: database.url, log }));
  const holder = () => execute(database.url, `SELECT pid FROM ${CLAIM}`);
  const before = await holder();
  await execute(database.url, 'ALTER TABLE plane_claim RENAME TO away');
  expect(await warned.promise).toBe('cannot renew the claim on the database');
  await execute(database.url, 'ALTER TABLE away RENAME TO plane_claim');
  expect(before).toHaveLength(1);
  expect(await holder()).toEqual(before);
});
