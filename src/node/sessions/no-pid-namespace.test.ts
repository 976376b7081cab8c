/** Sessions in real sandboxes on a machine that allows namespaces, but no pid namespace with a new /proc. */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isAlive, readStat } from '../../base/proc.ts';
import type { Launch } from '../../core/session.ts';
import { openTestNode, sharedLauncher } from '../../testing/local-node.ts';
import { isPidAlive, launchOf, RecordingSink, readAll, until } from '../../testing/node-suite.ts';
import { noPidNamespace, sandboxMissing } from '../../testing/sandbox.ts';
import { Sandbox } from '../confinement/sandbox.ts';
import type { LocalNode } from '../node.ts';
import { SessionFiles } from './session-files.ts';

const missing = sandboxMissing();
const sandboxed = test.skipIf(missing !== null);
const note = missing === null ? '' : ` (sandbox: ${missing})`;

let folder: string;
let workdir: string;
let data_dir: string;
let node: LocalNode;
let seen: RecordingSink;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'svc-no-pid-namespace-')));
  [workdir, data_dir] = [join(folder, 'work'), join(folder, 'data')];
  for (const path of [workdir, data_dir]) await mkdir(path);
});
afterEach(async () => {
  for (const { session_id } of await node.sessions()) await node.stop(session_id, 0);
  await node.close();
  // The guard outlives the node and may still write its file.
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

async function open(unshare: string | null = null): Promise<void> {
  const sandbox = new Sandbox({
    ...{ exec: noPidNamespace, bwrap: '/usr/bin/bwrap', unshare, data_dir, run_as: null, env: process.env },
    ...{ hidden: [], readable: [], writable: () => [workdir] },
    ...{ worktree_roots: () => [], repo_roots: () => [] },
  });
  const quick = { helper_check_ms: 100, sweep_ms: 50, leftover_grace_ms: 10_000, cgroup: false };
  node = await openTestNode(data_dir, { launcher: sharedLauncher, sandbox, ...quick });
  seen = new RecordingSink();
  await node.attach(seen);
}

async function run(script: string, more: Partial<Launch> = {}): Promise<string> {
  const launch = launchOf(workdir, ['/bin/sh', '-c', script], more);
  await node.start(launch);
  return launch.session_id;
}

const handleOf = (id: string) => new SessionFiles(join(data_dir, 'sessions', id)).readHandle()!;
const output = async (id: string) => (await readAll(node, id, 'stdout')).toString();
const made = (name: string) => until(() => existsSync(join(workdir, name)));

sandboxed.each([null, '/usr/bin/unshare'])(
  `an agent starts, reads stdin and ends with its exit code (private mounts: %s)${note}`,
  async (unshare) => {
    await open(unshare);
    const id = await run('read -r line; echo "got $line"; exit 7', { stdin: true });
    expect(handleOf(id)).toMatchObject({ init: null, main: { pid: expect.any(Number) } });
    await node.input(id, 0, Buffer.from('word\n'), false);
    expect(await seen.ended(id)).toMatchObject({
      exit: { exit_code: 7, reason: 'exit_code' },
      leftovers: [],
    });
    expect(await output(id)).toBe('got word\n');
    const failed = await run('kill -9 $$');
    expect((await seen.ended(failed)).exit).toMatchObject({ exit_code: 137 });
  },
);

sandboxed(`a stop gives the agent its grace period and ends what it started${note}`, async () => {
  await open();
  const id = await run(
    'trap "sleep 0.3; echo bye; exit 0" TERM; setsid sh -c "echo \\$\\$ >child; exec sleep 1000" & while :; do sleep 0.05; done',
  );
  const child = await until(async () => {
    await made('child');
    return Number(await readFile(join(workdir, 'child'), 'utf8'));
  });
  expect(await isPidAlive(child)).toBe(true);
  expect(await node.stop(id, 30_000)).toEqual({ cleanup: 'swept', survivors: [] });
  expect((await seen.ended(id)).exit.exit_code).toBe(0);
  expect(await output(id)).toBe('bye\n');
  expect(await isPidAlive(child)).toBe(false);
});

sandboxed(`processes that the agent leaves behind are ended, or listed if they are kept${note}`, async () => {
  await open();
  // Ends once the other process is `sleep`, with neither the environment nor the command line of the agent.
  const leave =
    'env -i /bin/sh -c "exec sleep 1000" >/dev/null 2>&1 </dev/null & echo $! >child; until grep -q ^sleep /proc/$!/cmdline; do sleep 0.02; done';
  for (const on_exit of ['kill', 'keep'] as const) {
    const id = await run(leave, { on_exit });
    const { leftovers } = await seen.ended(id);
    const pid = Number(await readFile(join(workdir, 'child'), 'utf8'));
    expect(await isPidAlive(pid)).toBe(on_exit === 'keep');
    expect(leftovers).toEqual(on_exit === 'keep' ? [{ pid, command: 'sleep 1000' }] : []);
    if (on_exit === 'keep') process.kill(pid, 'SIGKILL');
  }
});

sandboxed.each(['wrapper', 'keeper'] as const)(
  `an agent continues if its %s is killed${note}`,
  async (helper) => {
    await open();
    const id = await run('until [ -e stop ]; do sleep 0.02; done; echo last', { on_exit: 'keep' });
    const { [helper]: killed, main } = handleOf(id);
    process.kill(killed.pid, 'SIGKILL');
    await until(() => !isAlive(killed));
    if (helper === 'keeper') await until(() => handleOf(id).keeper.pid !== killed.pid);
    expect(isAlive(main)).toBe(true);
    await writeFile(join(workdir, 'stop'), '');
    const { exit, leftovers } = await seen.ended(id);
    expect([exit.reason, leftovers]).toEqual([helper === 'wrapper' ? 'exit_status_unknown' : null, []]);
    expect(await output(id)).toBe('last\n');
  },
);

sandboxed(
  `an agent ends completely although its wrapper or bubblewrap process was killed${note}`,
  async () => {
    await open();
    for (const helper of ['wrapper', 'bubblewrap']) {
      const id = await run(`trap "echo bye; exit 0" TERM; >${helper}; while :; do sleep 0.05; done`);
      await made(helper);
      const { wrapper, main } = handleOf(id);
      process.kill(helper === 'wrapper' ? wrapper.pid : readStat(main.pid)!.ppid, 'SIGKILL');
      if (helper === 'wrapper') expect((await node.stop(id, 30_000)).survivors).toEqual([]);
      await seen.ended(id);
      expect(isAlive(main)).toBe(false);
      expect(await output(id)).toBe('bye\n');
    }
  },
);
