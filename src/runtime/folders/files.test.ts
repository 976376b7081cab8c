import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { limits } from '../../base/limits.ts';
import { makeRepository, type TemporaryFolder, temporaryFolder } from '../../testing/repository.ts';
import { directExec } from '../exec.ts';
import { best } from './files.ts';
import { openFolders } from './folders.ts';

let folder: TemporaryFolder;
let repo: string;

beforeEach(() => {
  folder = temporaryFolder();
  repo = makeRepository(join(folder.path, 'safe/repo'), {
    'cart.ts': '',
    'gone.ts': '',
    'src/cart.test.ts': '',
    'src/deep/à la carte.md': '',
    '.gitignore': '*.log\n',
  });
});
afterEach(() => folder.remove());

function find(words: string, workdir = repo) {
  const folders = openFolders({
    data_dir: join(folder.path, 'data'),
    safe_paths: () => [join(folder.path, 'safe')],
    worktree_root: () => null,
    repo_roots: () => [],
    exec: directExec,
    env: { ...process.env, HOME: folder.path, XDG_CONFIG_HOME: '' },
    run_as: null,
  });
  return folders.files(workdir, words);
}

test('what git has and what is new is found; what is ignored or gone is not', async () => {
  writeFileSync(join(repo, 'new cart.ts'), '');
  writeFileSync(join(repo, 'cart.log'), '');
  rmSync(join(repo, 'gone.ts'));
  expect(await find('cart')).toEqual({
    git: true,
    paths: ['cart.ts', 'src/cart.test.ts', 'new cart.ts', 'src/deep/à la carte.md'],
    truncated: false,
  });
  expect((await find('gone')).paths).toEqual([]);
  expect((await find('')).paths).toHaveLength(5);
});

test('paths count from the workdir on, and nothing above it is told', async () => {
  expect((await find('', join(repo, 'src'))).paths).toEqual(['cart.test.ts', 'deep/à la carte.md']);
});

test('a name that is not text is left out, and one that breaks lines is one name', async () => {
  writeFileSync(Buffer.concat([Buffer.from(`${repo}/bad-`), Buffer.from([0xff])]), '');
  writeFileSync(join(repo, 'bad-\nline'), '');
  symlinkSync('/etc/passwd', join(repo, 'bad-link'));
  expect((await find('bad')).paths).toEqual(['bad-link', 'bad-\nline']);
});

test('a workdir without git says so, and one outside the safe paths is refused', async () => {
  rmSync(join(repo, '.git'), { recursive: true });
  expect(await find('')).toEqual({ git: false, paths: [], truncated: false });
  await expect(find('', folder.path)).rejects.toThrow('workdir path must be within allowed safe paths');
});

test('of many only the best are told', async () => {
  for (let at = 0; at <= limits.found_files_max; at++) writeFileSync(join(repo, `many-${at}`), '');
  const found = await find('many');
  expect(found.paths).toHaveLength(limits.found_files_max);
  expect(found.truncated).toBe(true);
});

test('every word counts, the last one most; case does not', () => {
  const paths = ['src/web/List.tsx', 'src/web/checklist.tsx', 'list/web.ts', 'docs/web-list/a.md'];
  expect(best(paths, 'web LIST')).toEqual([
    'src/web/List.tsx',
    'src/web/checklist.tsx',
    'list/web.ts',
    'docs/web-list/a.md',
  ]);
  expect(best(paths, 'web/list')).toEqual(['src/web/List.tsx']);
  expect(best(paths, 'list/')).toEqual(['list/web.ts', 'docs/web-list/a.md']);
  expect(best(paths, 'none')).toEqual([]);
});
