/** In which worktrees of other agents the agents of a run may work. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ANA, BEN, FeaturesFixture } from '../../testing/features-fixture.ts';
import { beginRun, plainMember, runOf } from '../../testing/team-runs.ts';
import { putHumans } from '../teams/queries.ts';
import { findRun } from './queries/runs.ts';
import { runMayUseWorktree } from './worktree-rights.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

const begin = (started_by = ANA) =>
  beginRun(fixture, { members: [plainMember('a', 'true')], steps: [{ step_key: 'a' }], started_by });

test('a run may use worktrees of its creator, but not those in a team that the creator has left', async () => {
  const { team_num } = await runOf(fixture, await begin(BEN));
  const own_run_id = await begin(BEN);
  const mayUse = (of_team: number | null) =>
    fixture.store.read(async (reader) => {
      const run = (await findRun(reader, own_run_id))!;
      return runMayUseWorktree(reader, run, { team_num: of_team, owner_id: BEN.user_id });
    });
  expect([await mayUse(null), await mayUse(team_num)]).toEqual([true, true]);
  await fixture.store.write((tx) => putHumans(tx, team_num, []));
  expect([await mayUse(null), await mayUse(team_num)]).toEqual([true, false]);
});
