/** The worktree that the agents of a run's member share. The node derives its folder and branch from the requested name. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { WorktreeRequest } from '../../core/node.ts';
import { branchName, folderName } from '../../node/folders/worktree-names.ts';
import { ANA, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { ended } from '../../testing/scripted-node.ts';
import { applyEvent, beginRun, plainMember, runOf, stepsOfRun, untilRun } from '../../testing/team-runs.ts';
import { updateTeam } from '../teams/queries.ts';
import type { MemberAgent } from '../teams/rules/team.ts';

let fixture: FeaturesFixture;
/** How many worktrees were requested. As at nodes of earlier releases, the branch has a new commit each time. */
let requests: number;
beforeEach(async () => {
  requests = 0;
  fixture = await FeaturesFixture.make();
  fixture.node.folders.createWorktree = async ({ agent_id, name, workdir, repo }: WorktreeRequest) => {
    const folder = folderName(name, agent_id);
    const branch = repo && branchName(folder);
    return { workdir: workdir ?? `/trees/${folder}`, repo, branch, base: repo && `commit-${++requests}` };
  };
});
afterEach(() => fixture.end());

async function renameTeam(run_id: string, name: string): Promise<void> {
  const { team_num } = await runOf(fixture, run_id);
  await fixture.store.write((tx) => updateTeam(tx, team_num, { name }));
}

/** Waits until this many sessions have been started, and returns the id of the last one. */
async function nextSession(count: number): Promise<string> {
  await vi.waitFor(() => expect(fixture.node.launches.size).toBe(count), SOON);
  return [...fixture.node.launches.keys()].at(-1)!;
}

async function places(): Promise<string[]> {
  const { items } = await fixture.agents.list(ANA, {}, {});
  return items.map(({ workdir, worktree_branch }) => `${workdir} ${worktree_branch}`);
}

async function begin(agent: Partial<MemberAgent>, workdir: string | null) {
  const dev = plainMember('dev', 'true', { worktree_mode: 'create_worktree', ...agent });
  const steps = [{ step_key: 'build' }, { step_key: 'test', depends_on: ['build'] }];
  return beginRun(fixture, { members: [dev], steps, workdir });
}

test.each([
  ['a repository', { worktree_repo: '/repo' }, null],
  ['a repository and a workdir', { worktree_repo: '/repo' }, '/work/here'],
  ['an empty folder', {}, null],
])(
  'a member with %s keeps its worktree when its team is renamed during the run',
  async (_, agent, workdir) => {
    const run_id = await begin(agent, workdir);
    const session_id = await nextSession(1);
    await renameTeam(run_id, 'Renamed');
    fixture.node.sendFact(session_id, ended(0));
    await nextSession(2);
    const [build, test_place] = await places();
    expect(test_place).toBe(build);
  },
);

test('a member that speaks ACP keeps its worktree when its team is renamed before a restart', async () => {
  const run_id = await begin({ protocol: 'acp', worktree_repo: '/repo' }, null);
  await nextSession(1);
  await renameTeam(run_id, 'Renamed');
  await applyEvent(fixture, run_id, { kind: 'run_command', command: { kind: 'restartRun' } });
  await nextSession(2);
  const [first, second] = await places();
  expect(second).toBe(first);
  const { build } = await stepsOfRun(fixture, run_id);
  expect((await fixture.get(build!.agent_id!)).name).toBe('Renamed-dev');
});

test('the agents of a member record the commit from which their worktree started', async () => {
  const run_id = await begin({ worktree_repo: '/repo' }, null);
  fixture.node.sendFact(await nextSession(1), ended(0));
  fixture.node.sendFact(await nextSession(2), ended(0));
  await untilRun(fixture, run_id, 'completed');
  const bases = await fixture.store.read((reader) =>
    reader.all(reader.sql.selectFrom('agents').select('worktree_base')),
  );
  expect(bases).toEqual([{ worktree_base: 'commit-1' }, { worktree_base: 'commit-1' }]);
});
