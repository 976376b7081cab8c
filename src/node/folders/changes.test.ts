import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { MIB, limits as sharedLimits } from '../../base/limits.ts';
import type { Folders } from '../../core/node.ts';
import {
  commit,
  git,
  makeRepository,
  type TemporaryFolder,
  temporaryFolder,
} from '../../testing/repository.ts';
import { limits } from '../limits.ts';
import { directExec } from '../processes/exec.ts';
import { openFolders } from './folders.ts';

let folder: TemporaryFolder;
let repo: string;
let folders: Folders;

beforeEach(() => {
  folder = temporaryFolder();
  const safe = join(folder.path, 'safe');
  repo = makeRepository(join(safe, 'repo'), {
    'keep.txt': 'one\ntwo\nthree\n',
    'gone.txt': 'gone\n',
    'old.txt': 'a\nb\nc\nd\ne\nf\n',
    'type.txt': 'x\n',
    'sub/inner.txt': 'inner\n',
    '.gitignore': 'ignored\n',
  });
  folders = openFolders({
    data_dir: join(folder.path, 'data'),
    safe_paths: () => [safe],
    worktree_root: () => null,
    repo_roots: () => [],
    exec: directExec,
    env: { ...process.env, HOME: folder.path, XDG_CONFIG_HOME: '' },
    run_as: null,
  });
});
afterEach(() => folder.remove());

const changes = (workdir = repo, base: string | null = null) => folders.changes({ workdir, base });
const change = (path: string, base: string | null = null) => folders.change({ workdir: repo, base }, path);
const write = (name: string, data: string | Buffer) => writeFileSync(join(repo, name), data);
const version = expect.any(String);
const numbers = (additions: number | null, deletions: number | null) => ({ additions, deletions });

test('lists every kind of change against HEAD, including untracked files', async () => {
  write('keep.txt', 'one\n2\nthree\n');
  rmSync(join(repo, 'gone.txt'));
  git(repo, 'mv', 'old.txt', 'new.txt');
  rmSync(join(repo, 'type.txt'));
  symlinkSync('keep.txt', join(repo, 'type.txt'));
  write('fresh.txt', 'x\ny');
  write('added.txt', 'x\n');
  git(repo, 'add', 'added.txt');
  write('ignored', 'x');
  const head = git(repo, 'rev-parse', 'HEAD');
  expect(await changes()).toEqual({
    git: true,
    branch: 'main',
    base: head,
    head,
    remote: null,
    truncated: false,
    files: [
      { path: 'added.txt', from: null, status: 'added', ...numbers(1, 0), version },
      { path: 'fresh.txt', from: null, status: 'untracked', ...numbers(2, 0), version },
      { path: 'gone.txt', from: null, status: 'deleted', ...numbers(0, 1), version: null },
      { path: 'keep.txt', from: null, status: 'modified', ...numbers(1, 1), version },
      { path: 'new.txt', from: 'old.txt', status: 'renamed', ...numbers(0, 0), version },
      { path: 'type.txt', from: null, status: 'type_changed', ...numbers(1, 1), version },
    ],
  });
});

test('an edit that keeps the numbers of lines, or of a binary file, changes the version', async () => {
  write('keep.txt', 'one\n2\nthree\n');
  write('blob.bin', Buffer.from([0, 1]));
  const before = await changes();
  expect(await changes()).toEqual(before);
  write('keep.txt', 'one\n3\nthree\n');
  write('blob.bin', Buffer.from([0, 2]));
  utimesSync(join(repo, 'keep.txt'), 0, 0);
  const { files } = await changes();
  for (const [at, { version, ...counts }] of files.entries()) {
    const { version: earlier, ...same } = before.files[at]!;
    expect(counts).toEqual(same);
    expect(version).not.toBe(earlier);
  }
});

test('counts commits since the base as changes', async () => {
  const base = git(repo, 'rev-parse', 'HEAD');
  commit(repo, { 'work.txt': 'x\n' }, 'work');
  const head = git(repo, 'rev-parse', 'HEAD');
  expect((await changes()).files).toEqual([]);
  const since = await changes(repo, base);
  expect(since).toMatchObject({ base, head });
  expect(since.files).toEqual([{ path: 'work.txt', from: null, status: 'added', ...numbers(1, 0), version }]);
});

test('rejects a base that is not a commit', async () => {
  for (const base of ['0'.repeat(40), '--output=x', 'none'])
    await expect(changes(repo, base)).rejects.toMatchObject({ code: 'base_missing' });
});

