/** A process without free descriptors must not mistake a folder for a missing or forbidden one. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { hasProc } from '../../base/proc.ts';
import { type TemporaryFolder, temporaryFolder } from '../../testing/repository.ts';

let folder: TemporaryFolder;
beforeEach(() => {
  folder = temporaryFolder();
  for (const name of ['safe/full', 'data']) mkdirSync(join(folder.path, name), { recursive: true });
  writeFileSync(join(folder.path, 'safe/full/work'), 'x');
});
afterEach(() => folder.remove());

/** Arguments: a module and a folder. Answers while no descriptor is free, and then again. */
const STARVING = `
  import { closeSync, openSync } from 'node:fs';
  import { join } from 'node:path';
  const [modules, folder] = process.argv.slice(1);
  const { directExec } = await import(join(modules, 'processes/exec.ts'));
  const { openFolders } = await import(join(modules, 'folders/folders.ts'));
  const { makeFolders } = await import(join(modules, 'folders/paths.ts'));
  const safe = join(folder, 'safe');
  const folders = openFolders({
    data_dir: join(folder, 'data'),
    safe_paths: () => [safe],
    worktree_root: () => null,
    repo_roots: () => [],
    exec: directExec,
    env: process.env,
    run_as: null,
  });
  const answer = (work) => work.then((value) => value, (error) => error.code);
  const both = async () => [
    await answer(makeFolders({ path: join(safe, 'new'), missing: ['new'] }, { mode: 0o700 })),
    await answer(folders.whyKept({ workdir: join(safe, 'full'), repo: null, branch: null, base: null })),
  ];
  await folders.resolve(safe);
  const held = [];
  try {
    for (;;) held.push(openSync('/dev/null', 'r'));
  } catch {}
  const said = [await both()];
  for (const fd of held) closeSync(fd);
  said.push(await both());
  console.log(JSON.stringify(said));
`;

test.runIf(hasProc)('says that no descriptor is free, and answers once one is', () => {
  const modules = fileURLToPath(new URL('..', import.meta.url));
  const node = [process.execPath, '--input-type=module', '-e', STARVING, modules, folder.path];
  const said = execFileSync('/bin/sh', ['-c', 'ulimit -n 256; exec "$@"', 'sh', ...node], {
    encoding: 'utf8',
  });
  expect(JSON.parse(said)).toEqual([
    ['EMFILE', 'EMFILE'],
    [join(folder.path, 'safe/new'), 'the folder is not empty'],
  ]);
});
