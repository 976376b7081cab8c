/** Folders of agents over HTTP, with real git: creating, showing, keeping and removing worktrees, and refusing workdirs. */
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requesterOf } from '../src/testing/http.ts';
import { longTest } from '../src/testing/long.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { commit, git, makeRepository } from '../src/testing/repository.ts';

let plane: TestPlane;
let repo: string;

beforeAll(async () => {
  plane = await TestPlane.open();
  repo = makeRepository(join(plane.work, 'repo'), { 'a.txt': 'one\n', 'sub/b c.txt': 'two\n' });
});
afterAll(() => plane?.close());

const http = requesterOf(() => plane);

const create = (body: Record<string, unknown>) =>
  http('POST', '/api/agents', { name: 'Fix it', command: 'true', ...body });
const refusal = async (body: Record<string, unknown>) => {
  const { status, body: answer } = await create(body);
  return [status, (answer as { error?: string }).error];
};

interface Made {
  id: string;
  workdir: string;
  worktree_branch: string;
}

async function worktree(body: Record<string, unknown> = {}): Promise<Made> {
  const made = await create({ worktree_mode: 'create_worktree', worktree_repo: repo, ...body });
  expect(made.status).toBe(201);
  return made.body as Made;
}

test('an agent works in its own worktree, and its changes are shown against the starting commit', async () => {
  const agent = await worktree({
    command:
      'echo more >> a.txt && echo new > "sub/n w.txt" && git rm -q "sub/b c.txt" && git branch --show-current',
    start: true,
  });
  expect(agent.workdir).toBe(join(plane.data_dir, `worktrees/Fix-it-${agent.id}`));
  expect(agent.worktree_branch).toBe(`svc/Fix-it-${agent.id}`);
  expect((await plane.finished(agent.id)).status).toBe('completed');
  expect((await plane.output(agent.id)).toString()).toBe(`${agent.worktree_branch}\n`);

  const changes = await http('GET', `/api/agents/${agent.id}/changes`);
  expect(changes.body).toMatchObject({
    git: true,
    branch: agent.worktree_branch,
    files: [
      { path: 'a.txt', status: 'modified', additions: 1, deletions: 0 },
      { path: 'sub/b c.txt', status: 'deleted' },
      { path: 'sub/n w.txt', status: 'untracked', additions: 1 },
    ],
  });
  for (const path of ['sub/n%20w.txt', 'sub%2Fn%20w.txt']) {
    const change = await http('GET', `/api/agents/${agent.id}/changes/${path}`);
    expect(change.body).toMatchObject({ path: 'sub/n w.txt', diff: expect.stringContaining('+new') });
  }
  const context = async (lines: string) => {
    const { status, body } = await http('GET', `/api/agents/${agent.id}/changes/a.txt?context=${lines}`);
    return [status, (body as { diff?: string; error?: string }).diff?.split('\n').slice(4) ?? body];
  };
  expect(await context('0')).toEqual([200, ['@@ -1,0 +2 @@ one', '+more', '']]);
  expect(await context('1000')).toEqual([200, ['@@ -1 +1,2 @@', ' one', '+more', '']]);
  const limit = { error: 'context must be an integer from 0 to 1000' };
  for (const lines of ['1001', '-1', 'all']) expect(await context(lines)).toMatchObject([400, limit]);
  const printed = await plane.cli(['agents', 'diff', agent.id, 'a.txt', '-U', '0']);
  expect(printed.stdout).toMatch(/^@@ .*\n\+more\n$/m);
  const other = await fetch(`${plane.url}/api/agents/${agent.id}/changes`, {
    headers: { authorization: `Bearer ${plane.token}`, accept: 'text/x-diff' },
  });
  expect([other.status, other.headers.get('content-type'), other.headers.get('vary')]).toEqual([
    ...[200, 'text/x-diff', 'accept'],
  ]);
  const patch = await other.text();
  expect(await plane.cli(['agents', 'changes', agent.id, '--patch'])).toMatchObject({
    ...{ code: 0, stdout: patch },
  });
  const clone = join(plane.folder, 'clone');
  git(plane.folder, 'clone', '--quiet', repo, clone);
  writeFileSync(join(plane.folder, 'the.patch'), patch);
  git(clone, 'apply', join(plane.folder, 'the.patch'));
  for (const tree of [clone, agent.workdir]) git(tree, 'add', '--all');
  expect(git(clone, 'write-tree')).toBe(git(agent.workdir, 'write-tree'));
  for (const path of ['..%2F..%2Fsvc.db', 'none', '%2Fetc%2Fpasswd', 'a.txt%00']) {
    const change = await http('GET', `/api/agents/${agent.id}/changes/${path}`);
    expect([path, change.status]).toEqual([path, 404]);
  }
});