test('lists no changes for a folder without git', async () => {
  const plain = join(folder.path, 'safe/plain');
  mkdirSync(plain);
  const none = {
    git: false,
    branch: null,
    base: null,
    head: null,
    remote: null,
    files: [],
    truncated: false,
  };
  expect(await changes(plain)).toEqual(none);
  await expect(folders.change({ workdir: plain, base: null }, 'x')).rejects.toThrow('file not found');
});

test('does not show a working tree outside the safe paths', async () => {
  mkdirSync(join(folder.path, 'outside'));
  writeFileSync(join(folder.path, 'outside/secret'), 'secret');
  git(repo, 'config', 'core.worktree', join(folder.path, 'outside'));
  expect((await changes()).git).toBe(false);
  await expect(change('secret')).rejects.toThrow('file not found');
});

test('shows everything in a repository without commits as new', async () => {
  const empty = makeRepository(join(folder.path, 'safe/empty'));
  writeFileSync(join(empty, 'a'), 'x\n');
  writeFileSync(join(empty, 'b'), 'x\n');
  git(empty, 'add', 'a');
  expect(await changes(empty)).toEqual({
    git: true,
    branch: 'main',
    base: null,
    head: null,
    remote: null,
    truncated: false,
    files: [
      { path: 'a', from: null, status: 'added', ...numbers(1, 0), version },
      { path: 'b', from: null, status: 'untracked', ...numbers(1, 0), version },
    ],
  });
});

test('for a workdir below the top of its repository, shows only changes there, with relative names', async () => {
  write('keep.txt', 'changed\n');
  write('sub/inner.txt', 'changed\n');
  write('sub/new.txt', 'x\n');
  const sub = join(repo, 'sub');
  expect((await changes(sub)).files.map((each) => each.path)).toEqual(['inner.txt', 'new.txt']);
  expect((await folders.change({ workdir: sub, base: null }, 'inner.txt')).diff).toContain('+changed');
  expect((await folders.change({ workdir: sub, base: null }, 'new.txt')).diff).toContain('+x');
});

test('lists a conflict as one conflicted file', async () => {
  git(repo, 'checkout', '--quiet', '-b', 'other');
  commit(repo, { 'keep.txt': 'theirs\n' }, 'theirs');
  git(repo, 'checkout', '--quiet', 'main');
  commit(repo, { 'keep.txt': 'ours\n' }, 'ours');
  expect(() => git(repo, 'merge', 'other')).toThrow();
  const { files } = await changes();
  expect(files.map(({ path, status }) => ({ path, status }))).toEqual([
    { path: 'keep.txt', status: 'conflicted' },
  ]);
  await expect(change('keep.txt')).resolves.toMatchObject({ status: 'conflicted' });
});

test('reports no branch for the detached head of a rebase', async () => {
  git(repo, 'checkout', '--quiet', '--detach');
  expect((await changes()).branch).toBe(null);
});

test('returns git’s own unified diff of a file', async () => {
  write('keep.txt', 'one\n2\nthree\n');
  const shown = await change('keep.txt');
  expect(shown).toMatchObject({ path: 'keep.txt', status: 'modified', truncated: false });
  expect(shown.diff).toMatch(
    /^diff --git a\/keep\.txt b\/keep\.txt\n[\s\S]*\n@@ -1,3 \+1,3 @@\n one\n-two\n\+2\n three\n$/,
  );
});

test('the diff of a rename has both names; the diff of an untracked file has all its lines', async () => {
  renameSync(join(repo, 'old.txt'), join(repo, 'new.txt'));
  git(repo, 'add', '--all');
  write('new.txt', 'a\nb\nc\nd\ne\nF\n');
  expect((await change('new.txt')).diff).toContain('rename from old.txt\nrename to new.txt\n');
  write('-', 'dash\n');
  mkdirSync(join(repo, 'deep'));
  write('deep/--output=x', 'option\n');
  expect((await change('-')).diff).toContain('+dash\n');
  expect((await change('deep/--output=x')).diff).toContain('+++ b/deep/--output=x\n@@ -0,0 +1 @@\n+option\n');
});

test('ignores the repository’s settings for the format of a diff', async () => {
  for (const [key, value] of [
    ['diff.noprefix', 'true'],
    ['diff.mnemonicPrefix', 'true'],
    ['color.ui', 'always'],
    ['color.diff', 'always'],
    ['diff.renames', 'false'],
    ['diff.relative', 'true'],
    ['core.pager', 'false'],
    ['status.showUntrackedFiles', 'no'],
  ] as const) {
    git(repo, 'config', key, value);
  }
  write('keep.txt', 'one\n2\nthree\n');
  write('new.txt', 'x\n');
  expect((await change('keep.txt')).diff).toContain('--- a/keep.txt\n+++ b/keep.txt\n@@ ');
  expect((await change('new.txt')).diff).toContain('+++ b/new.txt\n');
});

