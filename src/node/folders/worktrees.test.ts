import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { sleep } from '../../base/async.ts';
import type { Folders, Worktree, WorktreeRequest } from '../../core/node.ts';
import { firstOf } from '../../testing/long.ts';
import {
  commit,
  git,
  makeRepository,
  makeTrap,
  poison,
  type TemporaryFolder,
  temporaryFolder,
} from '../../testing/repository.ts';
import { directExec } from '../processes/exec.ts';
import { Launcher } from '../processes/launcher-client.ts';
import { openFolders } from './folders.ts';
import { WorktreeClaims } from './worktree-claims.ts';

let folder: TemporaryFolder;
let safe: string;
let repo: string;
let worktree_root: string | null;
let safe_paths: string[];
let folders: Folders;
let canary: string;

beforeEach(() => {
  folder = temporaryFolder();
  safe = join(folder.path, 'safe');
  canary = join(folder.path, 'canary');
  worktree_root = join(folder.path, 'data/worktrees');
  safe_paths = [safe];
  repo = makeRepository(join(safe, 'repo'), { 'a.txt': 'one\n', '.gitignore': 'ignored\n' });
  folders = openFolders({
    data_dir: join(folder.path, 'data'),
    safe_paths: () => safe_paths,
    worktree_root: () => worktree_root,
    repo_roots: () => [join(folder.path, 'repos')],
    exec: directExec,
    env: { ...process.env, HOME: folder.path, XDG_CONFIG_HOME: '', GIT_DIR: '/nonexistent', SVC_SECRET: 'x' },
    run_as: null,
  });
});
afterEach(() => folder.remove());

const request = (changes: Partial<WorktreeRequest> = {}): WorktreeRequest => ({
  agent_id: 'agt_one',
  name: 'Fix it',
  workdir: null,
  repo,
  ref: null,
  ...changes,
});
const create = (changes: Partial<WorktreeRequest> = {}) => folders.createWorktree(request(changes));
async function remove(worktree: Worktree, force = false) {
  const why = await folders.whyKept(worktree);
  const removal = await folders.removeWorktree(worktree, { force });
  if (!force) expect(why !== null, `${why}, ${removal.kept_because}`).toBe(!removal.removed);
  return removal;
}
const branches = () => git(repo, 'branch', '--format=%(refname:short)').split('\n');
const worktreeCount = () => git(repo, 'worktree', 'list').split('\n').length;

/** A program for hooks, filters and helpers that creates a file when it runs. */
function trap(): string {
  return makeTrap(folder.path, canary);
}

// --- creating

test('creates a worktree on its own branch, below the node’s root', async () => {
  const made = await create();
  expect(made).toEqual({
    workdir: join(folder.path, 'data/worktrees/Fix-it-agt_one'),
    repo,
    branch: 'svc/Fix-it-agt_one',
    base: git(repo, 'rev-parse', 'HEAD'),
  });
  expect(readFileSync(join(made.workdir, 'a.txt'), 'utf8')).toBe('one\n');
  expect(git(made.workdir, 'symbolic-ref', '--short', 'HEAD')).toBe(made.branch);
});

test('starts a worktree from the requested ref', async () => {
  const first = git(repo, 'rev-parse', 'HEAD');
  commit(repo, { 'b.txt': 'two\n' }, 'second');
  git(repo, 'tag', 'later');
  expect((await create({ ref: 'HEAD~1' })).base).toBe(first);
  expect((await create({ ref: 'later', agent_id: 'agt_two' })).base).toBe(git(repo, 'rev-parse', 'HEAD'));
});

test('creates a worktree at a given workdir, with its parents', async () => {
  const made = await create({ workdir: join(safe, 'deep/er/tree') });
  expect(made.workdir).toBe(join(safe, 'deep/er/tree'));
  expect(existsSync(join(made.workdir, 'a.txt'))).toBe(true);
});

test('creates an empty folder if no repository is requested', async () => {
  const made = await create({ repo: null });
  expect(made).toMatchObject({ repo: null, branch: null, base: null });
  expect(readdirSync(made.workdir)).toEqual([]);
  expect(await create({ repo: null })).toEqual(made);
  mkdirSync(join(safe, 'full/x'), { recursive: true });
  await expect(create({ repo: null, workdir: join(safe, 'full') })).rejects.toThrow('workdir is not empty');
});

