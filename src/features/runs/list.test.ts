/** The list of the runs of all teams. */
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import type { Compilable } from 'kysely';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { filesOf, type Reader } from '../../store/store.ts';
import { ANA, BEN, FeaturesFixture } from '../../testing/features-fixture.ts';
import { addRun, specWith } from '../../testing/team-runs.ts';
import { sqliteTest } from '../../testing/test-store.ts';
import type { Caller } from '../accounts/rules.ts';
import { listRunsInView, updateRun } from './queries/runs.ts';
import type { RunStatus } from './rules/run.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

const OTHER: Caller = { ...BEN, user_id: 'usr_o', username: 'olga' };
const run = (creator = ANA, humans: Caller[] = []) =>
  addRun(fixture.store, creator, specWith({ lead: null }), humans);
const listed = async (caller: Caller, status?: RunStatus) => {
  const { items } = await fixture.runs.runs.listAll(caller, { status }, {});
  return items.map(({ id }) => id);
};

test('root sees the runs of all teams, and others those of teams that they created or belong to', async () => {
  const of_ana = (await run(ANA)).id;
  const of_ben = (await run(BEN)).id;
  const with_ben = (await run(OTHER, [BEN])).id;
  expect(await listed(ANA)).toEqual([with_ben, of_ben, of_ana]);
  expect(await listed(BEN)).toEqual([with_ben, of_ben]);
  expect(await listed(OTHER)).toEqual([with_ben]);
  expect(await listed({ ...BEN, user_id: 'usr_none' })).toEqual([]);
});

test('a token with limits sees only the runs of its teams, and one without the scope read sees none', async () => {
  const [one, two] = [await run(BEN), await run(BEN)];
  const token = (scopes: string[], team_ids: string[]) =>
    ({ ...BEN, grant: { scopes, limits: { agent_ids: [], team_ids } } }) as unknown as Caller;
  expect(await listed(token(['read'], [one.team_id]))).toEqual([one.id]);
  expect(await listed(token(['read'], ['team_none']))).toEqual([]);
  await expect(async () => listed(token(['operate'], [two.team_id]))).rejects.toThrow(
    'token lacks scope read',
  );
});

test('pages continue after the last run, with the filter, and leave out what can be large', async () => {
  const runs = [await run(), await run(), await run()];
  await fixture.store.write(async (tx) => {
    for (const { num } of [runs[0]!, runs[2]!]) await updateRun(tx, num, { status: 'failed', error: 'no' });
  });
  const first = await fixture.runs.runs.listAll(ANA, { status: 'failed' }, { limit: 1 });
  expect(first.items).toMatchObject([{ id: runs[2]!.id, status: 'failed', error: 'no', number: 1 }]);
  expect(first.items[0]!.team_name).toBeTruthy();
  for (const field of ['spec', 'input', 'output']) expect(first.items[0]).not.toHaveProperty(field);
  const cursor = first.next_cursor!;
  const second = await fixture.runs.runs.listAll(ANA, { status: 'failed' }, { limit: 1, cursor });
  expect(second.items.map(({ id }) => id)).toEqual([runs[0]!.id]);
  expect(second.next_cursor).toBeUndefined();
  expect(await listed(ANA, 'completed')).toEqual([]);
});

sqliteTest('a page reads runs in their order, without sorting all of them', async () => {
  const database = new DatabaseSync(filesOf(fixture.store).path, { readOnly: true });
  const { sql } = await fixture.store.read(({ sql }) => ({ sql }));
  let plan = '';
  const all = (query: Compilable) => {
    const { sql: text, parameters } = query.compile();
    const steps = database.prepare(`EXPLAIN QUERY PLAN ${text}`).all(...(parameters as SQLInputValue[]));
    plan = steps.map(({ detail }) => detail).join('\n');
    return [];
  };
  const reader = { sql, all } as unknown as Reader;
  try {
    for (const user_id of [null, 'usr_1']) {
      for (const before_num of [undefined, 5]) {
        await listRunsInView(reader, { user_id, limits: null }, { before_num, limit: 50 });
        expect(plan).toMatch(/(SCAN runs|SEARCH runs USING INTEGER PRIMARY KEY)/);
        // The other one is the union of the user's teams.
        expect(plan.match(/TEMP B-TREE FOR ORDER BY/g) ?? []).toHaveLength(user_id === null ? 0 : 1);
      }
    }
  } finally {
    database.close();
  }
});
