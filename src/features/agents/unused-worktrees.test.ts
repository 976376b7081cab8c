/** Worktrees that are made for agents that are never inserted. The node has worktrees below `/trees`, by path. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { WorktreeRequest } from '../../core/node.ts';
import { invalid, problems } from '../../core/problem.ts';
import { deleteUser } from '../../store/users.ts';
import { ANA, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { ended, type ScriptedNode } from '../../testing/scripted-node.ts';
import { applyEvent, beginRun, plainMember } from '../../testing/team-runs.ts';

let fixture: FeaturesFixture;
let node: ScriptedNode;
/** The id for which each worktree was made. */
let made: Map<string, string>;
let unsaved: boolean;
let requests: WorktreeRequest[];

beforeEach(async () => {
  fixture = await FeaturesFixture.make();
  ({ node } = fixture);
  [made, unsaved, requests] = [new Map(), false, []];
  Object.assign(node.folders, {
    createWorktree: async (request: WorktreeRequest) => {
      requests.push(request);
      const { agent_id, name, workdir, repo } = request;
      const path = workdir ?? `/trees/${name}-${agent_id}`;
      if ((made.get(path) ?? agent_id) !== agent_id) throw problems.workdirNotSafe();
      made.set(path, agent_id);
      return { workdir: path, repo, branch: `svc/${agent_id}`, base: 'c0ffee' };
    },
    removeWorktree: async ({ workdir }: { workdir: string }, { force }: { force: boolean }) => {
      if (unsaved && !force) return { removed: false, kept_because: 'it has unsaved work' };
      return { removed: made.delete(workdir), kept_because: null };
    },
  });
});
afterEach(() => fixture.end());

const inWorktree = (name = 'a') =>
  fixture.create({ name, worktree_mode: 'create_worktree', workdir: null, worktree_repo: '/repo' });

/** Makes the node stop after it has made a worktree, until `go` is called. */
function holdCheckout() {
  const { createWorktree } = node.folders;
  const { promise: held, resolve: go, reject: fail } = Promise.withResolvers<void>();
  node.folders.createWorktree = async (request) => {
    const worktree = await createWorktree(request);
    node.folders.createWorktree = createWorktree;
    await held;
    return worktree;
  };
  return { go, fail };
}

async function untilDone(): Promise<void> {
  await vi.waitFor(async () => {
    const left = await fixture.store.read((reader) =>
      reader.all(reader.sql.selectFrom('outbox').select('kind')),
    );
    expect(left).toEqual([]);
  }, SOON);
}

test('keeps a worktree whose agent was inserted', async () => {
  const agent = await inWorktree();
  await untilDone();
  expect([...made]).toEqual([[agent.workdir, agent.id]]);
  expect(requests).toHaveLength(1);
});

test('creates no agent for a user who was deleted during the checkout, and removes the worktree', async () => {
  const { go } = holdCheckout();
  const creating = inWorktree();
  await vi.waitFor(() => expect(made.size).toBe(1), SOON);
  await fixture.store.write((tx) => deleteUser(tx, ANA.user_id));
  go();
  await expect(creating).rejects.toThrow('invalid token');
  await untilDone();
  expect(made.size).toBe(0);
  expect((await fixture.agents.list(ANA, {}, {})).items).toEqual([]);
});

test('removes a worktree if the agent cannot be inserted', async () => {
  const { go } = holdCheckout();
  const creating = inWorktree();
  await vi.waitFor(() => expect(made.size).toBe(1), SOON);
  const isRegistered = vi.spyOn(fixture.core.nodes, 'isRegistered').mockResolvedValue(false);
  go();
  await expect(creating).rejects.toMatchObject({ code: 'agent_node_not_found' });
  isRegistered.mockRestore();
  await untilDone();
  expect([...made]).toEqual([]);
});

test('after a kill, removes a worktree that was made for an agent that was not inserted', async () => {
  const removing = vi.spyOn(node.folders, 'removeWorktree');
  holdCheckout();
  void inWorktree();
  await vi.waitFor(() => expect(made.size).toBe(1), SOON);
  await fixture.close();
  await fixture.open();
  await untilDone();
  expect([...made]).toEqual([]);
  // The commit that the node names may be one of an agent that used the worktree.
  expect(removing.mock.calls.map(([{ base }]) => base)).toEqual([null]);
});

test('removes a worktree whose node stopped to answer, when the node is back', async () => {
  const { fail } = holdCheckout();
  const creating = inWorktree();
  await vi.waitFor(() => expect(made.size).toBe(1), SOON);
  fail(problems.nodeUnreachable());
  await expect(creating).rejects.toMatchObject({ code: 'node_unreachable' });
  fixture.core.outbox.retryNow('main');
  await untilDone();
  expect([...made]).toEqual([]);
});

test('does not ask the node again if it rejected the worktree', async () => {
  const { createWorktree } = node.folders;
  node.folders.createWorktree = async (request) => {
    await createWorktree(request);
    made.clear();
    throw invalid('worktree_repo is not a git repository');
  };
  await expect(inWorktree()).rejects.toThrow('is not a git repository');
  await untilDone();
  expect(requests).toHaveLength(1);
});

test('keeps a worktree with unsaved work', async () => {
  holdCheckout();
  void inWorktree();
  await vi.waitFor(() => expect(made.size).toBe(1), SOON);
  unsaved = true;
  await fixture.close();
  await fixture.open();
  await untilDone();
  expect(made.size).toBe(1);
});

const repo = { worktree_mode: 'create_worktree', worktree_repo: '/repo', workdir: '/trees/shared' } as const;
const cancel = (run_id: string) =>
  applyEvent(fixture, run_id, { kind: 'run_command', command: { kind: 'cancelRun' } });

test('removes the worktree of a run that ends during the checkout', async () => {
  const { go } = holdCheckout();
  const members = [plainMember('dev', 'true', repo)];
  const run_id = await beginRun(fixture, { members, steps: [{ step_key: 'a' }] });
  await vi.waitFor(() => expect(made.size).toBe(1), SOON);
  await cancel(run_id);
  go();
  await untilDone();
  expect([...made]).toEqual([]);
});

test('makes the worktree of a run once if its node disconnects during the checkout', async () => {
  const removeWorktree = vi.spyOn(node.folders, 'removeWorktree');
  const { fail } = holdCheckout();
  const members = [plainMember('dev', 'true', repo)];
  await beginRun(fixture, { members, steps: [{ step_key: 'a' }] });
  await vi.waitFor(() => expect(made.size).toBe(1), SOON);
  fail(problems.nodeUnreachable());
  await vi.waitFor(() => expect(node.launches.size).toBe(1), SOON);
  await untilDone();
  expect(removeWorktree).not.toHaveBeenCalled();
});

test('keeps it if another agent of the member uses it', async () => {
  const members = [plainMember('dev', 'true', repo)];
  const steps = [{ step_key: 'a' }, { step_key: 'b', depends_on: ['a'] }];
  const run_id = await beginRun(fixture, { members, steps });
  await vi.waitFor(() => expect(node.launches.size).toBe(1), SOON);
  await untilDone();
  const { go } = holdCheckout();
  node.sendFact([...node.launches.keys()][0]!, ended(0));
  await vi.waitFor(() => expect(requests).toHaveLength(2), SOON);
  await cancel(run_id);
  go();
  await untilDone();
  expect([...made.keys()]).toEqual(['/trees/shared']);
  expect((await fixture.agents.list(ANA, {}, {})).items).toHaveLength(1);
});
