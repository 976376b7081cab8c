/** Agents on a remote node, over HTTP and with real processes: they behave like local agents. */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hasProc, readAllStats } from '../src/base/proc.ts';
import type { Agent } from '../src/features/agents/rules.ts';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { History } from '../src/testing/history.ts';
import { requesterOf } from '../src/testing/http.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { commit, git, makeRepository } from '../src/testing/repository.ts';

let plane: TestPlane;
/** A node without a worktree root. */
let bare: TestAgentNode;
/** A node with a worktree root from the registry. */
let rooted: TestAgentNode;
let repo: string;

beforeAll(async () => {
  plane = await TestPlane.open({ env: WITH_NODES });
  bare = await TestAgentNode.open(plane, { id: 'bare' });
  rooted = await TestAgentNode.prepare(plane, { id: 'rooted' });
  await rooted.start(await rooted.token());
  await rooted.register({ default_worktree_root: join(rooted.work, 'trees') });
  await rooted.linked();
  repo = makeRepository(join(rooted.work, 'repo'), { 'a.txt': 'one\n' });
});
afterAll(async () => {
  await bare?.close();
  await rooted?.close();
  await plane?.close();
});

const request = requesterOf(() => plane);

async function http(method: string, path: string, body?: unknown): Promise<[status: number, body: unknown]> {
  const answer = await request(method, path, body);
  return [answer.status, answer.body];
}

const create = (body: Record<string, unknown>) =>
  http('POST', '/api/agents', { name: 'Far', command: 'true', node_id: 'bare', ...body });
const refused = (status: number, error: string) => [status, { error }];

test.runIf(hasProc)('ps shows the role of each process of the service', async () => {
  const title = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').replace(/\0+$/, '');
  expect([title(plane.pid), title(bare.pid)]).toEqual(['svc: plane', 'svc: node bare']);
  await plane.finished((await plane.agent('true')).id);
  const children = readAllStats().filter(({ ppid }) => ppid === plane.pid);
  expect(children.map(({ pid }) => title(pid))).toContain('svc: launcher');
});

test('an agent on a node is created, watched, stopped and restarted like a local one', async () => {
  const made = await bare.agent(
    'trap "echo bye; exit 0" TERM; echo up; echo err >&2; while :; do sleep 0.05; done',
    {
      start: false,
    },
  );
  expect(made).toMatchObject({ status: 'created', node_id: 'bare', workdir: bare.work, stale_since: null });
  const history = new History(plane.client, made.id);
  const started = await plane.client.call('startAgent', { params: { agent_id: made.id } });
  expect(started).toMatchObject({ status: 'running', session_count: 1, pending: null });
  expect(await http('POST', `/api/agents/${made.id}/start`)).toEqual(
    refused(409, 'agent is already running'),
  );
  await plane.frames(made.id, (frames) => frames.some(({ data }) => data.data === 'up\n'));
  const stopped = await http('POST', `/api/agents/${made.id}/stop`, { grace_seconds: 10 });
  expect(stopped).toMatchObject([200, { status: 'cancelled' }]);
  expect(await http('POST', `/api/agents/${made.id}/stop`)).toEqual(refused(409, 'agent is not running'));
  expect((await plane.output(made.id, { stream: 'stdout' })).toString()).toBe('up\nbye\n');
  expect((await plane.output(made.id, { stream: 'stderr' })).toString()).toMatch(/^err\n/);
  const again = await http('POST', `/api/agents/${made.id}/restart`);
  expect(again).toMatchObject([200, { status: 'running', session_count: 2 }]);
  expect(await http('DELETE', `/api/agents/${made.id}`)).toEqual(refused(409, 'agent is running'));
  await plane.frames(made.id, (frames) => frames.filter(({ data }) => data.data === 'up\n').length === 2);
  await history.close();
  expect(history.sequenceError()).toBeNull();
  expect((await http('DELETE', `/api/agents/${made.id}?force=true`))[0]).toBe(204);
  expect(await http('GET', `/api/agents/${made.id}`)).toEqual(refused(404, 'agent not found'));
});

