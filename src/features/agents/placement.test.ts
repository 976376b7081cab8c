/** Who may use a folder: checked when an agent is created and each time it starts. The node has worktrees below `/trees`. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { idFrom } from '../../base/ids.ts';
import { problems } from '../../core/problem.ts';
import { ANA, BEN, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { ended, type ScriptedNode } from '../../testing/scripted-node.ts';
import type { CreateAgent } from './creation.ts';
import { prepareWorkdir } from './placement.ts';
import { updateAgent } from './queries/agents.ts';
import { keepWorktree } from './unused-worktrees.ts';

let fixture: FeaturesFixture;
let node: ScriptedNode;
let created: string[];
/** The agent for which the node created each folder. */
let claims: Map<string, string>;

beforeEach(async () => {
  fixture = await FeaturesFixture.make();
  ({ node } = fixture);
  created = [];
  claims = new Map();
  Object.assign(node.folders, {
    resolve: async (path: string) => {
      const real = path.replace(/\/+$/, '').replace('/link/', '/trees/');
      return {
        path: real,
        below_worktree_root: real.startsWith('/trees/'),
        claimed_by: claims.get(real) ?? null,
      };
    },
    createWorktree: async ({ agent_id, workdir }: { agent_id: string; workdir: string }) => {
      created.push(workdir);
      claims.set(workdir, agent_id);
      return { workdir, repo: null, branch: null, base: null };
    },
    removeWorktree: async () => ({ removed: true, kept_because: null }),
    changes: async () => ({ files: [] }),
  });
});
afterEach(() => fixture.end());

const REFUSED = { code: 'workdir_not_safe' };
const inWorktree = (caller: typeof ANA, workdir: string, more: Partial<CreateAgent> = {}) =>
  fixture.create({ worktree_mode: 'create_worktree', workdir, ...more }, null, caller);
const inFolder = (caller: typeof ANA, workdir: string, more: Partial<CreateAgent> = {}) =>
  fixture.create({ workdir, ...more }, null, caller);
const remove = (caller: typeof ANA, id: string) =>
  fixture.agents.delete(caller, id, { force: false, delete_worktree: true });

/** An agent of BEN. After `replaceWithWorktree`, ANA owns the worktree in which it was created. */
async function agentInReusedFolder(more: Partial<CreateAgent> = {}) {
  const first = await inWorktree(BEN, '/trees/feature');
  const agent = await inFolder(BEN, '/trees/feature/', more);
  const replaceWithWorktree = async () => {
    await remove(BEN, first.id);
    await inWorktree(ANA, '/trees/feature');
  };
  return { agent, become: replaceWithWorktree };
}

const listSessions = (agent_id: string) =>
  [...node.launches.values()].filter((launch) => launch.agent_id === agent_id);

async function expectRefused(agent_id: string, launched: number): Promise<void> {
  await vi.waitFor(
    async () =>
      expect(await fixture.get(agent_id)).toMatchObject({ reason: 'workdir_refused', pending: null }),
    SOON,
  );
  expect(listSessions(agent_id)).toHaveLength(launched);
}

test('rejects the path of another agent’s worktree before the node is called, even for root', async () => {
  await inWorktree(BEN, '/trees/feature');
  for (const workdir of ['/trees/feature', '/trees/feature/', '/link/feature']) {
    await expect(inWorktree(ANA, workdir), workdir).rejects.toMatchObject(REFUSED);
    await expect(inWorktree(BEN, workdir), workdir).rejects.toMatchObject(REFUSED);
  }
  expect(created).toEqual(['/trees/feature']);
});

test('reports to the node that the plane has recorded a shared worktree', async () => {
  await inWorktree(BEN, '/trees/feature');
  const recorded_flags: unknown[] = [];
  const { createWorktree } = node.folders;
  node.folders.createWorktree = (request) => {
    recorded_flags.push(request.recorded);
    return createWorktree(request);
  };
  const request = { name: 'x', node_id: 'main', worktree_mode: 'create_worktree' } as const;
  const repository = { worktree_repo: null, worktree_ref: null };
  const ids = { agent_id: 'agt_x', worktree_id: 'agt_x' };
  const rights = { may_use_all: false, owner: BEN.user_id, mayOperate: async () => true, shares: () => true };
  for (const workdir of ['/trees/feature/', '/trees/other']) {
    await prepareWorkdir(fixture.core, ids, { ...request, ...repository, workdir }, rights, () =>
      fixture.store.write((tx) => keepWorktree(fixture.core, tx, 'agt_x')),
    );
  }
  expect(recorded_flags).toEqual([true, false]);
});