test('requires an existing workdir if the node has no worktree root', async () => {
  worktree_root = null;
  await expect(create()).rejects.toThrow('workdir is required');
  await expect(create({ workdir: join(safe, 'none') })).rejects.toThrow('workdir does not exist');
  mkdirSync(join(safe, 'there'));
  expect((await create({ workdir: join(safe, 'there') })).workdir).toBe(join(safe, 'there'));
});

test('prefers the root of the registry, which must be in the safe paths too', async () => {
  const made = await create({ root: join(safe, 'named') });
  expect(made.workdir).toBe(join(safe, 'named/Fix-it-agt_one'));
  worktree_root = null;
  const empty = await create({ root: join(safe, 'named'), repo: null, agent_id: 'agt_two' });
  expect(empty.workdir).toBe(join(safe, 'named/Fix-it-agt_two'));
  const given = { workdir: join(safe, 'given'), agent_id: 'agt_three' };
  expect((await create({ root: join(safe, 'named'), ...given })).workdir).toBe(join(safe, 'given'));
  for (const root of ['/etc', join(folder.path, 'elsewhere'), `${safe}/../elsewhere`]) {
    const message = 'workdir path must be within allowed safe paths';
    await expect(create({ root, agent_id: 'agt_four' }), root).rejects.toThrow(message);
  }
  expect(existsSync(join(folder.path, 'elsewhere'))).toBe(false);
});

test('rejects a workdir outside the safe paths and creates nothing', async () => {
  const message = 'workdir path must be within allowed safe paths';
  symlinkSync(folder.path, join(safe, 'out'));
  for (const workdir of [`${safe}-evil/x`, `${safe}/../x`, `${safe}/out/x`, '/etc/x']) {
    await expect(create({ workdir }), workdir).rejects.toThrow(message);
    await expect(create({ workdir, repo: null }), workdir).rejects.toThrow(message);
  }
  expect(readdirSync(folder.path).sort()).toEqual(['safe']);
  expect(branches()).toEqual(['main']);
});

test('rejects a repository outside the safe paths and the repository roots', async () => {
  const message = 'worktree_repo must be within allowed safe paths';
  const outside = makeRepository(join(folder.path, 'outside'), { a: 'a' });
  await expect(create({ repo: outside })).rejects.toThrow(message);
  symlinkSync(outside, join(safe, 'link'));
  await expect(create({ repo: join(safe, 'link') })).rejects.toThrow(message);
  mkdirSync(join(safe, 'pointer'));
  writeFileSync(join(safe, 'pointer/.git'), `gitdir: ${outside}/.git\n`);
  await expect(create({ repo: join(safe, 'pointer') })).rejects.toThrow(message);
  makeRepository(join(folder.path, 'repos/fine'), { a: 'a' });
  expect((await create({ repo: join(folder.path, 'repos/fine') })).branch).toBe('svc/Fix-it-agt_one');
});

test('does not find a repository that contains the safe paths', async () => {
  makeRepository(folder.path, { 'outer.txt': 'x' });
  mkdirSync(join(safe, 'plain'));
  await expect(create({ repo: join(safe, 'plain') })).rejects.toThrow('fatal: not a git repository');
});

test('explains what is wrong with worktree_repo, with git’s message if there is one', async () => {
  mkdirSync(join(safe, 'plain'));
  writeFileSync(join(safe, 'file'), '');
  const cases: [string, string][] = [
    ['repo', 'worktree_repo must be absolute'],
    [`${safe}/\0`, 'worktree_repo must not contain control characters'],
    [join(safe, 'none'), 'worktree_repo does not exist'],
    [join(safe, 'file'), 'worktree_repo is not a directory'],
    [join(safe, 'plain'), 'fatal: not a git repository (or any of the parent directories): .git'],
    [
      makeRepository(join(safe, 'bare-of-commits')),
      'worktree_repo has no commits: fatal: Needed a single revision',
    ],
  ];
  for (const [path, message] of cases) await expect(create({ repo: path }), path).rejects.toThrow(message);
});