test('missing commands, signals and exit codes are reported as on the main node', async () => {
  const ends = await Promise.all(
    ['exit 7', 'kill -9 $$', '/nonexistent/program'].map(async (command) => {
      const [there, here] = [await bare.agent(command), await plane.agent(command)];
      const shown = ({ status, exit_code, exit_signal, reason }: Agent) => ({
        status,
        exit_code,
        exit_signal,
        reason,
      });
      return [shown(await plane.finished(there.id)), shown(await plane.finished(here.id))];
    }),
  );
  for (const [there, here] of ends) expect(there).toEqual(here);
});

test('input reaches an agent on a node in order, and ranges of its output are served', async () => {
  const agent = await bare.agent('cat', { stdin: true });
  const input = (body: unknown) => http('POST', `/api/agents/${agent.id}/input`, body);
  const big = 'x'.repeat(700_000);
  expect((await input({ data: 'one\n' }))[0]).toBe(200);
  expect((await input({ data: big }))[0]).toBe(200);
  expect((await input({ data: 'end', eof: true }))[0]).toBe(200);
  expect((await plane.finished(agent.id)).status).toBe('completed');
  expect((await plane.output(agent.id)).toString()).toBe(`one\n${big}end`);
  const part = await fetch(`${plane.url}/api/agents/${agent.id}/output`, {
    headers: { authorization: `Bearer ${plane.token}`, range: 'bytes=0-4' },
  });
  expect([part.status, await part.text()]).toEqual([206, 'one\nx']);
  expect(await input({ data: 'late' })).toEqual(refused(409, 'agent is not running'));
});

test('the workdir of an agent is checked on its node', async () => {
  expect(await create({})).toEqual(refused(400, 'workdir is required'));
  expect(await create({ workdir: 'here' })).toEqual(refused(400, 'workdir must be absolute'));
  const outside = refused(400, 'workdir path must be within allowed safe paths');
  expect(await create({ workdir: '/etc' })).toEqual(outside);
  // A safe path of the plane is not one of the node.
  expect(await create({ workdir: plane.work })).toEqual(outside);
  const body = { name: 'Far', command: 'true', node_id: 'bare', workdir: plane.work };
  const { headers } = await request('POST', '/api/agents', body);
  expect([headers.get('x-allowed-paths'), headers.get('x-refused-path')]).toEqual([bare.work, plane.work]);
  expect(await create({ workdir: join(bare.work, 'no') })).toEqual(refused(400, 'workdir does not exist'));
  expect(await create({ workdir: bare.work, node_id: 'nowhere' })).toEqual(
    refused(404, 'agent node not found'),
  );
});

test('the node reports a workdir that was removed between creation and start', async () => {
  mkdirSync(join(bare.work, 'going'));
  const agent = await bare.agent('true', { start: false, workdir: join(bare.work, 'going') });
  rmdirSync(join(bare.work, 'going'));
  await http('POST', `/api/agents/${agent.id}/start`);
  expect(await plane.finished(agent.id)).toMatchObject({ status: 'failed', reason: 'workdir_refused' });
});

