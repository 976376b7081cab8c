/** The list of the runs of all teams. */
import type { SQLInputValue } from 'node:sqlite';
import type { Compilable } from 'kysely';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Reader } from '../../store/store.ts';
import { ANA, BEN, FeaturesFixture } from '../../testing/features-fixture.ts';
import { addRun, beginRun, plainMember, specWith } from '../../testing/team-runs.ts';
import { openSecondConnection, sqliteTest } from '../../testing/test-store.ts';
import type { Caller } from '../accounts/rules.ts';
import { listRunsInView, type RunRow, updateRun } from './queries/runs.ts';
import { type RunStatus, runTitle } from './rules/run.ts';

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
    for (const { num } of [runs[0]!, runs[2]!]) updateRun(tx, num, { status: 'failed', error: 'no' });
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

test('the pages of a user contain no run of a team that the user may not see, even after losing access to a team', async () => {
  const visible: RunRow[] = [];
  for (let at = 0; at < 3; at++) {
    await run(ANA);
    visible.unshift(await run(OTHER, [BEN]));
  }
  await run(ANA);
  const pageAfter = (cursor?: string) =>
    fixture.runs.runs.listAll(BEN, {}, { limit: 1, ...(cursor !== undefined && { cursor }) });
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await pageAfter(cursor);
    seen.push(...page.items.map(({ id }) => id));
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  expect(seen).toEqual(visible.map(({ id }) => id));
  // A cursor that root got has no more rights than its user.
  const of_root = await fixture.runs.runs.listAll(ANA, {}, { limit: 1 });
  expect((await pageAfter(of_root.next_cursor!)).items.map(({ id }) => id)).toEqual([visible[0]!.id]);

  const first = await pageAfter();
  await fixture.store.write((tx) =>
    tx.run(tx.sql.deleteFrom('team_humans').where('team_num', '=', visible[1]!.team_num)),
  );
  const second = await pageAfter(first.next_cursor!);
  expect(second.items.map(({ id }) => id)).toEqual([visible[2]!.id]);
});

test('a run has the title of its input, even if an earlier program created it', async () => {
  const input = { title: ' ', prompt: 'Fix the test\nIt fails at night.', task: 'other' };
  await beginRun(fixture, { members: [plainMember('a', 'true')], steps: [{ step_key: 'a' }], input });
  await beginRun(fixture, { members: [plainMember('a', 'true')], steps: [{ step_key: 'a' }], input: {} });
  const earlier = await run();
  await fixture.store.write((tx) =>
    updateRun(tx, earlier.num, { title: null, input: JSON.stringify({ task: 'Old' }) }),
  );
  const { items } = await fixture.runs.runs.listAll(ANA, {}, {});
  expect(items.map(({ title }) => title)).toEqual(['Old', null, 'Fix the test']);
});

test('the title of an input is its first text, on one line and not longer than a name', () => {
  expect(runTitle({ title: 7, task: 'Rain  \r\nin the hills' })).toBe('Rain');
  expect(runTitle({ title: 'T', prompt: 'P' })).toBe('T');
  expect(runTitle({ prompt: `${'x'.repeat(199)}😀` })).toBe('x'.repeat(199));
  expect(runTitle({ other: 'text' })).toBeNull();
});

sqliteTest('a page reads runs in their order, without sorting all of them', async () => {
  const database = openSecondConnection(fixture.store);
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