test('reserves the path of a worktree during its creation, and releases it if the creation fails', async () => {
  let go = (_error?: Error) => {};
  let creating = false;
  const { createWorktree } = node.folders;
  node.folders.createWorktree = async (request) => {
    creating = true;
    const error = await new Promise<Error | undefined>((done) => {
      go = done;
    });
    if (error) throw error;
    return createWorktree(request);
  };
  const first = inWorktree(BEN, '/trees/feature').catch((error: Error) => error.message);
  await vi.waitFor(() => expect(creating).toBe(true), SOON);
  await expect(inWorktree(ANA, '/link/feature')).rejects.toMatchObject(REFUSED);
  go(new Error('no'));
  expect(await first).toBe('no');
  node.folders.createWorktree = createWorktree;
  expect(await inWorktree(ANA, '/trees/feature')).toMatchObject({ workdir: '/trees/feature' });
});

test('an agent whose workdir is now another user’s worktree cannot start or show its files', async () => {
  const { agent, become: replaceWithWorktree } = await agentInReusedFolder();
  const { session_id } = await fixture.agents.start(BEN, agent.id, null);
  node.sendFact(session_id!, ended(0));
  await fixture.until(agent.id, 'completed');
  expect(await fixture.agents.changes(BEN, agent.id)).toEqual({ files: [] });
  await replaceWithWorktree();
  await fixture.agents.start(BEN, agent.id, null);
  await expectRefused(agent.id, 1);
  await fixture.agents.restart(BEN, agent.id, 0, null);
  await expectRefused(agent.id, 1);
  await expect(fixture.agents.changes(BEN, agent.id)).rejects.toMatchObject(REFUSED);
  await expect(fixture.agents.files(ANA, agent.id, '')).rejects.toMatchObject(REFUSED);
});

test('an automatic restart checks the folder again', async () => {
  const { agent, become: replaceWithWorktree } = await agentInReusedFolder({ restart_policy: 'on_failure' });
  const { session_id } = await fixture.agents.start(BEN, agent.id, null);
  await replaceWithWorktree();
  node.sendFact(session_id!, ended(1));
  await fixture.until(agent.id, 'failed');
  await vi.waitFor(async () => {
    const due = await fixture.store.read((reader) => reader.all(reader.sql.selectFrom('timers').selectAll()));
    expect(due).toHaveLength(1);
  }, SOON);
  await fixture.advanceClock(60_000);
  await vi.waitFor(async () => expect((await fixture.get(agent.id)).session_count).toBe(2), SOON);
  await expectRefused(agent.id, 1);
});

test('a start that was kept until the node answered checks the folder again', async () => {
  const first = await inWorktree(BEN, '/trees/feature');
  const agent = await inFolder(BEN, '/trees/feature');
  const { reach } = node;
  node.reach = () => Promise.reject(problems.nodeUnreachable());
  await expect(fixture.agents.start(BEN, agent.id, null)).rejects.toMatchObject({ code: 'node_unreachable' });
  await fixture.store.write(async (tx) => {
    const { num } = (await tx.get(tx.sql.selectFrom('agents').select('num').where('id', '=', first.id)))!;
    updateAgent(tx, num, { owner_id: ANA.user_id });
  });
  node.reach = reach;
  await expectRefused(agent.id, 0);
});

test('changes are withheld if the worktree gets another owner while they are read', async () => {
  const { agent, become: replaceWithWorktree } = await agentInReusedFolder();
  node.folders.changes = async () => {
    await replaceWithWorktree();
    return { files: [{ path: 'secret' }] } as never;
  };
  await expect(fixture.agents.changes(BEN, agent.id)).rejects.toMatchObject(REFUSED);
});

