import { afterEach, beforeEach, expect, test } from 'vitest';
import { FeaturesFixture } from '../../../testing/features-fixture.ts';
import { beginRun, plainMember } from '../../../testing/team-runs.ts';
import { findRun } from './runs.ts';

let fixture: FeaturesFixture;

beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.close());

test('a run belongs to the team with which it was created, although its transaction ran before', async () => {
  // Unit tests run each body twice, and each time this one creates another team.
  const id = await beginRun(fixture, { members: [plainMember('a', 'true')], steps: [{ step_key: 'a' }] });
  await fixture.store.write(async (tx) => {
    const team = await tx.get(tx.sql.selectFrom('teams').select(['id', 'num']));
    expect(await findRun(tx, id)).toMatchObject({ team_id: team!.id, team_num: team!.num });
  });
});
