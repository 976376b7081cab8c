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
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sleep } from '../../base/async.ts';
import type { Folders, Worktree, WorktreeRequest } from '../../domain/node.ts';
import {
  commit,
  git,
  makeRepository,
  makeTrap,
  poison,
  type TemporaryFolder,
  temporaryFolder,
} from '../../testing/repository.ts';
import { directExec } from '../exec.ts';
import { Launcher } from '../launcher-client.ts';
import { openFolders } from './folders.ts';

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
const remove = (worktree: Worktree, force = false) => folders.removeWorktree(worktree, { force });
const branches = () => git(repo, 'branch', '--format=%(refname:short)').split('\n');
const worktreeCount = () => git(repo, 'worktree', 'list').split('\n').length;

/** A program for a hook, a filter or a helper to run: it leaves a file behind. */
function trap(): string {
  return makeTrap(folder.path, canary);
}

// --- making

test('a worktree is made on a branch of its own, under the node’s root', async () => {
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

test('a worktree starts from the ref that was asked for', async () => {
  const first = git(repo, 'rev-parse', 'HEAD');
  commit(repo, { 'b.txt': 'two\n' }, 'second');
  git(repo, 'tag', 'later');
  expect((await create({ ref: 'HEAD~1' })).base).toBe(first);
  expect((await create({ ref: 'later', agent_id: 'agt_two' })).base).toBe(git(repo, 'rev-parse', 'HEAD'));
});

test('a given workdir is where the worktree is made, parents included', async () => {
  const made = await create({ workdir: join(safe, 'deep/er/tree') });
  expect(made.workdir).toBe(join(safe, 'deep/er/tree'));
  expect(existsSync(join(made.workdir, 'a.txt'))).toBe(true);
});

test('without a repository the workdir is an empty folder', async () => {
  const made = await create({ repo: null });
  expect(made).toMatchObject({ repo: null, branch: null, base: null });
  expect(readdirSync(made.workdir)).toEqual([]);
  expect(await create({ repo: null })).toEqual(made);
  mkdirSync(join(safe, 'full/x'), { recursive: true });
  await expect(create({ repo: null, workdir: join(safe, 'full') })).rejects.toThrow('workdir is not empty');
});

test('without a root the workdir is required and must exist', async () => {
  worktree_root = null;
  await expect(create()).rejects.toThrow('workdir is required');
  await expect(create({ workdir: join(safe, 'none') })).rejects.toThrow('workdir does not exist');
  mkdirSync(join(safe, 'there'));
  expect((await create({ workdir: join(safe, 'there') })).workdir).toBe(join(safe, 'there'));
});

test('the root that the registry names comes first, and lies in the safe paths too', async () => {
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

test('a workdir outside the safe paths is refused and nothing is made', async () => {
  const message = 'workdir path must be within allowed safe paths';
  symlinkSync(folder.path, join(safe, 'out'));
  for (const workdir of [`${safe}-evil/x`, `${safe}/../x`, `${safe}/out/x`, '/etc/x']) {
    await expect(create({ workdir }), workdir).rejects.toThrow(message);
    await expect(create({ workdir, repo: null }), workdir).rejects.toThrow(message);
  }
  expect(readdirSync(folder.path).sort()).toEqual(['safe']);
  expect(branches()).toEqual(['main']);
});

test('a repository outside the safe paths and the repository roots is refused', async () => {
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

test('a repository that holds the safe paths is not found from below', async () => {
  makeRepository(folder.path, { 'outer.txt': 'x' });
  mkdirSync(join(safe, 'plain'));
  await expect(create({ repo: join(safe, 'plain') })).rejects.toThrow('fatal: not a git repository');
});

test('what is wrong with worktree_repo is said, in git’s own words where git says it', async () => {
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

test('a ref that is an option, or no commit, is refused and nothing runs', async () => {
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

test('a refusal by git leaves neither branch nor folder', async () => {
  // An index entry that no file system can take.
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

test('bare repositories, detached heads, worktrees and links to repositories are fine', async () => {
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

test('twenty agents at once each get their worktree of one repository', async () => {
  const made = await Promise.all(
    Array.from({ length: 20 }, (_, index) => create({ agent_id: `agt_${index}` })),
  );
  expect(new Set(made.map((each) => each.workdir)).size).toBe(20);
  expect(worktreeCount()).toBe(21);
});

// --- nothing of a repository runs

test('hooks, fsmonitor, filters and transports of a repository never run', async () => {
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

test('a missing object is not fetched from a promisor remote', async () => {
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

test('filters of the machine’s own configuration still run', async () => {
  commit(repo, { '.gitattributes': '*.txt filter=upper\n' }, 'attributes');
  writeFileSync(
    join(folder.path, '.gitconfig'),
    '[filter "upper"]\n\tsmudge = tr a-z A-Z\n\tclean = tr A-Z a-z\n',
  );
  const made = await create();
  expect(readFileSync(join(made.workdir, 'a.txt'), 'utf8')).toBe('ONE\n');
  expect((await folders.changes(made)).files).toEqual([]);
});

test('submodules are not fetched, and one that climbs out writes nothing', async () => {
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

test('the same request finds the same worktree again', async () => {
  const made = await create();
  writeFileSync(join(made.workdir, 'note'), 'kept');
  expect(await create()).toEqual(made);
  expect(readFileSync(join(made.workdir, 'note'), 'utf8')).toBe('kept');
});

test('a worktree that git was killed in the middle of is finished', { timeout: 180_000 }, async () => {
  const files = Object.fromEntries(
    Array.from({ length: 500 }, (_, index) => [`many/${index}`, 'x'.repeat(100)]),
  );
  commit(repo, files, 'many');
  const made = await create();
  await remove(made);
  for (const delay of [0, 8, 16, 32, 64]) {
    mkdirSync(made.workdir, { recursive: true });
    const child = spawn(
      'git',
      ['-C', repo, 'worktree', 'add', '-b', made.branch!, made.workdir, made.base!],
      {
        detached: true,
        stdio: 'ignore',
      },
    );
    const timer = setTimeout(() => {
      try {
        process.kill(-child.pid!, 'SIGKILL');
      } catch {
        // It was faster.
      }
    }, delay);
    await once(child, 'exit');
    clearTimeout(timer);
    expect(await create()).toEqual(made);
    expect(git(made.workdir, 'status', '--porcelain')).toBe('');
    expect(readdirSync(join(made.workdir, 'many')).length).toBe(500);
    expect(await remove(made)).toEqual({ removed: true, kept_because: null });
    expect(branches()).toEqual(['main']);
  }
});

test('a launcher that is killed while git works still gives one whole worktree', {
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
  for (const [index, delay] of [0, 60, 120, 180, 240].entries()) {
    const making = launched.createWorktree(request({ agent_id: `agt_${index}` }));
    await sleep(delay);
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

/** What git leaves of a worktree when it is killed after it wrote these files. */
function killedGit(name: string, files: Record<string, string>, age_ms = 0): string {
  const record = join(repo, '.git/worktrees', name);
  mkdirSync(record, { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(join(record, file), text);
  const time = (Date.now() - age_ms) / 1000;
  utimesSync(record, time, time);
  return record;
}

test('records that a killed git left are cleared away: our own at once, other agents’ when they are old', async () => {
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
  // Git has used the first name again, for the one that it made now.
  expect(dead.map((path) => existsSync(path))).toEqual([true, false, false, false]);
});

test('a worktree that a person locked is not taken for half-made', async () => {
  const other = join(safe, 'other');
  git(repo, 'worktree', 'add', '--quiet', '-b', 'other', other);
  git(repo, 'worktree', 'lock', other);
  writeFileSync(join(other, 'work'), 'precious');
  await expect(create({ workdir: other })).rejects.toThrow('workdir is not empty');
  expect((await remove({ workdir: other, repo, branch: null, base: null })).removed).toBe(false);
  expect(readFileSync(join(other, 'work'), 'utf8')).toBe('precious');
});

test('a branch without its worktree is checked out again', async () => {
  const made = await create();
  rmSync(made.workdir, { recursive: true });
  expect(await create()).toEqual(made);
  expect(existsSync(join(made.workdir, 'a.txt'))).toBe(true);
});

test('a folder with something else in it is never taken for ours', async () => {
  mkdirSync(join(safe, 'mine'));
  writeFileSync(join(safe, 'mine/work'), 'precious');
  await expect(create({ workdir: join(safe, 'mine') })).rejects.toThrow('workdir is not empty');
  expect(readFileSync(join(safe, 'mine/work'), 'utf8')).toBe('precious');
  expect(branches()).toEqual(['main']);
});

// --- removing

test('a clean worktree goes with its branch; ignored files do not keep it', async () => {
  const made = await create();
  writeFileSync(join(made.workdir, 'ignored'), 'x');
  expect(await remove(made)).toEqual({ removed: true, kept_because: null });
  expect(existsSync(made.workdir)).toBe(false);
  expect(branches()).toEqual(['main']);
  expect(worktreeCount()).toBe(1);
  expect(await remove(made)).toEqual({ removed: true, kept_because: null });
});

test('unsaved work keeps a worktree, and the answer says which', async () => {
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

test('commits that are merged, or on a remote, keep nothing', async () => {
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

test('force takes the folder, and leaves commits on their branch', async () => {
  const made = await create();
  commit(made.workdir, { new: 'x' }, 'work');
  writeFileSync(join(made.workdir, 'dirty'), 'x');
  expect(await remove(made, true)).toEqual({ removed: true, kept_because: null });
  expect(existsSync(made.workdir)).toBe(false);
  expect(branches()).toEqual(['main', made.branch]);
});

test('a worktree that a person locked is kept without force', async () => {
  const made = await create();
  git(repo, 'worktree', 'lock', made.workdir);
  expect((await remove(made)).kept_because).toContain('locked working tree');
  expect((await remove(made, true)).removed).toBe(true);
});

test('a folder without a repository goes only when empty, or by force', async () => {
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

test('nothing outside the safe paths, no root and no link is ever removed', async () => {
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

test('only a branch of ours is ever deleted', async () => {
  const made = await create();
  git(made.workdir, 'checkout', '--quiet', '-b', 'feature');
  commit(made.workdir, { new: 'x' }, 'work');
  expect((await remove({ ...made, branch: 'feature' })).removed).toBe(true);
  expect(branches()).toContain('feature');
});

test('a worktree whose repository is gone is kept, or taken by force', async () => {
  const made = await create();
  rmSync(repo, { recursive: true });
  expect((await remove(made)).removed).toBe(false);
  expect((await remove(made, true)).removed).toBe(true);
});

test('safe paths that change while the service runs hold at once', async () => {
  safe_paths = [join(folder.path, 'elsewhere')];
  await expect(create()).rejects.toThrow('worktree_repo must be within allowed safe paths');
});
