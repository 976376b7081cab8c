/** The worktree that the agents of a run's member share. The node derives its folder and branch from the requested name. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Worktree, WorktreeRequest } from '../../core/node.ts';
import { branchName, folderName } from '../../node/folders/worktree-names.ts';
import { ANA, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { ended } from '../../testing/scripted-node.ts';
import { applyEvent, beginRun, plainMember, runOf, stepsOfRun, untilRun } from '../../testing/team-runs.ts';
import { sharedWorktreeId } from '../agents/placement.ts';
import { deleteTeam, updateTeam } from '../teams/queries.ts';
import type { MemberAgent } from '../teams/rules/team.ts';
import { openWorktrees } from '../worktrees/index.ts';
import { insertKept } from '../worktrees/queries.ts';
import { Worktrees } from '../worktrees/service.ts';

let fixture: FeaturesFixture;
/** How many worktrees were requested. As at nodes of earlier releases, the branch has a new commit each time. */
let requests: number;
beforeEach(async () => {
  requests = 0;
  fixture = await FeaturesFixture.make(null, null, (_, { agents }) => openWorktrees(agents.core));
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

/** A run that has ended, whose two agents share the worktree at `/work/here`. Returns its id. */
async function completed(): Promise<string> {
  const run_id = await begin({ worktree_repo: '/repo' }, '/work/here');
  fixture.node.sendFact(await nextSession(1), ended(0));
  fixture.node.sendFact(await nextSession(2), ended(0));
  await untilRun(fixture, run_id, 'completed');
  return run_id;
}

/** Ends a run, deletes its team and claims the worktree at `workdir` for `claimed_by`. */
async function endedWithoutTeam(claimed_by: (run_id: string) => string) {
  const run_id = await completed();
  const { team_num } = await runOf(fixture, run_id);
  await fixture.store.write((tx) => deleteTeam(tx, team_num));
  const below_worktree_root = false;
  const found = { below_worktree_root, claimed_by: claimed_by(run_id) };
  fixture.node.folders.resolve = async (path) => ({ path, ...found });
}

function watchRemovals() {
  const removing = vi.fn(async (_: Worktree) => ({ removed: true, kept_because: null }));
  fixture.node.folders.removeWorktree = removing;
  return removing;
}

const deleteAll = async () => {
  for (const { id } of (await fixture.agents.list(ANA, {}, {})).items.toReversed())
    await fixture.agents.delete(ANA, id, { force: false, delete_worktree: false });
};

const kept = () =>
  fixture.store.read((reader) =>
    reader.all(reader.sql.selectFrom('kept_worktrees').select(['workdir', 'reason'])),
  );

async function keep(num: number, reason: string): Promise<void> {
  const agent = { num, agent_id: `agt_${num}`, agent_name: 'a', owner_id: ANA.user_id };
  const place = { node_id: 'main', workdir: '/work/here', kept_at: 0 };
  await fixture.store.write((tx) => insertKept(tx, { ...agent, ...place, reason }));
}

test('after its team was deleted, a member’s worktree at a given workdir is removed', async () => {
  const removing = watchRemovals();
  await endedWithoutTeam((run_id) => sharedWorktreeId(run_id, 'dev'));
  await deleteAll();
  expect(removing).toHaveBeenCalledOnce();
  expect(removing.mock.calls[0]![0]).toMatchObject({ workdir: '/work/here', base: 'commit-1' });
});

test('a worktree that the last agent with a record of it may not remove is listed as kept', async () => {
  const removing = watchRemovals();
  await endedWithoutTeam(() => 'agt_of_another');
  await deleteAll();
  expect(removing).not.toHaveBeenCalled();
  expect(await kept()).toEqual([{ workdir: '/work/here', reason: 'it is another agent’s' }]);
});

test.each([
  ['of another agent', 'agt_of_another', false, [{ workdir: '/work/here', reason: 'it is another agent’s' }]],
  ['of another agent, by force', 'agt_of_another', true, [{ reason: 'it is another agent’s' }]],
  ['with unsaved work', null, false, [{ reason: 'untracked files' }]],
  ['with unsaved work, by force', null, true, []],
])(
  'a dry run and the deletion of a run keep the same worktree: one %s',
  async (_, claimed_by, force, expected) => {
    const run_id = await completed();
    const { folders } = fixture.node;
    folders.resolve = async (path) => ({ path, below_worktree_root: false, claimed_by });
    folders.whyKept = async () => 'untracked files';
    folders.removeWorktree = async (_tree, options) =>
      options.force
        ? { removed: true, kept_because: null }
        : { removed: false, kept_because: 'untracked files' };
    const { team_id } = await runOf(fixture, run_id);
    const remove = (dry_run: boolean) =>
      fixture.runs.deleter.delete(ANA, { team_id, run_id }, { delete_worktrees: force, dry_run });
    const dry = await remove(true);
    expect(dry.worktrees_kept).toMatchObject(expected);
    expect(await remove(false)).toEqual(dry);
  },
);

test('a dry run and the deletion of a run do not report a worktree that an agent outside the run shares', async () => {
  const run_id = await completed();
  await fixture.store.write(async (tx) => {
    const agent = await tx.get(tx.sql.selectFrom('agents').select('num').orderBy('num').limit(1));
    await tx.run(tx.sql.updateTable('agents').set({ run_num: null }).where('num', '=', agent!.num));
  });
  const removing = watchRemovals();
  fixture.node.folders.whyKept = async () => 'untracked files';
  const { team_id } = await runOf(fixture, run_id);
  const remove = (dry_run: boolean) =>
    fixture.runs.deleter.delete(ANA, { team_id, run_id }, { delete_worktrees: false, dry_run });
  const dry = await remove(true);
  expect(dry).toMatchObject({ agents: { length: 1 }, worktrees_kept: [] });
  expect(await remove(false)).toEqual(dry);
  expect(removing).not.toHaveBeenCalled();
});

test('only the record of a kept worktree whose folder is another agent’s can be removed, by force', async () => {
  const removing = watchRemovals();
  await endedWithoutTeam(() => 'agt_of_another');
  await deleteAll();
  const worktrees = new Worktrees(fixture.core);
  const { items } = await worktrees.list(ANA, { state: 'kept' }, {});
  const remove = (force: boolean, dry_run = false) => worktrees.delete(ANA, items[0]!.id, { force, dry_run });
  const reason = 'the folder belongs to another agent now';
  expect(await remove(false)).toMatchObject({ outcome: 'kept', reason, record_only: true });
  expect(await remove(true, true)).toMatchObject({ outcome: 'removable', reason, record_only: true });
  expect(await kept()).toEqual([{ workdir: '/work/here', reason }]);
  expect(await remove(true)).toMatchObject({ outcome: 'removed', reason, record_only: true });
  expect(await kept()).toEqual([]);
  expect(removing).not.toHaveBeenCalled();
});

test('of two kept worktrees in one folder, that of the newer agent is listed', async () => {
  await keep(2, 'untracked files');
  await keep(1, 'it is another agent’s');
  expect(await kept()).toMatchObject([{ reason: 'untracked files' }]);
  await keep(3, 'submodules');
  expect(await kept()).toMatchObject([{ reason: 'submodules' }]);
});