test('rejects a ref that is an option or not a commit, and runs nothing', async () => {
  const program = trap();
  for (const ref of [`--upload-pack=${program}`, '-c', '--help', '', 'a\0b', 'x'.repeat(5_000)]) {
    await expect(create({ ref }), ref).rejects.toThrow('worktree_ref is not a valid ref');
  }
  for (const ref of ['none', 'HEAD:a.txt', `ext::${program}`, '$(id)']) {
    await expect(create({ ref }), ref).rejects.toThrow('worktree_ref is not a commit: fatal:');
  }
  expect(existsSync(canary)).toBe(false);
  expect(worktreeCount()).toBe(1);
});

test('leaves neither branch nor folder if git refuses', async () => {
  // The index contains a name that no file system accepts.
  const blob = git(repo, 'hash-object', '-w', 'a.txt');
  git(repo, 'update-index', '--add', '--cacheinfo', `100644,${blob},${'n'.repeat(300)}`);
  git(repo, 'commit', '--quiet', '--message', 'impossible');
  await expect(create()).rejects.toMatchObject({
    kind: 'invalid',
    message: expect.stringMatching(/^(error|fatal): /),
  });
  expect(branches()).toEqual(['main']);
  expect(worktreeCount()).toBe(1);
  expect(existsSync(join(folder.path, 'data/worktrees/Fix-it-agt_one'))).toBe(false);
});

test('accepts bare repositories, detached heads, worktrees and links to repositories', async () => {
  git(repo, 'clone', '--quiet', '--bare', repo, join(safe, 'bare.git'));
  expect((await create({ repo: join(safe, 'bare.git'), agent_id: 'agt_bare' })).repo).toBe(
    join(safe, 'bare.git'),
  );
  git(repo, 'checkout', '--quiet', '--detach');
  const made = await create();
  const nested = await create({ repo: made.workdir, agent_id: 'agt_two' });
  expect(nested.base).toBe(made.base);
  symlinkSync('repo', join(safe, 'link'));
  expect((await create({ repo: join(safe, 'link'), agent_id: 'agt_three' })).repo).toBe(repo);
  mkdirSync(join(repo, 'sub'));
  expect((await create({ repo: join(repo, 'sub'), agent_id: 'agt_four' })).branch).toBe(
    'svc/Fix-it-agt_four',
  );
});

test('gives eight agents at once their own worktrees of one repository', async () => {
  const made = await Promise.all(
    Array.from({ length: 8 }, (_, index) => create({ agent_id: `agt_${index}` })),
  );
  expect(new Set(made.map((each) => each.workdir)).size).toBe(8);
  expect(worktreeCount()).toBe(9);
});

// --- a repository cannot make the service run anything

test('never runs hooks, fsmonitor, filters and transports of a repository', async () => {
  const program = trap();
  poison(repo, program);
  expect(existsSync(canary)).toBe(true);
  rmSync(canary);
  const made = await create();
  writeFileSync(join(made.workdir, 'b.txt'), 'three\n');
  writeFileSync(join(made.workdir, 'new.txt'), 'four\n');
  const changes = await folders.changes(made);
  expect(changes.files.map((each) => each.path)).toEqual(['b.txt', 'new.txt']);
  for (const file of changes.files) {
    expect((await folders.change(made, file.path)).diff).toContain('+');
  }
  expect((await remove(made)).kept_because).toBe('uncommitted changes, untracked files');
  expect((await remove(made, true)).removed).toBe(true);
  expect(existsSync(canary)).toBe(false);
});

test('does not fetch a missing object from a promisor remote', async () => {
  const program = trap();
  const blob = git(repo, 'rev-parse', 'HEAD:a.txt');
  git(repo, 'config', 'remote.origin.url', `ext::${program} %S`);
  git(repo, 'config', 'remote.origin.promisor', 'true');
  git(repo, 'config', 'protocol.ext.allow', 'always');
  git(repo, 'config', 'core.repositoryFormatVersion', '1');
  git(repo, 'config', 'extensions.partialClone', 'origin');
  rmSync(join(repo, '.git/objects', blob.slice(0, 2), blob.slice(2)));
  await expect(create()).rejects.toMatchObject({ kind: 'invalid' });
  expect(existsSync(canary)).toBe(false);
});