test('the repositories of a node are those below its own safe paths, last used first', async () => {
  const list = async (node_id: string) => http('GET', `/api/nodes/${node_id}/repositories`);
  const found = (path: string, fields: Record<string, unknown> = {}) => ({
    ...{ path, name: basename(path), branch: 'main', dirty: false, last_used_at: null },
    ...fields,
  });
  const other = makeRepository(join(rooted.work, 'another'), { 'a.txt': 'one\n' });
  writeFileSync(join(other, 'new.txt'), '');
  const body = { worktree_mode: 'create_worktree', worktree_repo: repo, node_id: 'rooted' };
  const [status, made] = await create(body);
  expect(status).toBe(201);
  const { created_at } = made as Agent;
  expect(await list('rooted')).toEqual([
    200,
    {
      roots: [rooted.work],
      // The worktree of the agent is not one of them.
      repositories: [found(repo, { last_used_at: created_at }), found(other, { dirty: true })],
      truncated: false,
    },
  ]);
  const [, main] = await list('main');
  expect(main).toMatchObject({ roots: [plane.work] });
  const check = (path: string) =>
    request('GET', `/api/nodes/rooted/repositories?path=${encodeURIComponent(path)}`);
  const outside = await check('/etc');
  expect([outside.status, outside.body, outside.headers.get('x-allowed-paths')]).toEqual([
    ...refused(400, 'worktree_repo must be within allowed safe paths'),
    rooted.work,
  ]);
  expect((await check(join(rooted.work, 'no'))).body).toEqual({ error: 'worktree_repo does not exist' });
  expect((await check(repo)).status).toBe(200);
  expect(await list('nowhere')).toEqual(refused(404, 'agent node not found'));
});

test('without a worktree root, a worktree needs an existing workdir on the node', async () => {
  const own = makeRepository(join(bare.work, 'repo'), { 'a.txt': 'one\n' });
  const tree = { worktree_mode: 'create_worktree', worktree_repo: own };
  expect(await create(tree)).toEqual(refused(400, 'workdir is required'));
  expect(await create({ ...tree, workdir: '' })).toEqual(refused(400, 'workdir is required'));
  const workdir = join(bare.work, 'tree');
  expect(await create({ ...tree, workdir })).toEqual(refused(400, 'workdir does not exist'));
  const outside = refused(400, 'workdir path must be within allowed safe paths');
  expect(await create({ ...tree, workdir: '/tmp' })).toEqual(outside);
  mkdirSync(workdir);
  expect(await create({ ...tree, workdir })).toMatchObject([201, { workdir }]);
  expect(git(workdir, 'branch', '--show-current')).toMatch(/^svc\/Far-agt_/);
  expect(await create({ worktree_mode: 'create_worktree' })).toEqual(refused(400, 'workdir is required'));
  const empty = join(bare.work, 'empty');
  mkdirSync(empty);
  const bare_tree = { worktree_mode: 'create_worktree', worktree_repo: '', workdir: empty };
  expect(await create(bare_tree)).toMatchObject([201, { workdir: empty, worktree_repo: null }]);
});

