import { execFileSync } from 'node:child_process';
import { chown, link, mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { asUser, findUser, type RunAs } from '../confinement/run-as.ts';
import { directExec } from '../processes/exec.ts';
import { StepFiles } from './step-files.ts';

const as_root = process.platform === 'linux' && process.getuid?.() === 0;

let data_dir: string;
/** The folder that replaces /run. */
let run_dir: string;

beforeEach(async () => {
  data_dir = await mkdtemp(join(tmpdir(), 'svc-data-'));
  run_dir = await mkdtemp(join(tmpdir(), 'svc-run-'));
});
afterEach(async () => {
  for (const folder of [data_dir, run_dir]) await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

const open = (run_as: RunAs | null = null) =>
  new StepFiles({
    ...{ data_dir, run_as, exec: directExec, log: silentLog },
    env: { PATH: process.env.PATH, RUNTIME_DIRECTORY: run_dir },
  });
const text = (bytes: Uint8Array | null) => bytes && Buffer.from(bytes).toString();

test('deletes the folders of forgotten sessions, including those forgotten while the service was down', async () => {
  const files = open();
  await files.sweep(new Set());
  for (const id of ['ses_a', 'ses_b', 'ses_c']) await files.make(id, '{}');
  await files.drop('ses_a');
  await files.drop('ses_a');
  await files.sweep(new Set(['ses_b']));
  expect(await readdir(join(data_dir, 'steps'))).toEqual(['ses_b']);
});

test('a session that is created again starts without an earlier output', async () => {
  const files = open();
  await files.make('ses_a', '{}');
  const { SVC_STEP_OUTPUT = '' } = await files.environment('ses_a');
  await writeFile(SVC_STEP_OUTPUT, 'old');
  await files.make('ses_a', '{}');
  expect(await files.output('ses_a', 100)).toBe(null);
});

test('rejects a step if its folder cannot be created', async () => {
  const run_as = { uid: 1, gid: 1, name: 'x', home: '/' } as RunAs;
  await rm(run_dir, { recursive: true });
  await expect(open(run_as).make('ses_a', '{}')).rejects.toMatchObject({ code: 'no_step_folder' });
  await open(run_as).drop('ses_a');
});

test.runIf(as_root)(
  'another user’s agents can access their own data, but none of the service’s',
  async () => {
    const run_as = await findUser(directExec, 'nobody');
    execFileSync('chmod', ['755', run_dir]);
    const files = open(run_as);
    await files.make('ses_a', 'told');
    const { SVC_STEP_INPUT = '', SVC_STEP_OUTPUT = '' } = await files.environment('ses_a');
    const shell = async (command: string, user = run_as) => {
      const argv = asUser(['/bin/sh', '-c', command, 'sh', SVC_STEP_INPUT, SVC_STEP_OUTPUT], user);
      const env = { PATH: process.env.PATH ?? '/usr/bin:/bin' };
      const options = { cwd: '/', env, output_bytes_max: 4_096, timeout_ms: 30_000 };
      return (await directExec.run(argv, options)).code;
    };
    expect(await shell('cat "$1" >"$2.new" && mv "$2.new" "$2"')).toBe(0);
    expect(text(await files.output('ses_a', 100))).toBe('told');
    const stranger = { ...run_as, uid: run_as.uid - 1, gid: run_as.gid - 1 };
    expect(await shell('cat "$1"', stranger)).not.toBe(0);
    expect(await shell('ls "$1/../.."')).not.toBe(0);

    // Whatever the agent creates in its place, only a regular file of the agent's user is read.
    const secret = join(run_dir, 'secret');
    await writeFile(secret, 'ours', { mode: 0o600 });
    for (const lay of [symlink, link]) {
      await rm(SVC_STEP_OUTPUT);
      await lay(secret, SVC_STEP_OUTPUT);
      expect(await files.output('ses_a', 100)).toBe(null);
    }
    await rm(SVC_STEP_OUTPUT);
    await writeFile(SVC_STEP_OUTPUT, 'planted');
    expect(await files.output('ses_a', 100)).toBe(null);
    await chown(SVC_STEP_OUTPUT, run_as.uid, run_as.gid);
    expect(text(await files.output('ses_a', 100))).toBe('planted');
    expect((await stat(join(SVC_STEP_INPUT, '..'))).mode & 0o777).toBe(0o700);
  },
);

test.runIf(as_root)(
  'removes another user’s folder only with that user’s rights, and does not reuse one that cannot be removed',
  async () => {
    const run_as = await findUser(directExec, 'nobody');
    execFileSync('chmod', ['755', run_dir]);
    const files = open(run_as);
    for (const id of ['ses_a', 'ses_b']) await files.make(id, '{}');
    const folder = async (id: string) => join((await files.environment(id)).SVC_STEP_INPUT ?? '', '..');
    // A link to a folder of the service must not be followed.
    const theirs = join(await folder('ses_a'), 'in');
    await mkdir(theirs, { mode: 0o700 });
    await writeFile(join(theirs, 'kept'), 'ours');
    await files.drop('ses_a');
    expect(await readdir(theirs)).toEqual(['kept']);
    const message = 'no folder for step data: an earlier folder cannot be removed';
    await expect(files.make('ses_a', '{}')).rejects.toMatchObject({ code: 'no_step_folder', message });
    await files.drop('ses_b');
    await files.sweep(new Set());
    expect(await readdir(join(await folder('ses_b'), '..'))).toEqual(['ses_a']);
  },
);