test('deleting an agent keeps a worktree with unsaved work and reports it, unless delete_worktree is set', async () => {
  const clean = await worktree();
  expect(await http('DELETE', `/api/agents/${clean.id}`)).toMatchObject({ status: 204, body: null });
  expect(existsSync(clean.workdir)).toBe(false);

  const dirty = await worktree();
  writeFileSync(join(dirty.workdir, 'new'), 'x');
  commit(dirty.workdir, { 'work.txt': 'x' }, 'work');
  writeFileSync(join(dirty.workdir, 'newer'), 'x');
  expect(await http('DELETE', `/api/agents/${dirty.id}`)).toMatchObject({
    status: 200,
    body: {
      worktree_kept: {
        workdir: dirty.workdir,
        reason: 'untracked files, 1 commit on no remote and no other branch',
      },
    },
  });
  expect(existsSync(join(dirty.workdir, 'newer'))).toBe(true);

  const doomed = await worktree();
  writeFileSync(join(doomed.workdir, 'new'), 'x');
  expect((await http('DELETE', `/api/agents/${doomed.id}?delete_worktree=true`)).status).toBe(204);
  expect(existsSync(doomed.workdir)).toBe(false);
  expect(git(repo, 'branch', '--list', doomed.worktree_branch)).toBe('');
});

test('a dry run of a deletion reports what it would remove, keep and lose, and changes nothing', async () => {
  const agent = await worktree();
  const dryRun = (query = '') => http('DELETE', `/api/agents/${agent.id}?dry_run=true${query}`);
  const { id, workdir } = agent;
  const worktree_removed = { workdir, lost: null, uncommitted: [], truncated: false };
  const [clean, forced] = [await dryRun(), await dryRun('&delete_worktree=true')];
  expect(forced.body).toEqual(clean.body);
  expect(clean).toMatchObject({ status: 200, body: { id, worktree_removed } });

  commit(workdir, { 'work.txt': 'x' }, 'work');
  writeFileSync(join(workdir, 'a.txt'), 'two\n');
  writeFileSync(join(workdir, 'new'), 'x\n');
  const lost = 'uncommitted changes, untracked files, 1 commit on no remote and no other branch';
  expect((await dryRun()).body).toEqual({ id, worktree_kept: { workdir, reason: lost } });
  const version = expect.any(String);
  const uncommitted = [
    { path: 'a.txt', status: 'modified', additions: 1, deletions: 1, from: null, version },
    { path: 'new', status: 'untracked', additions: 1, deletions: 0, from: null, version },
  ];
  const removed = { workdir, lost, uncommitted, truncated: false };
  expect((await dryRun('&delete_worktree=true')).body).toEqual({ id, worktree_removed: removed });

  const args = ['agents', 'delete', id, '--dry-run'];
  expect(await plane.cli(args)).toMatchObject({
    ...{ code: 0, stderr: `would delete ${id}\nwould keep ${workdir}: ${lost}\n` },
  });
  expect(await plane.cli([...args, '--delete-worktree'])).toMatchObject({
    code: 0,
    stderr: `would delete ${id}\nwould remove ${workdir}: ${lost}\n  modified a.txt\n  untracked new\n`,
  });
  const printed = await plane.cli([...args, '--delete-worktree', '--json']);
  expect(JSON.parse(printed.stdout)).toEqual({ id, worktree_removed: removed });
  const forget = await http('DELETE', `/api/agents/${id}?dry_run=true&forget=true`);
  expect(forget).toMatchObject({
    status: 409,
    body: { error: 'agent node answers; delete it without forget to stop its agents' },
  });

  expect((await http('GET', `/api/agents/${id}`)).status).toBe(200);
  expect(existsSync(join(workdir, 'new'))).toBe(true);
  const audit = (await http('GET', `/api/admin/audit?agent_id=${id}`)).body as { event: string }[];
  expect(audit.map(({ event }) => event)).toEqual(['agent_created']);

  await http('POST', `/api/agents/${id}/start`);
  await plane.finished(id);
  await http('PATCH', `/api/agents/${id}`, { command: 'sleep 1000' });
  await http('POST', `/api/agents/${id}/start`);
  expect(await dryRun()).toMatchObject({ status: 409, body: { error: 'agent is running' } });
  expect((await dryRun('&force=true')).status).toBe(200);
  expect((await http('GET', `/api/agents/${id}`)).body).toMatchObject({ status: 'running' });
  await http('DELETE', `/api/agents/${id}?force=true&delete_worktree=true`);
});