test('a repeated request returns its agent, even if an earlier release created it', async () => {
  const first = await fixture.create({}, 'key', BEN);
  expect((await fixture.create({}, 'key', BEN)).id).toBe(first.id);
  const predictable = idFrom('agt', BEN.user_id, 'create', 'old-key');
  expect((await fixture.create({}, 'old-key', BEN)).id).not.toBe(predictable);
  const old = await fixture.create({}, null, BEN);
  await fixture.store.write(async (tx) => {
    const { num } = (await tx.get(tx.sql.selectFrom('agents').select('num').where('id', '=', old.id)))!;
    updateAgent(tx, num, { id: idFrom('agt', BEN.user_id, 'create', 'older-key') });
  });
  expect((await fixture.create({}, 'older-key', BEN)).id).toBe(
    idFrom('agt', BEN.user_id, 'create', 'older-key'),
  );
});

test('changes are withheld if the agent is deleted and its worktree reused while they are read', async () => {
  const agent = await inWorktree(BEN, '/trees/feature');
  const recorded_flags = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<object>();
  Object.assign(node.folders, {
    changes: () => {
      recorded_flags.resolve();
      return answer.promise;
    },
  });
  const seen = fixture.agents.changes(BEN, agent.id);
  await recorded_flags.promise;
  await remove(BEN, agent.id);
  await inWorktree(ANA, '/trees/feature');
  answer.resolve({ files: [{ path: 'secret' }] });
  await expect(seen).rejects.toMatchObject({ code: 'agent_not_found' });
});

test('only one of several concurrent deletions removes the worktree', async () => {
  const agent = await inWorktree(BEN, '/trees/feature');
  let removals = 0;
  const removed = Promise.withResolvers<object>();
  Object.assign(node.folders, {
    removeWorktree: () => {
      removals++;
      return removed.promise;
    },
  });
  const deletions = [1, 2, 3].map(() => remove(BEN, agent.id));
  await vi.waitFor(() => expect(removals).toBe(1), SOON);
  removed.resolve({ removed: true, kept_because: null });
  const settled = await Promise.allSettled(deletions);
  expect(settled.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected', 'rejected']);
  expect(removals).toBe(1);
});

test('an agent cannot start while its worktree is removed, and can if the removal fails', async () => {
  const agent = await inWorktree(ANA, '/trees/feature');
  const { updated_at } = await fixture.get(agent.id);
  await fixture.advanceClock(1000);
  const removal = Promise.withResolvers<never>();
  const removing = vi.spyOn(node.folders, 'removeWorktree').mockReturnValueOnce(removal.promise);
  const deletion = remove(ANA, agent.id);
  await vi.waitFor(() => expect(removing).toHaveBeenCalled(), SOON);
  const start = () => fixture.agents.start(ANA, agent.id, null);
  await expect(start()).rejects.toMatchObject({ code: 'agent_being_deleted' });
  removal.reject(problems.nodeUnreachable());
  await expect(deletion).rejects.toMatchObject({ code: 'node_unreachable' });
  // Otherwise, the next sweep would leave it alone.
  expect((await fixture.get(agent.id)).updated_at).toBe(updated_at);
  expect(await start()).toMatchObject({ status: 'running' });
});

test('an agent from a restored database cannot use or remove a worktree that another agent has claimed since', async () => {
  const agent = await inWorktree(BEN, '/trees/feature');
  claims.set('/trees/feature', 'agt_of_another');
  await expect(fixture.agents.changes(BEN, agent.id)).rejects.toMatchObject(REFUSED);
  await fixture.agents.start(BEN, agent.id, null).catch(() => {});
  await expectRefused(agent.id, 0);
  const { worktree_kept } = await remove(BEN, agent.id);
  expect(worktree_kept).toMatchObject({ reason: 'it is another agent’s' });
});

test('of two agents that are deleted at the same time, one removes the worktree that they share', async () => {
  const [one, other] = [await inWorktree(ANA, '/trees/shared'), await inWorktree(ANA, '/trees/other')];
  const shared = { workdir: '/trees/shared', run_num: null, member_id: 'dev' };
  await fixture.store.write(async (tx) => {
    await tx.run(tx.sql.updateTable('agents').set(shared).where('id', 'in', [one.id, other.id]));
  });
  claims.delete('/trees/shared');
  const removed = vi.spyOn(node.folders, 'removeWorktree');
  await Promise.all([remove(ANA, one.id), remove(ANA, other.id)]);
  expect(removed).toHaveBeenCalledOnce();
});