test("a worktree root from the registry holds a node's worktrees, and their changes are shown", async () => {
  const tree = { node_id: 'rooted', worktree_mode: 'create_worktree', worktree_repo: repo };
  const [status, body] = await create({
    ...tree,
    command: 'echo more >> a.txt; echo new > b.txt',
    start: true,
  });
  const agent = body as Agent;
  expect(status).toBe(201);
  expect(agent.workdir).toBe(join(rooted.work, 'trees', `Far-${agent.id}`));
  await plane.finished(agent.id);
  const [, changes] = await http('GET', `/api/agents/${agent.id}/changes`);
  expect(changes).toMatchObject({
    git: true,
    branch: agent.worktree_branch,
    files: [
      { path: 'a.txt', status: 'modified', additions: 1 },
      { path: 'b.txt', status: 'untracked' },
    ],
  });
  const [, change] = await http('GET', `/api/agents/${agent.id}/changes/a.txt`);
  expect((change as { diff: string }).diff).toContain('+more');
  const [, narrow] = await http('GET', `/api/agents/${agent.id}/changes/a.txt?context=0`);
  expect((narrow as { diff: string }).diff).toMatch(/^@@ .*\n\+more\n$/m);
  const headers = { accept: 'text/x-diff' };
  const patch = await plane.client.open('getChanges', { params: { agent_id: agent.id }, headers });
  const text = await patch.text();
  for (const line of ['+more', '+++ b/b.txt']) expect(text.split('\n')).toContain(line);
  const [, found] = await http('GET', `/api/agents/${agent.id}/files?q=txt`);
  expect(found).toEqual({ git: true, paths: ['a.txt', 'b.txt'], truncated: false });
  const dry = `/api/agents/${agent.id}?dry_run=true&delete_worktree=true`;
  expect(await http('DELETE', dry)).toMatchObject([
    200,
    {
      worktree_removed: {
        lost: 'uncommitted changes, untracked files',
        uncommitted: [{ path: 'a.txt' }, { path: 'b.txt' }],
      },
    },
  ]);
  const [gone, kept] = await http('DELETE', `/api/agents/${agent.id}`);
  expect([gone, kept]).toMatchObject([200, { worktree_kept: { workdir: agent.workdir } }]);
  expect(existsSync(join(agent.workdir, 'b.txt'))).toBe(true);
  const worktree = `/api/worktrees/${agent.id}`;
  expect((await http('GET', '/api/worktrees?state=kept&node_id=rooted'))[1]).toMatchObject([
    { id: agent.id, node_id: 'rooted', reason: 'uncommitted changes, untracked files' },
  ]);
  expect(await http('DELETE', `${worktree}?dry_run=true`)).toMatchObject([200, { outcome: 'kept' }]);
  expect(await http('DELETE', worktree)).toMatchObject([200, { outcome: 'kept' }]);
  commit(agent.workdir, {}, 'work');
  git(repo, 'branch', 'saved', agent.worktree_branch!);
  expect(await http('DELETE', `${worktree}?dry_run=true`)).toMatchObject([200, { outcome: 'removable' }]);
  expect(existsSync(agent.workdir)).toBe(true);
  expect(await http('DELETE', worktree)).toMatchObject([200, { outcome: 'removed' }]);
  expect(existsSync(agent.workdir)).toBe(false);

  const [, clean] = await create(tree);
  const { id, workdir } = clean as Agent;
  expect((await http('DELETE', `/api/agents/${id}`))[0]).toBe(204);
  expect(existsSync(workdir)).toBe(false);
  const listed = (await http('GET', '/api/nodes'))[1] as { id: string; has_default_root: boolean }[];
  const roots = Object.fromEntries(listed.map((node) => [node.id, node.has_default_root]));
  expect(roots).toEqual({ main: true, bare: false, rooted: true });
});

test('repositories on a node are validated like those on the main node', async () => {
  const tree = { node_id: 'rooted', worktree_mode: 'create_worktree' };
  expect(await create({ ...tree, worktree_repo: '/etc' })).toEqual(
    refused(400, 'worktree_repo must be within allowed safe paths'),
  );
  mkdirSync(join(rooted.work, 'plain'));
  const [status, body] = await create({ ...tree, worktree_repo: join(rooted.work, 'plain') });
  expect([status, (body as { error: string }).error]).toEqual([400, expect.stringMatching(/^fatal: /)]);
  writeFileSync(join(repo, 'a.txt'), 'two\n');
  commit(repo, { 'a.txt': 'two\n' }, 'second');
  const [, made] = await create({ ...tree, worktree_repo: repo, worktree_ref: 'main~1' });
  expect(git((made as Agent).workdir, 'log', '--format=%s')).toBe('first');
});

test('a node can be deleted only when it has no agents', async () => {
  const agent = await rooted.agent('true');
  await plane.finished(agent.id);
  const path = '/api/admin/agent-nodes/rooted';
  expect(await http('DELETE', path)).toEqual(refused(409, 'agent node has active agents'));
  const agents = (await http('GET', '/api/agents?node_id=rooted'))[1] as Agent[];
  for (const { id } of agents) await http('DELETE', `/api/agents/${id}?delete_worktree=true`);
  expect((await http('DELETE', path))[0]).toBe(204);
  expect(await http('DELETE', path)).toEqual(refused(404, 'agent node not found'));
  expect(await http('GET', `${path}/health`)).toEqual(refused(404, 'agent node not found'));
  expect(await create({ node_id: 'rooted', workdir: rooted.work })).toEqual(
    refused(404, 'agent node not found'),
  );
  expect(rooted.isRunning).toBe(true);
});