test('a dry run of a deletion says nothing about a folder that svc did not create', async () => {
  const { body } = await create({ workdir: plane.work });
  const { id } = body as Made;
  const dry = await http('DELETE', `/api/agents/${id}?dry_run=true&delete_worktree=true`);
  expect(dry).toMatchObject({ status: 200, body: { id } });
  expect(Object.keys(dry.body as object)).toEqual(['id']);
});

test('a kept worktree is listed with the reason until it is removed', async () => {
  const agent = await worktree();
  const in_use = { id: agent.id, state: 'in_use', agent_status: 'created', reason: null, kept_at: null };
  const listed = async (query = '') => {
    const { body } = await http('GET', `/api/worktrees${query}`);
    return (body as { id: string }[]).find(({ id }) => id === agent.id);
  };
  expect(await listed()).toMatchObject({ ...in_use, workdir: agent.workdir, branch: agent.worktree_branch });
  expect(await listed('?state=kept')).toBeUndefined();
  expect(await http('DELETE', `/api/worktrees/${agent.id}`)).toMatchObject({
    ...{ status: 409, body: { error: 'worktree is in use; delete its agent instead' } },
  });
  const refused = await plane.cli(['worktrees', 'rm', agent.id]);
  expect(refused).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`svc agents delete ${agent.id}`),
  });

  writeFileSync(join(agent.workdir, 'new'), 'x\n');
  const deleted = await plane.cli(['agents', 'delete', agent.id]);
  expect(deleted.stderr).toContain(`kept ${agent.workdir}: untracked files`);
  expect(deleted.stderr).toContain(`svc worktrees rm ${agent.id}`);
  const kept = {
    ...{ state: 'kept', agent_status: null, reason: 'untracked files', agent_name: 'Fix it' },
    diff: { files: 1, added: 1, removed: 0 },
  };
  expect(await listed('?state=kept')).toMatchObject(kept);
  expect(await listed('?state=in_use')).toBeUndefined();
  expect(await listed(`?repo=${encodeURIComponent(repo)}`)).toMatchObject(kept);
  expect(await listed('?node_id=other')).toBeUndefined();
  const rows = await plane.cli(['worktrees', 'ls', '--kept']);
  expect(rows.stdout).toContain(
    `${agent.id}\tFix it\tmain\tkept\t1 file, +1 -0\tuntracked files\t${agent.workdir}\n`,
  );

  const still = await plane.cli(['worktrees', 'rm', agent.workdir]);
  expect(still).toMatchObject({ code: 1, stderr: expect.stringContaining('worktrees rm --force') });
  expect(existsSync(join(agent.workdir, 'new'))).toBe(true);
  commit(agent.workdir, { new: 'x\n' }, 'work');
  git(repo, 'branch', `saved-${agent.id}`, agent.worktree_branch);
  const dry = await plane.cli(['worktrees', 'rm', agent.id, '--dry-run']);
  expect(dry).toMatchObject({ code: 0, stderr: `would remove ${agent.workdir}\n` });
  expect(existsSync(agent.workdir)).toBe(true);
  const gone = await plane.cli(['worktrees', 'rm', agent.id]);
  expect(gone).toMatchObject({ code: 0, stderr: `removed ${agent.workdir}\n` });
  expect(existsSync(agent.workdir)).toBe(false);
  expect(git(repo, 'branch', '--list', agent.worktree_branch)).toBe('');
  expect(await listed()).toBeUndefined();
  expect((await http('DELETE', `/api/worktrees/${agent.id}`)).status).toBe(404);
});