test('returns no line counts and no diff of binary files', async () => {
  write('keep.txt', Buffer.from([0, 1, 2, 3]));
  write('new.bin', Buffer.from([0, 1, 2, 3]));
  for (const path of ['keep.txt', 'new.bin']) {
    expect(await change(path)).toMatchObject({ ...numbers(null, null), diff: '', truncated: false });
  }
});

test('returns file_not_found for any path that is not a changed file', async () => {
  write('keep.txt', 'x\n');
  writeFileSync(join(folder.path, 'secret'), 'secret\n');
  for (const path of [
    '../../secret',
    '/etc/passwd',
    'sub/../keep.txt',
    './keep.txt',
    'gone.txt',
    '',
    '.',
    '*',
    ':/',
  ]) {
    await expect(change(path), path).rejects.toThrow('file not found');
  }
  await expect(change('keep.txt\0')).rejects.toThrow('file not found');
});

test('shows the target of a link to a file elsewhere, not the file’s content', async () => {
  writeFileSync(join(folder.path, 'secret'), 'top secret\n');
  symlinkSync(join(folder.path, 'secret'), join(repo, 'link'));
  symlinkSync(folder.path, join(repo, 'linked-folder'));
  expect((await changes()).files.map((each) => each.path)).toEqual(['link', 'linked-folder']);
  const shown = await change('link');
  expect(shown.diff).toContain(`+${join(folder.path, 'secret')}`);
  expect(shown.diff).not.toContain('top secret');
  writeFileSync(join(folder.path, 'null'), 'top secret\n');
  expect((await change('linked-folder')).diff).toBe('');
});

test('skips special files without blocking', async () => {
  execFileSync('mkfifo', [join(repo, 'fifo')]);
  write('seen.txt', 'x\n');
  expect((await changes()).files.map((each) => each.path)).toEqual(['seen.txt']);
});

test('preserves unusual names: spaces, quotes, newlines, stars, any letters', async () => {
  const names = ['a b', '"q"', 'new\nline', 'st*r', 'tab\t', 'žluť.txt', ':(top)x', '[x]'];
  for (const name of names) write(name, 'x\n');
  const shown = (await changes()).files.map((each) => each.path);
  expect(shown.sort()).toEqual(names.map((name) => (name === '"q"' ? '"\\"q\\""' : name)).sort());
  for (const path of shown) expect((await change(path)).diff, path).toContain('+x');
  git(repo, 'add', '--all');
  for (const path of shown) expect((await change(path)).diff, path).toContain('+x');
});

test.runIf(process.platform === 'linux')(
  'quotes names that are not UTF-8, and finds them by the quoted name',
  async () => {
    const name = Buffer.from([0x63, 0xe9, 0x2e, 0x74]);
    const path = Buffer.concat([Buffer.from(`${repo}/`), name]);
    writeFileSync(path, 'x\n');
    expect((await changes()).files).toEqual([
      { path: '"c\\351.t"', from: null, status: 'untracked', ...numbers(1, 0), version },
    ]);
    expect((await change('"c\\351.t"')).diff).toBe('');
    git(repo, 'add', '--all');
    expect((await change('"c\\351.t"')).diff).toContain('+x');
  },
);

test('converts text that is not UTF-8 to valid text', async () => {
  write('keep.txt', Buffer.from([0x61, 0xff, 0x0a]));
  expect((await change('keep.txt')).diff).toContain('+a\ufffd\n');
});

test('truncates a huge diff at a line and reports it', async () => {
  const line = `${'x'.repeat(99)}\n`;
  write('keep.txt', line.repeat((limits.diff_bytes_max / 100) * 3));
  const shown = await change('keep.txt');
  expect(shown.truncated).toBe(true);
  expect(shown.diff.length).toBeLessThanOrEqual(limits.diff_bytes_max);
  expect(shown.diff.endsWith(`+${line}`)).toBe(true);
  write('huge.txt', line.repeat((limits.untracked_file_bytes_max / 100) * 2));
  expect(await change('huge.txt')).toMatchObject({ ...numbers(null, null), truncated: true });
});

test('truncates a long list and reports it; files beyond the limit can still be requested', async () => {
  mkdirSync(join(repo, 'many'));
  for (let index = 0; index <= sharedLimits.changed_files_max; index++) write(`many/${index}`, 'x\n');
  write('zzz', 'x\n');
  const listed = await changes();
  expect(listed.files.length).toBe(sharedLimits.changed_files_max);
  expect(listed.truncated).toBe(true);
  expect((await change('zzz')).diff).toContain('+x');
});

