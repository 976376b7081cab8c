import { afterEach, beforeEach, expect, test } from 'vitest';
import { ANA, BEN, FeaturesFixture } from '../../../testing/features-fixture.ts';
import { beginRun, plainMember } from '../../../testing/team-runs.ts';
import { putHumans } from '../../teams/queries.ts';
import { findRun, ownerOf } from './runs.ts';

let fixture: FeaturesFixture;

beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

test('a run belongs to the team with which it was created, although its transaction ran before', async () => {
  // Unit tests run each body twice, and each time this one creates another team.
  const id = await beginRun(fixture, { members: [plainMember('a', 'true')], steps: [{ step_key: 'a' }] });
  await fixture.store.write(async (tx) => {
    const team = await tx.get(tx.sql.selectFrom('teams').select(['id', 'num']));
    expect(await findRun(tx, id)).toMatchObject({ team_id: team!.id, team_num: team!.num });
  });
});

test('a run has the present name of the user who created it, and none once the user is deleted', async () => {
  const id = await beginRun(fixture, { members: [plainMember('a', 'true')], steps: [{ step_key: 'a' }] });
  const creator = async () => (await fixture.store.read((reader) => findRun(reader, id)))!.created_by_name;
  expect(await creator()).toBe(ANA.username);
  await fixture.store.write((tx) =>
    tx.run(tx.sql.updateTable('users').set({ username: 'anna' }).where('id', '=', ANA.user_id)),
  );
  expect(await creator()).toBe('anna');
  await fixture.store.write((tx) => tx.run(tx.sql.deleteFrom('users').where('id', '=', ANA.user_id)));
  expect(await creator()).toBeNull();
});

test('a run belongs to the user who created it while they are in its team, and then to the creator of the team', async () => {
  const steps = [{ step_key: 'a' }];
  const id = await beginRun(fixture, { members: [plainMember('a', 'true')], steps, started_by: BEN });
  const run = async () => (await fixture.store.read((reader) => findRun(reader, id)))!;
  const { team_num } = await run();
  expect(ownerOf(await run())).toBe(BEN.user_id);
  await fixture.store.write((tx) => putHumans(tx, team_num, []));
  expect(ownerOf(await run())).toBe(ANA.user_id);
  await fixture.store.write((tx) =>
    tx.run(tx.sql.updateTable('users').set({ role: 'root' }).where('id', '=', BEN.user_id)),
  );
  expect(ownerOf(await run())).toBe(BEN.user_id);
});