longTest('a worktree removed by force reports the branch that holds its only commits', async () => {
  const agent = await worktree();
  commit(agent.workdir, { 'work.txt': 'x' }, 'work');
  await http('DELETE', `/api/agents/${agent.id}`);
  const branch_kept = {
    branch: agent.worktree_branch,
    reason: '1 commit on no remote and no other branch',
  };
  expect((await http('DELETE', `/api/worktrees/${agent.id}?dry_run=true`)).body).toMatchObject({
    ...{ outcome: 'kept', reason: branch_kept.reason },
  });
  expect((await http('DELETE', `/api/worktrees/${agent.id}?force=true`)).body).toMatchObject({
    ...{ outcome: 'removed', workdir: agent.workdir, branch_kept },
  });
  expect(existsSync(agent.workdir)).toBe(false);
  expect(git(repo, 'log', '--format=%s', '-1', agent.worktree_branch)).toBe('work');
  const other = await worktree();
  commit(other.workdir, { 'work.txt': 'y' }, 'work');
  expect((await http('DELETE', `/api/agents/${other.id}?delete_worktree=true`)).body).toMatchObject({
    branch_kept: { branch: other.worktree_branch },
  });
});

test('rm --all removes what has no unsaved work and keeps the rest', async () => {
  const [saved, unsaved] = [await worktree(), await worktree()];
  for (const { id, workdir } of [saved, unsaved]) {
    writeFileSync(join(workdir, 'new'), 'x');
    await http('DELETE', `/api/agents/${id}`);
  }
  rmSync(join(saved.workdir, 'new'));
  const { code, stdout } = await plane.cli(['worktrees', 'rm', '--all', '--json']);
  const outcomes = JSON.parse(stdout) as { id: string; outcome: string }[];
  const outcomeOf = ({ id }: Made) => outcomes.find((result) => result.id === id)?.outcome;
  expect([code, outcomeOf(saved), outcomeOf(unsaved)]).toEqual([0, 'removed', 'kept']);
  expect([existsSync(saved.workdir), existsSync(unsaved.workdir)]).toEqual([false, true]);
  expect((await plane.cli(['worktrees', 'rm'])).code).toBe(2);
  expect((await plane.cli(['worktrees', 'rm', '--all', '--force'])).code).toBe(2);
});

test('a kept worktree in which another agent works stays, even with force', async () => {
  const agent = await worktree();
  const { body } = await create({ workdir: agent.workdir });
  writeFileSync(join(agent.workdir, 'new'), 'x');
  await http('DELETE', `/api/agents/${agent.id}`);
  const { id } = body as Made;
  expect((await http('DELETE', `/api/worktrees/${agent.id}?force=true`)).body).toMatchObject({
    ...{ outcome: 'kept', reason: 'an agent works in it' },
  });
  await http('DELETE', `/api/agents/${id}`);
  expect((await http('DELETE', `/api/worktrees/${agent.id}?force=true`)).body).toMatchObject({
    outcome: 'removed',
  });
});