test('lists a nested repository as one entry and runs nothing that it configures', async () => {
  const canary = join(folder.path, 'canary');
  const program = join(folder.path, 'trap');
  writeFileSync(program, `#!/bin/sh\ntouch '${canary}'\n`);
  chmodSync(program, 0o755);
  const nested = makeRepository(join(repo, 'nested'), { x: 'x\n' });
  git(nested, 'config', 'core.fsmonitor', program);
  expect((await changes()).files.map((each) => each.path)).toEqual(['nested/']);
  expect((await change('nested/')).diff).toBe('');
  git(repo, '-c', 'advice.addEmbeddedRepo=false', 'add', 'nested');
  rmSync(canary, { force: true });
  writeFileSync(join(nested, 'x'), 'changed\n');
  expect((await changes()).files).toMatchObject([{ path: 'nested', status: 'added' }]);
  expect((await change('nested')).diff).toContain('Subproject commit');
  expect(() => execFileSync('test', ['-e', canary])).toThrow();
});

test('never blocks the agent’s own git commands', async () => {
  write('keep.txt', 'x\n');
  const reading = Array.from({ length: 5 }, () => changes());
  for (let round = 0; round < 10; round++) commit(repo, { 'keep.txt': `${round}\n` }, `round ${round}`);
  await Promise.all(reading);
});

test('answers identical concurrent requests with one job', async () => {
  let looks = 0;
  const counting = openFolders({
    data_dir: join(folder.path, 'data'),
    safe_paths: () => [join(folder.path, 'safe')],
    worktree_root: () => null,
    repo_roots: () => [],
    exec: {
      run: (argv, options) => {
        if (argv.includes('--numstat')) looks++;
        return directExec.run(argv, options);
      },
    },
    env: process.env,
    run_as: null,
  });
  const ask = () => counting.changes({ workdir: repo, base: null });
  const answers = await Promise.all([ask(), ask(), ask()]);
  expect(looks).toBe(1);
  expect(answers[1]).toEqual(answers[0]);
  write('keep.txt', 'changed\n');
  expect((await ask()).files.length).toBe(1);
  expect(looks).toBe(2);
});

test('a forged commit graph hides nothing', async () => {
  const base = git(repo, 'rev-parse', 'HEAD');
  const tree = git(repo, 'rev-parse', 'HEAD^{tree}');
  write('keep.txt', 'forged\n');
  git(repo, 'add', '--all');
  const forged = git(repo, 'write-tree');
  git(repo, 'commit-graph', 'write', '--reachable');
  replaceIn(join(repo, '.git/objects/info/commit-graph'), tree, forged);
  // Git itself trusts the graph.
  expect(git(repo, 'diff', '--name-only', 'HEAD')).toBe('');
  expect((await changes(repo, base)).files.map(({ path }) => path)).toEqual(['keep.txt']);
  expect((await change('keep.txt', base)).diff).toContain('+forged');
  expect((await folders.patch({ workdir: repo, base })).toString()).toContain('+forged');
});

test('rejects a repository without the base commit, and a folder without a repository', async () => {
  const base = git(repo, 'rev-parse', 'HEAD');
  const refused = { kind: 'conflict', code: 'base_missing' };
  write('keep.txt', 'forged\n');
  rmSync(join(repo, '.git'), { recursive: true });
  const all = [
    () => changes(repo, base),
    () => change('keep.txt', base),
    () => folders.patch({ workdir: repo, base }),
  ];
  for (const ask of all) await expect(ask()).rejects.toMatchObject(refused);
  makeRepository(repo, { 'other.txt': 'x\n' });
  for (const ask of all) await expect(ask()).rejects.toMatchObject(refused);
  expect((await changes(repo)).files).toEqual([]);
});

/** Replaces one object id by another in one of git's files. */
function replaceIn(path: string, name: string, by: string): void {
  const bytes = readFileSync(path);
  const at = bytes.indexOf(Buffer.from(name, 'hex'));
  expect(at).toBeGreaterThan(0);
  Buffer.from(by, 'hex').copy(bytes, at);
  chmodSync(path, 0o644);
  writeFileSync(path, bytes);
}

test('lists only as many changes as fit in a message, however long their paths are', async () => {
  const levels = Array.from({ length: 14 }, (_, n) => `${'d'.repeat(240)}${n}`);
  mkdirSync(join(repo, ...levels), { recursive: true });
  for (let n = 0; n < 700; n++) write(join(...levels, `file-${n}`), '');
  const { files, truncated } = await changes();
  expect(truncated).toBe(true);
  expect(files.length).toBeGreaterThan(500);
  expect(Buffer.byteLength(JSON.stringify(files))).toBeLessThan(3 * MIB);
});
