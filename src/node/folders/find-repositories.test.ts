import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { FoundRepository } from '../../core/node.ts';
import {
  git,
  makeRepository,
  makeTrap,
  poison,
  type TemporaryFolder,
  temporaryFolder,
} from '../../testing/repository.ts';
import { limits } from '../limits.ts';
import { directExec, type Exec } from '../processes/exec.ts';
import { findRepositories } from './find-repositories.ts';
import { openFolders } from './folders.ts';
import { Git } from './git.ts';

let folder: TemporaryFolder;
let code: string;
let repo_roots: string[];

beforeEach(() => {
  folder = temporaryFolder();
  code = join(folder.path, 'code');
  repo_roots = [];
  mkdirSync(code);
  // A search omits what takes too long, which on a busy machine may be anything.
  vi.spyOn(limits, 'repositories_ms', 'get').mockReturnValue(60_000 as never);
  vi.spyOn(limits, 'repository_git_ms', 'get').mockReturnValue(30_000 as never);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  folder.remove();
});

function open({ exec = directExec, safe_paths = [code] }: { exec?: Exec; safe_paths?: string[] } = {}) {
  return openFolders({
    data_dir: join(folder.path, 'data'),
    safe_paths: () => safe_paths,
    worktree_root: () => join(code, 'trees'),
    repo_roots: () => repo_roots,
    exec,
    env: { ...process.env, HOME: folder.path, XDG_CONFIG_HOME: '' },
    run_as: null,
  });
}

const find = (first: string[] = [], options = {}) => open(options).repositories({ first });
const make = (path: string, files: Record<string, string> = { 'a.txt': 'one\n' }) =>
  makeRepository(join(code, path), files);
const clean = (path: string): FoundRepository => ({ path, branch: 'main', dirty: false });
const paths = ({ repositories }: { repositories: FoundRepository[] }) => repositories.map(({ path }) => path);

test('lists repositories at and one level below the roots, with branch and changes', async () => {
  const shop = make('shop');
  const api = make('billing-api');
  git(api, 'checkout', '--quiet', '-b', 'fix/rounding');
  writeFileSync(join(api, 'new.txt'), '');
  const docs = make('docs');
  git(docs, 'checkout', '--quiet', '--detach');
  writeFileSync(join(docs, 'a.txt'), 'two\n');
  mkdirSync(join(code, 'plain'));
  writeFileSync(join(code, 'file'), '');
  make('group/inner');
  const tool = makeRepository(join(folder.path, 'tool'), { 'a.txt': 'one\n' });
  repo_roots = [tool, join(folder.path, 'missing')];
  expect(await find()).toEqual({
    roots: [code, tool, join(folder.path, 'missing')],
    repositories: [
      { path: api, branch: 'fix/rounding', dirty: true },
      { path: docs, branch: null, dirty: true },
      clean(shop),
      clean(tool),
    ],
    truncated: false,
  });
});

test('lists repositories without a working tree, but none without a commit', async () => {
  const shop = make('shop');
  git(code, 'clone', '--quiet', '--bare', shop, join(code, 'shop.git'));
  make('empty', {});
  mkdirSync(join(code, 'false/.git'), { recursive: true });
  expect((await find()).repositories).toEqual([clean(shop), clean(join(code, 'shop.git'))]);
});

test('examines the given repositories first, at any depth below the roots', async () => {
  const shop = make('shop');
  const inner = make('group/inner');
  const outside = makeRepository(join(folder.path, 'outside'), { 'a.txt': 'one\n' });
  symlinkSync(shop, join(code, 'link'));
  const first = [outside, join(code, 'link'), join(code, 'gone'), inner, 'relative', `${code}/../outside`];
  expect(paths(await find(first))).toEqual([inner, shop]);
});

test('checks a given path as creating a worktree does', async () => {
  const inner = make('group/inner');
  const shop = make('shop');
  symlinkSync(inner, join(code, 'link'));
  const check = (path: string) => open().repositories({ first: [], path });
  expect(paths(await check(join(code, 'link')))).toEqual([inner, shop]);
  const none = /^fatal: not a git repository/;
  await expect(check(join(code, 'group'))).rejects.toMatchObject({ code: 'git_refused', message: none });
  const empty = make('empty', {});
  await expect(check(empty)).rejects.toThrow(/^worktree_repo has no commits: /);
  await expect(check(join(code, 'gone'))).rejects.toThrow('worktree_repo does not exist');
  await expect(check('code')).rejects.toThrow('worktree_repo must be absolute');
  const safe = { code: 'worktree_repo_not_safe', allowed_paths: [code] };
  await expect(check(folder.path)).rejects.toMatchObject(safe);
});