test('deleting a run deletes its agents, and keeps their worktree if it has unsaved work', async () => {
  const agent = {
    command: 'echo x > "$SVC_STEP_KEY"',
    worktree_mode: 'create_worktree',
    worktree_repo: repo,
  };
  const steps = ['one', 'two'].map((step_key) => ({ step_key, member_id: 'dev' }));
  const spec = { members: [{ member_id: 'dev', agent }], steps };
  const team = (await http('POST', '/api/teams', { name: 'crew', spec })).body as { id: string };
  const runs = `/api/teams/${team.id}/runs`;
  const begin = async () => (await http('POST', runs, {})).body as { id: string; number: number };
  const first = await begin();
  expect((await plane.cli(['runs', 'watch', first.id])).code).toBe(0);
  const agents = (await http('GET', `/api/agents?team_id=${team.id}`)).body as Made[];
  const { workdir } = agents[0]!;
  expect(agents.map((made) => made.workdir)).toEqual([workdir, workdir]);
  const shared = await http('DELETE', `/api/agents/${agents[0]!.id}?dry_run=true&delete_worktree=true`);
  expect(shared.body).toMatchObject({
    worktree_kept: { workdir, reason: `other agents use it: ${agents[1]!.id}` },
  });
  const one = await plane.cli(['agents', 'delete', agents[0]!.id]);
  expect(one.stderr).toContain(`kept ${workdir}: other agents use it: ${agents[1]!.id}`);
  expect((await http('GET', '/api/worktrees?state=kept')).body).not.toContainEqual(
    expect.objectContaining({ workdir }),
  );

  const dry = await plane.cli(['runs', 'delete', 'crew#1', '--dry-run']);
  expect(dry.stderr).toContain(
    `would delete ${first.id} and 1 agent\nwould keep ${workdir}: untracked files`,
  );
  expect((await http('GET', `${runs}/${first.id}`)).status).toBe(200);
  const deleted = await plane.cli(['runs', 'delete', 'crew#1']);
  expect(deleted).toMatchObject({ code: 0, stderr: expect.stringContaining(`kept ${workdir}: untracked`) });
  expect((await http('GET', `${runs}/${first.id}`)).status).toBe(404);
  expect((await http('GET', `/api/agents?team_id=${team.id}`)).body).toEqual([]);
  const kept = await plane.cli(['worktrees', 'rm', workdir, '--force', '--json']);
  expect(JSON.parse(kept.stdout)).toMatchObject([{ workdir, outcome: 'removed' }]);
  expect(existsSync(workdir)).toBe(false);

  const second = await begin();
  expect(second.number).toBe(2);
  expect((await plane.cli(['runs', 'watch', second.id])).code).toBe(0);
  const [made] = (await http('GET', `/api/agents?team_id=${team.id}`)).body as Made[];
  const all = await http('DELETE', `${runs}/${second.id}?delete_worktrees=true`);
  expect(all.body).toMatchObject({ agents: { length: 2 }, worktrees_kept: [], branches_kept: [] });
  expect(existsSync(made!.workdir)).toBe(false);
  const open = await http('POST', '/api/teams', { name: 'open', spec: { members: [{ member_id: 'me' }] } });
  const { id: team_id } = open.body as { id: string };
  const run = (await http('POST', `/api/teams/${team_id}/runs`, {})).body as { id: string };
  expect(await http('DELETE', `/api/teams/${team_id}/runs/${run.id}`)).toMatchObject({
    ...{ status: 409, body: { error: 'run has not ended; cancel it first' } },
  });
});

test('deleting an agent never removes a folder that the service did not create', async () => {
  const mine = join(plane.work, 'mine');
  mkdirSync(mine);
  const { body } = await create({ workdir: mine });
  expect((await http('DELETE', `/api/agents/${(body as Made).id}?delete_worktree=true`)).status).toBe(204);
  expect(existsSync(mine)).toBe(true);
});