test('runs filters of the machine’s own configuration', async () => {
  commit(repo, { '.gitattributes': '*.txt filter=upper\n' }, 'attributes');
  writeFileSync(
    join(folder.path, '.gitconfig'),
    '[filter "upper"]\n\tsmudge = tr a-z A-Z\n\tclean = tr A-Z a-z\n',
  );
  const made = await create();
  expect(readFileSync(join(made.workdir, 'a.txt'), 'utf8')).toBe('ONE\n');
  expect((await folders.changes(made)).files).toEqual([]);
});

test('does not fetch submodules, and writes nothing outside for a malicious one', async () => {
  const other = makeRepository(join(safe, 'other'), { x: 'x' });
  git(repo, '-c', 'protocol.file.allow=always', 'submodule', 'add', '--quiet', other, 'sub');
  const modules = `[submodule "../../climb"]\n\tpath = sub\n\turl = ${other}\n`;
  commit(repo, { '.gitmodules': modules }, 'submodule');
  git(repo, 'config', 'submodule.recurse', 'true');
  const made = await create();
  expect(readdirSync(join(made.workdir, 'sub'))).toEqual([]);
  expect(await remove(made)).toEqual({ removed: true, kept_because: null });
});

// --- idempotent by agent

test('finds the same worktree again for the same request', async () => {
  const made = await create();
  writeFileSync(join(made.workdir, 'note'), 'kept');
  expect(await create()).toEqual(made);
  expect(readFileSync(join(made.workdir, 'note'), 'utf8')).toBe('kept');
});

test('completes a worktree if git was killed while creating it', { timeout: 180_000 }, async () => {
  const files = Object.fromEntries(
    Array.from({ length: 500 }, (_, index) => [`many/${index}`, 'x'.repeat(100)]),
  );
  commit(repo, files, 'many');
  const made = await create();
  await remove(made);
  const claims = new WorktreeClaims(join(folder.path, 'data'));
  const record = join(repo, '.git/worktrees', basename(made.workdir));
  const moments = [
    () => existsSync(record),
    () => existsSync(join(made.workdir, '.git')),
    () => existsSync(join(made.workdir, 'many')),
    ...[0, 8, 16, 32, 64],
  ];
  for (const moment of firstOf(3, moments)) {
    mkdirSync(made.workdir, { recursive: true });
    await claims.add('agt_one', made.workdir, made.base);
    const child = spawn(
      'git',
      ['-C', repo, 'worktree', 'add', '-b', made.branch!, made.workdir, made.base!],
      {
        detached: true,
        stdio: 'ignore',
      },
    );
    const ended = once(child, 'exit');
    await reached(moment, ended);
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      // Git has already finished.
    }
    await ended;
    expect(await create()).toEqual(made);
    expect(git(made.workdir, 'status', '--porcelain')).toBe('');
    expect(readdirSync(join(made.workdir, 'many')).length).toBe(500);
    expect(await remove(made)).toEqual({ removed: true, kept_because: null });
    expect(branches()).toEqual(['main']);
  }
});

test('creates one complete worktree even if the launcher is killed in the meantime', {
  timeout: 180_000,
}, async () => {
  const files = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`many/${index}`, 'x']));
  commit(repo, files, 'many');
  const launcher = new Launcher();
  const launched = openFolders({
    data_dir: join(folder.path, 'data'),
    safe_paths: () => safe_paths,
    worktree_root: () => worktree_root,
    repo_roots: () => [],
    exec: launcher,
    env: process.env,
    run_as: null,
  });
  const root = join(folder.path, 'data/worktrees');
  const moments = [
    () => existsSync(join(repo, '.git/worktrees')),
    () => existsSync(join(root, 'Fix-it-agt_1/many')),
    ...[0, 60, 120, 180, 240],
  ];
  for (const [index, moment] of firstOf(3, moments).entries()) {
    const making = launched.createWorktree(request({ agent_id: `agt_${index}` }));
    await reached(moment, making);
    if (launcher.pid) process.kill(launcher.pid, 'SIGKILL');
    const made = await making;
    expect(git(made.workdir, 'status', '--porcelain')).toBe('');
    expect(await launched.removeWorktree(made, { force: false })).toEqual({
      removed: true,
      kept_because: null,
    });
  }
  await launcher.close();
  expect(branches()).toEqual(['main']);
  expect(worktreeCount()).toBe(1);
});

