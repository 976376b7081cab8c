/** Sessions whose command takes long to start, hangs before it does, or fails. */
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import type { Folders } from '../../core/node.ts';
import { openTestNode, sharedLauncher } from '../../testing/local-node.ts';
import { launchOf, RecordingSink, until } from '../../testing/node-suite.ts';
import type { LocalNode } from '../node.ts';
import type { Tools } from '../processes/tools.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-slow-starts-'));
  // The guard outlives the node and may still write its file.
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
});

/** Makes a program that runs this script and then its arguments. */
async function program(name: string, script: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, `#!/bin/sh\n${script}\nexec "$@"\n`);
  await chmod(path, 0o755);
  return path;
}

/** Opens a node. A script of the shell runs between the wrapper and the command. */
async function open(
  script: string,
  tools: Partial<Tools> = {},
  start_answer_ms = 200,
): Promise<{ node: LocalNode; sink: RecordingSink }> {
  const setsid = await program('setsid', script);
  const quick = { launcher: sharedLauncher, sweep_ms: 50, start_answer_ms };
  const options = { ...quick, tools: { setsid, ...tools } };
  const node = await openTestNode(join(folder, 'data'), options);
  onTestFinished(() => node.close());
  const sink = new RecordingSink();
  await node.attach(sink);
  return { node, sink };
}

test('a session that hangs while it starts can be stopped', async () => {
  const { node, sink } = await open('exec sleep 1000');
  const launch = launchOf(folder, ['true']);
  expect(await node.start(launch)).toMatchObject({ phase: 'starting', facts: [] });
  expect(await node.stop(launch.session_id, 0)).toMatchObject({ survivors: [] });
  expect((await sink.ended(launch.session_id)).exit).toMatchObject({ reason: 'spawn_failed' });
});

test.each(['stop', 'forget'] as const)(
  'a %s cancels a start whose folder takes long to check',
  async (command) => {
    const checked = Promise.withResolvers<void>();
    const data_dir = join(folder, 'data');
    const node = await openTestNode(data_dir, {
      launcher: sharedLauncher,
      folders: {
        resolve: async (path: string) => {
          await checked.promise;
          return { path, below_worktree_root: false, claimed_by: null };
        },
      } as Folders,
    });
    onTestFinished(() => node.close());
    const launch = launchOf(folder, ['true'], { step_input: '{}' });
    const id = launch.session_id;
    const starting = node.start(launch);
    const sink = new RecordingSink();
    await node.attach(sink);
    expect([sink.sessions, sink.unreadable]).toEqual([[], [id]]);
    await expect(node.read(id, 'stdout', 0, 1)).rejects.toMatchObject({ code: 'session_unreadable' });
    if (command === 'forget') await node.forget(id);
    else await expect(node.stop(id, 0)).rejects.toMatchObject({ code: 'session_not_found' });
    checked.resolve();
    await expect(starting).rejects.toMatchObject({ code: 'session_not_found' });
    expect(await node.sessions()).toEqual([]);
    expect(await readdir(join(data_dir, 'sessions'))).not.toContain(id);
    expect(await readdir(join(data_dir, 'steps'))).toEqual([]);
  },
);

test('a start fails as unreachable if its node closes meanwhile', async () => {
  const { node } = await open('exec sleep 1000', {}, 60_000);
  const launch = launchOf(folder, ['true']);
  const starting = node.start(launch);
  const closed = node.close();
  await expect(starting).rejects.toMatchObject({ code: 'node_unreachable' });
  await closed;
  const next = await open('');
  expect(await next.node.stop(launch.session_id, 0)).toMatchObject({ survivors: [] });
  await next.sink.ended(launch.session_id);
});

test('a session that takes long to start runs once, and reports it', async () => {
  const { node, sink } = await open(`until [ -e "${folder}/go" ]; do sleep 0.02; done`);
  const launch = launchOf(folder, ['/bin/sh', '-c', 'echo $$ >>pids; exec sleep 1000']);
  const id = launch.session_id;
  for (let tries = 0; tries < 2; tries++) expect((await node.start(launch)).phase).toBe('starting');
  await writeFile(join(folder, 'go'), '');
  const [started] = await until(() => sink.eventsOf(id).length > 0 && sink.eventsOf(id));
  const pids = () => readFile(join(folder, 'pids'), 'utf8');
  const view = await node.start(launch);
  expect([started!.body.kind, view.phase]).toEqual(['started', 'running']);
  await until(async () => (await pids().catch(() => '')) === `${view.pid}\n`);
  await node.stop(id, 0);
  await sink.ended(id);
  expect(await pids()).toBe(`${view.pid}\n`);
});

test('a failed start reports its reason, even if the reason is stored after the wrapper has ended', async () => {
  const cat = await program('cat', 'sleep 0.5; exec cat');
  const { node, sink } = await open('echo "cannot make a sandbox" >&2; exit 1', { cat });
  for (const on_exit of ['kill', 'keep'] as const) {
    const launch = launchOf(folder, ['true'], { on_exit });
    await node.start(launch);
    const { exit, sizes, leftovers } = await sink.ended(launch.session_id);
    expect(exit).toMatchObject({ reason: 'spawn_failed', message: 'cannot make a sandbox' });
    expect([sizes.stderr, leftovers]).toEqual(['cannot make a sandbox\n'.length, []]);
  }
});