test('an invalid workdir is refused with the documented message', async () => {
  symlinkSync('/etc', join(plane.work, 'out'));
  mkdirSync(`${plane.work}-evil`);
  const unsafe = 'workdir path must be within allowed safe paths';
  expect(await refusal({})).toEqual([400, 'workdir is required']);
  expect(await refusal({ workdir: 'here' })).toEqual([400, 'workdir must be absolute']);
  for (const workdir of [
    '/etc',
    `${plane.work}-evil`,
    `${plane.work}/..`,
    `${plane.work}/out`,
    `${plane.work}/no/../../..`,
  ]) {
    expect([workdir, ...(await refusal({ workdir }))]).toEqual([workdir, 400, unsafe]);
  }
  expect(await refusal({ workdir: `${plane.work}/none` })).toEqual([400, 'workdir does not exist']);
  expect((await refusal({ workdir: `${plane.work}/\0` }))[0]).toBe(400);
  expect((await refusal({ workdir: `${plane.work}/${'x'.repeat(5_000)}` }))[0]).toBe(400);
});

test('a repository alone asks for a worktree of it, and a mode that is named decides', async () => {
  const { status, body } = await create({ worktree_repo: repo });
  expect([status, body]).toMatchObject([201, { worktree_mode: 'create_worktree', worktree_repo: repo }]);
  expect(existsSync(join((body as Made).workdir, '.git'))).toBe(true);
  expect(await refusal({ worktree_repo: repo, worktree_mode: 'use_existing' })).toEqual([
    400,
    'workdir is required',
  ]);
  const member = { member_id: 'a', agent: { command: 'true', worktree_repo: repo } };
  const other = { member_id: 'b', agent: { ...member.agent, worktree_mode: 'use_existing', workdir: repo } };
  const team = await http('POST', '/api/teams', { name: 'modes', spec: { members: [member, other] } });
  const { spec } = team.body as { spec: { members: { agent: { worktree_mode: string } }[] } };
  expect(spec.members.map(({ agent }) => agent.worktree_mode)).toEqual(['create_worktree', 'use_existing']);
});

test('an invalid worktree is refused with the documented message or git’s, and no agent is stored', async () => {
  const count = async () => ((await http('GET', '/api/agents')).body as unknown[]).length;
  const before = await count();
  const refused = (body: Record<string, unknown>) => refusal({ worktree_mode: 'create_worktree', ...body });
  mkdirSync(join(plane.work, 'plain'), { recursive: true });
  expect(await refused({ worktree_repo: '/etc' })).toEqual([
    400,
    'worktree_repo must be within allowed safe paths',
  ]);
  expect(await refused({ worktree_repo: join(plane.work, 'plain') })).toEqual([
    400,
    'fatal: not a git repository (or any of the parent directories): .git',
  ]);
  expect(await refused({ worktree_repo: repo, worktree_ref: 'none' })).toEqual([
    400,
    'worktree_ref is not a commit: fatal: Needed a single revision',
  ]);
  expect((await refused({ worktree_repo: repo, worktree_ref: '--upload-pack=touch' }))[0]).toBe(400);
  expect(await count()).toBe(before);
});

test('worktrees survive a crash of the service unchanged', async () => {
  const agent = await worktree();
  writeFileSync(join(agent.workdir, 'new'), 'x\n');
  await plane.kill('SIGKILL');
  await plane.start();
  expect((await http('GET', `/api/agents/${agent.id}/changes`)).body).toMatchObject({
    files: [{ path: 'new', status: 'untracked' }],
  });
});

test('a service that is killed before it recorded the new agent removes its worktree and branch', async () => {
  const before = git(repo, 'worktree', 'list');
  await plane.kill('SIGKILL');
  await plane.start({ SVC_FAILPOINT: 'worktree_made:kill' });
  await expect(worktree()).rejects.toThrow();
  await plane.ended();
  expect(git(repo, 'worktree', 'list')).not.toBe(before);
  const branches = git(repo, 'branch').split('\n').length;
  await plane.start();
  await expect.poll(() => git(repo, 'worktree', 'list')).toBe(before);
  await expect.poll(() => git(repo, 'branch').split('\n').length).toBe(branches - 1);
});