/** Waits until the file system shows a moment, or for a number of milliseconds, but no longer than until `ended`. */
async function reached(moment: number | (() => boolean), ended: Promise<unknown>): Promise<void> {
  if (typeof moment === 'number') return sleep(moment);
  let is_over = false;
  const end = () => {
    is_over = true;
  };
  ended.then(end, end);
  while (!is_over && !moment()) await sleep(1);
}

/** Creates what git leaves behind if it is killed after it wrote these files of a worktree's record. */
function killedGit(name: string, files: Record<string, string>, age_ms = 0): string {
  const record = join(repo, '.git/worktrees', name);
  mkdirSync(record, { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(join(record, file), text);
  const time = (Date.now() - age_ms) / 1000;
  utimesSync(record, time, time);
  return record;
}

test('removes records of a killed git: the agent’s own at once, those of other agents when they are old', async () => {
  const locked = 'initializing\n';
  const elsewhere = `${folder.path}/gone/.git\n`;
  const own = join(folder.path, 'data/worktrees/Fix-it-agt_one');
  const dead = [
    killedGit('Fix-it-agt_one', { locked }),
    killedGit('Fix-it-agt_one1', { locked, gitdir: `${own}/.git\n`, HEAD: '', commondir: '' }),
    killedGit(
      'x-agt_old',
      { locked, gitdir: elsewhere, HEAD: `${'0'.repeat(40)}\n`, commondir: '' },
      3_600_000,
    ),
    killedGit('x-agt_older', { locked: '' }, 3_600_000),
  ];
  const alive = [killedGit('x-agt_new', { locked }), killedGit('person', { locked }, 3_600_000)];
  mkdirSync(join(repo, '.git/refs/heads/svc'), { recursive: true });
  writeFileSync(join(repo, '.git/refs/heads/svc/Fix-it-agt_one.lock'), '');
  expect(() => git(repo, 'worktree', 'list')).toThrow();
  const made = await create();
  expect(made.workdir).toBe(own);
  expect(git(made.workdir, 'status', '--porcelain')).toBe('');
  expect(alive.map((path) => existsSync(path))).toEqual([true, true]);
  // Git has reused the first name for the new worktree.
  expect(dead.map((path) => existsSync(path))).toEqual([true, false, false, false]);
});

test('completes a worktree if git was killed before it wrote the link to its record', async () => {
  const made = await create();
  await remove(made);
  mkdirSync(made.workdir);
  writeFileSync(join(made.workdir, '.git'), '');
  killedGit('Fix-it-agt_one', { locked: 'initializing\n', gitdir: `${made.workdir}/.git\n` });
  expect(await create()).toEqual(made);
  expect(git(made.workdir, 'status', '--porcelain')).toBe('');
});

test('a newline in a recorded path does not make another folder a worktree', async () => {
  const plain = join(safe, 'plain');
  mkdirSync(plain);
  writeFileSync(join(plain, 'file'), '');
  const forged = `${safe}/none\nHEAD ${'0'.repeat(40)}\n\nworktree ${plain}\n/.git\n`;
  killedGit('forged', { gitdir: forged, HEAD: 'ref: refs/heads/main\n', commondir: '../..\n' });
  const removal = await remove({ workdir: plain, repo, branch: null, base: null });
  expect(removal).toEqual({ removed: false, kept_because: 'the folder is not empty' });
});

test('another agent’s record of a worktree’s folder does not prevent its creation or removal', async () => {
  const records = join(repo, '.git/worktrees');
  const own = join(folder.path, 'data/worktrees/Fix-it-agt_one');
  const claim = async (agent_id: string) => {
    await create({ agent_id });
    writeFileSync(join(records, `Fix-it-${agent_id}/gitdir`), `${own}/.git\n`);
  };
  await claim('agt_a');
  const made = await create();
  expect(made.workdir).toBe(own);
  for (const agent_id of ['agt_b', 'agt_c', 'agt_d', 'agt_e', 'agt_f', 'agt_g']) await claim(agent_id);
  expect(await remove(made)).toEqual({ removed: true, kept_because: null });
  expect(existsSync(own)).toBe(false);
});

test('does not mistake a worktree that a person locked for an incomplete one', async () => {
  const other = join(safe, 'other');
  git(repo, 'worktree', 'add', '--quiet', '-b', 'other', other);
  git(repo, 'worktree', 'lock', other);
  writeFileSync(join(other, 'work'), 'precious');
  await expect(create({ workdir: other })).rejects.toThrow('workdir is not empty');
  expect((await remove({ workdir: other, repo, branch: null, base: null })).removed).toBe(false);
  expect(readFileSync(join(other, 'work'), 'utf8')).toBe('precious');
});

test('checks out the existing branch again if its worktree is gone', async () => {
  const made = await create();
  rmSync(made.workdir, { recursive: true });
  expect(await create()).toEqual(made);
  expect(existsSync(join(made.workdir, 'a.txt'))).toBe(true);
});

test('never takes over a folder that is not empty', async () => {
  mkdirSync(join(safe, 'mine'));
  writeFileSync(join(safe, 'mine/work'), 'precious');
  await expect(create({ workdir: join(safe, 'mine') })).rejects.toThrow('workdir is not empty');
  expect(readFileSync(join(safe, 'mine/work'), 'utf8')).toBe('precious');
  expect(branches()).toEqual(['main']);
});

test('a repository’s records and branches do not prove which agent owns a folder', async () => {
  const theirs = await create({ agent_id: 'agt_bob' });
  const empty = await create({ agent_id: 'agt_eve', repo: null });
  for (const { workdir } of [theirs, empty]) writeFileSync(join(workdir, 'notes'), 'precious');
  const branch = 'svc/Fix-it-agt_one';
  git(repo, 'branch', branch);
  for (const { workdir } of [theirs, empty]) {
    const gitdir = `${workdir}/.git\n`;
    const common = { gitdir, commondir: '../..\n', HEAD: `ref: refs/heads/${branch}\n` };
    killedGit('Fix-it-agt_one', common);
    await expect(create({ workdir })).rejects.toThrow('workdir is not empty');
    killedGit('Fix-it-agt_one', { ...common, locked: 'initializing' });
    await expect(create({ workdir })).rejects.toThrow('workdir is not empty');
    await expect(create({ workdir, repo: null })).rejects.toThrow('workdir is not empty');
    expect(readFileSync(join(workdir, 'notes'), 'utf8')).toBe('precious');
  }
});

test('finds a worktree at a given path again, unless another folder is there', async () => {
  for (const [name, from] of [
    ['linked', repo],
    ['plain', null],
  ] as const) {
    const agent_id = `agt_${name}`;
    const workdir = join(safe, name);
    const again = () => create({ workdir, agent_id, repo: from });
    const made = await again();
    writeFileSync(join(workdir, 'note'), 'kept');
    expect(await again()).toEqual(made);
    expect(readFileSync(join(workdir, 'note'), 'utf8')).toBe('kept');
    renameSync(workdir, `${workdir}-moved`);
    mkdirSync(workdir);
    writeFileSync(join(workdir, 'note'), 'of another');
    await expect(again()).rejects.toThrow('workdir is not empty');
    expect(readFileSync(join(workdir, 'note'), 'utf8')).toBe('of another');
  }
});

test('a full disk is reported as such', async () => {
  const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
  const add = vi.spyOn(WorktreeClaims.prototype, 'add').mockRejectedValueOnce(full);
  await expect(create({ repo: null }).finally(() => add.mockRestore())).rejects.toThrow(
    'not enough disk space',
  );
  expect(await create({ repo: null })).toMatchObject({ repo: null });
});

test('finds a worktree of a release without claims by its derived name', async () => {
  const made = await create();
  rmSync(join(folder.path, 'data/worktree-claims'), { recursive: true });
  writeFileSync(join(made.workdir, 'note'), 'kept');
  expect(await create()).toEqual({ ...made, base: null });
  expect(readFileSync(join(made.workdir, 'note'), 'utf8')).toBe('kept');
});

test('finds a worktree of a release without claims at a given path if the plane has recorded it', async () => {
  const workdir = join(safe, 'feature');
  const made = await create({ workdir });
  rmSync(join(folder.path, 'data/worktree-claims'), { recursive: true });
  writeFileSync(join(workdir, 'note'), 'kept');
  await expect(create({ workdir })).rejects.toThrow('workdir is not empty');
  expect(await create({ workdir, recorded: true })).toEqual({ ...made, base: null });
  expect(readFileSync(join(workdir, 'note'), 'utf8')).toBe('kept');
});

test('a record that claims to be incomplete empties no worktree', async () => {
  const workdir = join(safe, 'feature');
  const made = await create({ workdir });
  writeFileSync(join(workdir, 'note'), 'kept');
  const forged = { gitdir: `${workdir}/.git\n`, commondir: '../..\n', locked: 'initializing' };
  const forge = () => killedGit('feature1', { ...forged, HEAD: 'ref: refs/heads/main\n' });
  forge();
  expect(await create({ workdir })).toEqual(made);
  forge();
  expect(await remove(made)).toEqual({ removed: false, kept_because: 'untracked files' });
  expect(readFileSync(join(workdir, 'note'), 'utf8')).toBe('kept');
});

test('checks a path before it creates a worktree there', async () => {
  symlinkSync(join(folder.path, 'data/worktrees'), join(safe, 'link'));
  const { workdir } = await create();
  const at = (path: string) => folders.resolve(path, { to_create: true });
  expect(await at(join(safe, 'none/../new/'))).toEqual({
    ...{ path: join(safe, 'new'), below_worktree_root: false, claimed_by: null },
  });
  for (const path of [workdir, `${workdir}/`, join(safe, 'link/Fix-it-agt_one')]) {
    expect(await at(path)).toEqual({ path: workdir, below_worktree_root: true, claimed_by: null });
  }
  await expect(at('/etc/new')).rejects.toThrow('within allowed safe paths');
  await expect(create({ workdir: join(safe, 'link/new'), agent_id: 'agt_two' })).rejects.toThrow(
    'within allowed safe paths',
  );
});

// --- removing

test('removes a clean worktree with its branch, even with ignored files', async () => {
  const made = await create();
  writeFileSync(join(made.workdir, 'ignored'), 'x');
  expect(await remove(made)).toEqual({ removed: true, kept_because: null });
  expect(existsSync(made.workdir)).toBe(false);
  expect(branches()).toEqual(['main']);
  expect(worktreeCount()).toBe(1);
  expect(await remove(made)).toEqual({ removed: true, kept_because: null });
});

test('keeps a worktree with unsaved work and names the work', async () => {
  const cases: [string, (path: string) => void, string][] = [
    ['changed', (path) => writeFileSync(join(path, 'a.txt'), 'changed'), 'uncommitted changes'],
    ['staged', (path) => git(path, 'rm', '--quiet', 'a.txt'), 'uncommitted changes'],
    ['untracked', (path) => writeFileSync(join(path, 'new'), 'x'), 'untracked files'],
    ['nested', (path) => makeRepository(join(path, 'nested'), { x: 'x' }), 'untracked files'],
    ['committed', (path) => commit(path, { new: 'x' }, 'work'), '1 commit on no remote and no other branch'],
    [
      'detached',
      (path) => {
        git(path, 'checkout', '--quiet', '--detach');
        commit(path, { detached: 'x' }, 'work');
        commit(path, { detached: 'y' }, 'more');
      },
      '2 commits on no remote and no other branch',
    ],
  ];
  for (const [name, work, because] of cases) {
    const made = await create({ agent_id: `agt_${name}` });
    work(made.workdir);
    expect(await remove(made), name).toEqual({ removed: false, kept_because: because });
    expect(existsSync(made.workdir), name).toBe(true);
  }
});

test('removes a worktree whose commits are merged or on a remote', async () => {
  const merged = await create();
  commit(merged.workdir, { new: 'x' }, 'work');
  git(repo, 'merge', '--quiet', merged.branch!);
  expect((await remove(merged)).removed).toBe(true);

  git(repo, 'clone', '--quiet', '--bare', repo, join(safe, 'remote.git'));
  git(repo, 'remote', 'add', 'origin', join(safe, 'remote.git'));
  const pushed = await create({ agent_id: 'agt_two' });
  commit(pushed.workdir, { other: 'x' }, 'work');
  expect((await remove(pushed)).removed).toBe(false);
  git(pushed.workdir, 'push', '--quiet', 'origin', 'HEAD');
  expect((await remove(pushed)).removed).toBe(true);
  expect(branches()).toEqual(['main']);
});

test('force removes the folder and keeps commits on their branch', async () => {
  const made = await create();
  commit(made.workdir, { new: 'x' }, 'work');
  writeFileSync(join(made.workdir, 'dirty'), 'x');
  expect(await remove(made, true)).toEqual({
    removed: true,
    kept_because: '1 commit on no remote and no other branch',
  });
  expect(existsSync(made.workdir)).toBe(false);
  expect(branches()).toEqual(['main', made.branch]);
});

test('keeps a worktree that a person locked, unless forced', async () => {
  const made = await create();
  git(repo, 'worktree', 'lock', made.workdir);
  expect((await remove(made)).kept_because).toContain('locked working tree');
  expect((await remove(made, true)).removed).toBe(true);
});

test('removes a folder without a repository only if it is empty, or by force', async () => {
  const made = await create({ repo: null });
  writeFileSync(join(made.workdir, 'x'), '');
  expect(await remove(made)).toEqual({ removed: false, kept_because: 'the folder is not empty' });
  rmSync(join(made.workdir, 'x'));
  expect((await remove(made)).removed).toBe(true);
  const full = await create({ repo: null });
  writeFileSync(join(full.workdir, 'x'), '');
  expect((await remove(full, true)).removed).toBe(true);
  expect(existsSync(full.workdir)).toBe(false);
});

test('never removes a root, a link or anything outside the safe paths', async () => {
  mkdirSync(join(folder.path, 'outside/keep'), { recursive: true });
  const none = { repo: null, branch: null, base: null };
  for (const workdir of [
    join(folder.path, 'outside'),
    safe,
    worktree_root!,
    folder.path,
    '/',
    'relative',
    '',
  ]) {
    expect((await remove({ ...none, workdir }, true)).removed, workdir).toBe(false);
  }
  const made = await create();
  renameSync(made.workdir, `${made.workdir}-moved`);
  symlinkSync(join(folder.path, 'outside'), made.workdir);
  expect((await remove(made, true)).removed).toBe(false);
  expect((await remove({ workdir: repo, repo, branch: 'main', base: null }, true)).kept_because).toBe(
    'it is the main worktree of its repository',
  );
  expect(existsSync(join(folder.path, 'outside/keep'))).toBe(true);
  expect(existsSync(join(repo, 'a.txt'))).toBe(true);
});

test('deletes only branches that the service created', async () => {
  const made = await create();
  git(made.workdir, 'checkout', '--quiet', '-b', 'feature');
  commit(made.workdir, { new: 'x' }, 'work');
  expect((await remove({ ...made, branch: 'feature' })).removed).toBe(true);
  expect(branches()).toContain('feature');
});

test('keeps a worktree whose repository is gone, unless forced', async () => {
  const made = await create();
  rmSync(repo, { recursive: true });
  expect((await remove(made)).removed).toBe(false);
  expect((await remove(made, true)).removed).toBe(true);
});

test('applies changed safe paths at once', async () => {
  safe_paths = [join(folder.path, 'elsewhere')];
  await expect(create()).rejects.toThrow('worktree_repo must be within allowed safe paths');
});