test('never follows links, and ignores repositories with data or a working tree elsewhere', async () => {
  const outside = makeRepository(join(folder.path, 'outside'), { 'secret.txt': 'one\n' });
  symlinkSync(outside, join(code, 'link'));
  mkdirSync(join(code, 'pointer'));
  writeFileSync(join(code, 'pointer/.git'), `gitdir: ${outside}/.git\n`);
  mkdirSync(join(code, 'linked'));
  symlinkSync(join(outside, '.git'), join(code, 'linked/.git'));
  git(make('elsewhere'), 'config', 'core.worktree', outside);
  expect((await find()).repositories).toEqual([]);
});

test('omits hidden folders, linked worktrees, and everything in a worktree root', async () => {
  const shop = make('shop');
  make('.dotfiles');
  git(shop, 'worktree', 'add', '--quiet', join(code, 'shop-two'));
  make('trees/theirs');
  expect(paths(await find([join(code, 'trees/theirs')]))).toEqual([shop]);
  // The worktree root is allowed too.
  expect(paths(await find([], { safe_paths: [code, join(code, 'trees')] }))).toEqual([shop]);
});

test('returns names as they are, and omits those that no path may have', async () => {
  const names = ['-rf', '$(touch x)', "it's", 'emoji 🛒', '..a', '\u202egpj', '<b>'];
  for (const name of names) make(name);
  make('line\nbreak');
  execFileSync('/bin/sh', ['-c', 'mkdir "$(printf "bad-\\377")" && git init -q "$(printf "bad-\\377")"'], {
    cwd: code,
  });
  const shown = names.filter((name) => !name.startsWith('.')).sort();
  expect(paths(await find())).toEqual(shown.map((name) => join(code, name)));
});

test('runs nothing that a repository configures', async () => {
  const shop = make('shop');
  const canary = join(folder.path, 'canary');
  const trap = makeTrap(folder.path, canary);
  poison(shop, trap);
  rmSync(canary, { force: true });
  writeFileSync(join(shop, 'a.txt'), 'two\n');
  expect((await find()).repositories).toEqual([{ path: shop, branch: 'main', dirty: true }]);
  expect(() => execFileSync('cat', [canary], { stdio: 'ignore' })).toThrow();
});

test('does not wait for a repository that blocks git', async () => {
  vi.spyOn(limits, 'repository_git_ms', 'get').mockReturnValue(3_000 as never);
  const shop = make('shop');
  const stuck = make('stuck');
  rmSync(join(stuck, '.git/index'));
  execFileSync('mkfifo', [join(stuck, '.git/index')]);
  const dead = make('dead');
  rmSync(join(dead, '.git/HEAD'));
  execFileSync('mkfifo', [join(dead, '.git/HEAD')]);
  const { repositories } = await find();
  expect(repositories).toEqual([clean(shop), { path: stuck, branch: 'main', dirty: null }]);
});

test('returns what it has found when the time is up', async () => {
  // Time passes only when the test says so, however slow git is.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const shop = make('shop');
  const others = Array.from({ length: limits.repositories_parallel }, (_, i) => make(`z${i}`));
  const real = new Git({
    exec: directExec,
    env: process.env,
    run_as: null,
    roots: async () => [code],
    locks: false,
  });
  // The other repositories never answer, as on a file system that hangs. The last of them is asked in place of the first
  // repository, once that is done.
  const asked = Promise.withResolvers<void>();
  const run: Git['run'] = (place, args, call) => {
    if (place === shop) return real.run(place, args, call);
    if (place === others.at(-1)) asked.resolve();
    return new Promise(() => {});
  };
  const search = { roots: [code], hidden: [], first: [shop] };
  const finding = findRepositories({ run }, search, [code], 300);
  await asked.promise;
  await vi.advanceTimersByTimeAsync(300 + limits.repositories_slack_ms);
  const found = await finding;
  expect(found.truncated).toBe(true);
  expect(paths(found)).toEqual([shop]);
  expect(await findRepositories({ run }, search, [code], 0)).toEqual({ repositories: [], truncated: true });
});

test('searches nothing if no folder is allowed', async () => {
  const exec: Exec = { run: () => Promise.reject(new Error('not expected')) };
  expect(await find([], { exec, safe_paths: [] })).toEqual({ roots: [], repositories: [], truncated: false });
});
