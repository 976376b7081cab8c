/** A process without free descriptors must not mistake a folder for a missing or forbidden one. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { hasProc } from '../../base/proc.ts';
import { type TemporaryFolder, temporaryFolder } from '../../testing/repository.ts';
import { findUser } from '../confinement/run-as.ts';
import { directExec } from '../processes/exec.ts';

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

/** Arguments: a module and a user. Asks that user's worker while few descriptors are free, and then again. */
const STARVING_WORKER = `
  import { closeSync, openSync } from 'node:fs';
  import { join } from 'node:path';
  const [modules, user] = process.argv.slice(1);
  const { directExec } = await import(join(modules, 'processes/exec.ts'));
  const { FolderWorkers } = await import(join(modules, 'folders/worker-client.ts'));
  const run_as = JSON.parse(user);
  const workers = new FolderWorkers({ env: process.env, run_as, sandbox: null, repo_roots: () => [] });
  const held = [];
  try {
    for (;;) held.push(openSync('/dev/null', 'r'));
  } catch {}
  const job = () =>
    workers.run([], 'isVacant', { path: '/missing' }).catch((error) => error.code);
  // Enough to look around, but not for the pipes of a process.
  for (let free = 0; free < 4; free++) closeSync(held.pop());
  const said = [await job()];
  for (const fd of held) closeSync(fd);
  said.push(await job());
  await workers.close();
  console.log(JSON.stringify(said));
`;

test.runIf(hasProc)('says that no descriptor is free, and answers once one is', () => {
  expect(runStarving(STARVING, folder.path)).toEqual([
    ['EMFILE', 'EMFILE'],
    [join(folder.path, 'safe/new'), 'the folder is not empty'],
  ]);
});

test.runIf(hasProc && process.getuid?.() === 0)(
  'a worker that cannot start without descriptors fails its job, and nothing else',
  async () => {
    const user = JSON.stringify(await findUser(directExec, 'nobody'));
    expect(runStarving(STARVING_WORKER, user)).toEqual(['folder_worker_failed', true]);
  },
);

function runStarving(script: string, ...args: string[]): unknown[] {
  const modules = fileURLToPath(new URL('..', import.meta.url));
  const node = [process.execPath, '--input-type=module', '-e', script, modules, ...args];
  const said = execFileSync('/bin/sh', ['-c', 'ulimit -n 256; exec "$@"', 'sh', ...node], {
    encoding: 'utf8',
  });
  return JSON.parse(said) as unknown[];
}
