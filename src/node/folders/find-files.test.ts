import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { limits } from '../../base/limits.ts';
import { makeRepository, type TemporaryFolder, temporaryFolder } from '../../testing/repository.ts';
import { directExec } from '../processes/exec.ts';
import { rank } from './find-files.ts';
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

function find(query: string, workdir = repo) {
  const folders = openFolders({
    data_dir: join(folder.path, 'data'),
    safe_paths: () => [join(folder.path, 'safe')],
    worktree_root: () => null,
    repo_roots: () => [],
    exec: directExec,
    env: { ...process.env, HOME: folder.path, XDG_CONFIG_HOME: '' },
    run_as: null,
  });
  return folders.files(workdir, query);
}

test('finds tracked and new files, but no ignored or deleted ones', async () => {
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

test('returns paths relative to the workdir, and nothing above it', async () => {
  expect((await find('', join(repo, 'src'))).paths).toEqual(['cart.test.ts', 'deep/à la carte.md']);
});

test('omits names that are not UTF-8, and keeps names with line breaks whole', async () => {
  writeFileSync(Buffer.concat([Buffer.from(`${repo}/bad-`), Buffer.from([0xff])]), '');
  writeFileSync(join(repo, 'bad-\nline'), '');
  symlinkSync('/etc/passwd', join(repo, 'bad-link'));
  expect((await find('bad')).paths).toEqual(['bad-link', 'bad-\nline']);
});

test('reports a workdir without git, and rejects one outside the safe paths', async () => {
  rmSync(join(repo, '.git'), { recursive: true });
  expect(await find('')).toEqual({ git: false, paths: [], truncated: false });
  await expect(find('', folder.path)).rejects.toThrow('workdir path must be within allowed safe paths');
});

test('returns only the best of many matches', async () => {
  for (let at = 0; at <= limits.found_files_max; at++) writeFileSync(join(repo, `many-${at}`), '');
  const found = await find('many');
  expect(found.paths).toHaveLength(limits.found_files_max);
  expect(found.truncated).toBe(true);
});

test('requires every word, ranks by the last one, and ignores case', () => {
  const paths = ['src/web/List.tsx', 'src/web/checklist.tsx', 'list/web.ts', 'docs/web-list/a.md'];
  expect(rank(paths, 'web LIST')).toEqual([
    'src/web/List.tsx',
    'src/web/checklist.tsx',
    'list/web.ts',
    'docs/web-list/a.md',
  ]);
  expect(rank(paths, 'web/list')).toEqual(['src/web/List.tsx']);
  expect(rank(paths, 'list/')).toEqual(['list/web.ts', 'docs/web-list/a.md']);
  expect(rank(paths, 'none')).toEqual([]);
});
