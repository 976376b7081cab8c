/** What earlier service processes and sessions left behind. */
import fs from 'node:fs';
import files, { access, mkdir, mkdtemp, rm, rmdir, utimes, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { newId } from '../base/ids.ts';
import { limits, MIB } from '../base/limits.ts';
import type { SessionFact } from '../core/node.ts';
import { openTestNode, sharedLauncher } from '../testing/local-node.ts';
import { launchOf, RecordingSink, until } from '../testing/node-suite.ts';
import { openTestNodeServer, remoteNode } from '../testing/remote-node.ts';
import type { LocalNodeOptions } from './node.ts';
import { findCgroupParent } from './processes/cgroup.ts';
import { ActorFiles } from './sessions/actor-files.ts';
import { SessionFiles } from './sessions/session-files.ts';
import { SESSION_VERSION } from './sessions/shell-scripts.ts';

const cgroups = await findCgroupParent();
let data: string;

beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), 'svc-leftovers-'));
  // The guard outlives the node and may still write its file.
  onTestFinished(() => rm(data, { recursive: true, force: true, maxRetries: 5 }));
});

async function open(more: Partial<LocalNodeOptions> = {}) {
  const quick = { helper_check_ms: 50, sweep_ms: 50 };
  const node = await openTestNode(data, { launcher: sharedLauncher, ...quick, ...more });
  onTestFinished(() => node.close());
  return node;
}

/** Opening this file fails as long as `fails` returns true. */
function failToOpen(path: string, code: string, fails: () => boolean): void {
  const { openSync } = fs;
  const spy = vi.spyOn(fs, 'openSync').mockImplementation((...args) => {
    if (args[0] === path && fails()) throw Object.assign(new Error(code), { code });
    return openSync(...args);
  });
  syncBuiltinESMExports();
  onTestFinished(() => {
    spy.mockRestore();
    syncBuiltinESMExports();
  });
}

/** Runs until the file `stop` exists, for 30 s at most. */
const UNTIL_STOP = 'n=0; until [ -e stop ] || [ $n -gt 1500 ]; do n=$((n+1)); sleep 0.02; done';
const inSession = (id: string, name: string) => join(data, 'sessions', id, name);
const UNREADABLE = { code: 'session_unreadable' };

test.each(['launch.json', 'facts'])(
  'a session whose %s cannot be read is reported once it can',
  async (name) => {
    const launches = [1, 2].map(() => launchOf(data, ['/bin/sh', '-c', UNTIL_STOP]));
    const [broken, other] = launches.map(({ session_id }) => session_id) as [string, string];
    const first = await open();
    for (const launch of launches) await first.start(launch);
    await first.close();
    let fails = true;
    failToOpen(inSession(broken, name), 'EIO', () => fails);

    const node = await open();
    const sink = new RecordingSink();
    await node.attach(sink);
    expect(sink.unreadable).toEqual([broken]);
    expect(sink.sessions.map((view) => view.session_id)).toEqual([other]);
    await expect(node.stop(broken, 0)).rejects.toMatchObject(UNREADABLE);
    await expect(node.start(launches[0]!)).rejects.toMatchObject(UNREADABLE);
    await expect(node.forget(broken)).rejects.toMatchObject(UNREADABLE);
    fails = false;
    await until(() => sink.eventsOf(broken).length > 0);
    expect(sink.eventsOf(broken)).toMatchObject([{ number: 1, body: { kind: 'started' } }]);
    expect((await node.stop(broken, 0)).survivors).toEqual([]);
    await writeFile(join(data, 'stop'), '');
    for (const id of [broken, other]) await sink.ended(id);
    expect(sink.eventsOf(broken).map((fact) => fact.number)).toEqual([1, 2]);
  },
);

/** A session directory whose `launch.json` a power failure has cut off. */
async function torn(id: string, ...names: string[]): Promise<void> {
  await mkdir(inSession(id, 'pipes'), { recursive: true });
  await writeFile(inSession(id, 'launch.json'), '{"version":1');
  for (const name of names) await writeFile(inSession(id, name), '');
}

test('a repeated start of a session whose launch was lost reports how it ended', async () => {
  const node = await open();
  const [unclaimed, claimed] = [launchOf(data, ['true']), launchOf(data, ['true'])];
  await torn(unclaimed.session_id);
  await torn(claimed.session_id, 'claimed');
  const ends = [await node.start(unclaimed), await node.start(claimed)].map((view) => view.end?.exit.reason);
  // The second one may have run.
  expect(ends).toEqual(['spawn_failed', 'host_restarted']);
  for (const { session_id } of [unclaimed, claimed]) await node.forget(session_id);
  // Beside sessions, the folder may contain a file of the guard.
  expect((await files.readdir(join(data, 'sessions'))).filter((name) => !name.startsWith('.'))).toEqual([]);
});

test('a repeated start finds a running session whose launch was lost', async () => {
  const launch = launchOf(data, ['/bin/sh', '-c', `echo up; ${UNTIL_STOP}`]);
  const id = launch.session_id;
  const first = await open();
  const { pid } = await first.start(launch);
  await first.close();
  await writeFile(inSession(id, 'launch.json'), '');
  const node = await open();
  const sink = new RecordingSink();
  await node.attach(sink);
  expect(sink.sessions).toEqual([]);
  expect(await node.start(launch)).toMatchObject({ phase: 'running', pid });
  await writeFile(join(data, 'stop'), '');
  expect((await sink.ended(id)).exit.exit_code).toBe(0);
  expect(Buffer.from(await node.read(id, 'stdout', 0, 100)).toString()).toBe('up\n');
});

test('a repeated start of a running session whose launch was lost keeps its files, even if it fails', async () => {
  const command = `echo done >"$SVC_STEP_OUTPUT"; ${UNTIL_STOP}`;
  const launch = launchOf(data, ['/bin/sh', '-c', command], { step_input: '{}', actor_token: 'secret' });
  const id = launch.session_id;
  const actor_files = await ActorFiles.open({ data_dir: data, run_as: null, env: {} });
  await actor_files.announce({ endpoint: 'http://127.0.0.1:1', server_name: null, ca: null });
  const { SVC_ACTOR_TOKEN_FILE: token = '' } = actor_files.environment(id);
  const read = (path: string) => files.readFile(path, 'utf8').catch(() => '');
  const kept = async () => [await read(join(data, 'steps', id, 'output')), await read(token)];
  const first = await open({ actor_files });
  await first.start(launch);
  await until(async () => (await kept())[0] === 'done\n');
  await first.close();
  await writeFile(inSession(id, 'launch.json'), '');

  const node = await open({ actor_files });
  const create = vi.spyOn(SessionFiles, 'create').mockImplementationOnce(() => {
    throw new Error('EIO');
  });
  onTestFinished(() => create.mockRestore());
  await expect(node.start(launch)).rejects.toThrow('EIO');
  expect(await kept()).toEqual(['done\n', 'secret\n']);
  const sink = new RecordingSink();
  await node.attach(sink);
  expect(await node.start(launch)).toMatchObject({ phase: 'running' });
  expect(await kept()).toEqual(['done\n', 'secret\n']);
  await writeFile(join(data, 'stop'), '');
  await sink.ended(id);
  expect(Buffer.from((await node.stepOutput(id, 100))!).toString()).toBe('done\n');
});

test('an empty session directory is filled by a start', async () => {
  const launch = launchOf(data, ['/bin/sh', '-c', 'cat "$SVC_STEP_INPUT" >"$SVC_STEP_OUTPUT"'], {
    step_input: '"in"',
  });
  const id = launch.session_id;
  await mkdir(inSession(id, '.'), { recursive: true });
  const node = await open();
  const sink = new RecordingSink();
  await node.attach(sink);
  await node.start(launch);
  await sink.ended(id);
  expect(Buffer.from((await node.stepOutput(id, 100))!).toString()).toBe('"in"');
});

test('a session that a newer version has started is not missing, and is reported after an upgrade', async () => {
  const launch = launchOf(data, ['/bin/sh', '-c', UNTIL_STOP]);
  const first = await open();
  await first.start(launch);
  await first.close();
  const id = launch.session_id;
  const path = inSession(id, 'launch.json');
  const current = await files.readFile(path, 'utf8');
  await writeFile(path, JSON.stringify({ version: SESSION_VERSION + 1 }));

  const node = await open();
  const sink = new RecordingSink();
  await node.attach(sink);
  expect([sink.sessions, sink.unreadable]).toEqual([[], [id]]);
  await expect(node.start(launch)).rejects.toMatchObject(UNREADABLE);
  await writeFile(path, current);
  await until(() => sink.eventsOf(id).length > 0);
  expect((await node.stop(id, 0)).survivors).toEqual([]);
  await sink.ended(id);
});

test('a session ends although its agent made its exit status unreadable', async () => {
  const launch = launchOf(data, ['/bin/sh', '-c', UNTIL_STOP]);
  const node = await open();
  const sink = new RecordingSink();
  await node.attach(sink);
  await node.start(launch);
  const path = inSession(launch.session_id, 'exit');
  await files.chmod(path, 0);
  const isShut = () => (fs.statSync(path).mode & 0o400) === 0;
  failToOpen(path, 'EACCES', isShut);
  await writeFile(join(data, 'stop'), '');
  await sink.ended(launch.session_id);
});

test('input to a session whose journal was deleted is refused', async () => {
  const launch = { ...launchOf(data, ['/bin/sh', '-c', UNTIL_STOP]), stdin: true };
  const node = await open();
  await node.start(launch);
  await rm(inSession(launch.session_id, 'stdin'));
  const input = node.input(launch.session_id, 0, Buffer.from('x'), false);
  await expect(input).rejects.toMatchObject({ code: 'agent_no_stdin' });
  expect((await node.stop(launch.session_id, 0)).survivors).toEqual([]);
});

test('input that the disk cannot store is refused for the moment', async () => {
  const launch = { ...launchOf(data, ['/bin/sh', '-c', UNTIL_STOP]), stdin: true };
  const id = launch.session_id;
  const node = await open();
  await node.start(launch);
  let full = true;
  failToOpen(inSession(id, 'stdin.eof'), 'ENOSPC', () => full);
  const input = () => node.input(id, 0, Buffer.from('x'), true);
  await expect(input()).rejects.toMatchObject({ kind: 'bad_gateway', code: 'input_not_stored' });
  full = false;
  expect(await input()).toBe(1);
  expect((await node.stop(id, 0)).survivors).toEqual([]);
});

test('a node starts although it cannot delete what sessions left', async () => {
  const gone = join(data, 'sessions/.ses_old.gone');
  await mkdir(join(gone, 'shut'), { recursive: true });
  const spy = vi.spyOn(files, 'rm').mockRejectedValueOnce(new Error('EACCES'));
  syncBuiltinESMExports();
  onTestFinished(() => {
    spy.mockRestore();
    syncBuiltinESMExports();
  });
  const sweep = vi.fn(async () => {
    throw new Error('EACCES');
  });
  await open({ actor_files: { sweep } as unknown as ActorFiles });
  expect(sweep).toHaveBeenCalled();
  await expect(access(gone)).rejects.toThrow('ENOENT');
});

test.runIf(cgroups)('a node that starts removes the cgroup of a forgotten session', async () => {
  const folder = join(cgroups!, `svc-${newId('ses')}`);
  await mkdir(folder);
  onTestFinished(() => rmdir(folder).catch(() => {}));
  const hour_ago = new Date(Date.now() - 3_600_000);
  await utimes(folder, hour_ago, hour_ago);
  await open();
  const isGone = () =>
    access(folder).then(
      () => false,
      () => true,
    );
  await until(isGone);
});

test('only some of the processes that are left behind are listed, and the others counted', async () => {
  const node = await open();
  const sink = new RecordingSink();
  await node.attach(sink);
  const script = 'exec >/dev/null 2>&1; for i in $(seq 60); do sleep 7 & done';
  const launch = launchOf(data, ['/bin/sh', '-c', script], { on_exit: 'keep' });
  await node.start(launch);
  const { leftovers } = await sink.ended(launch.session_id);
  expect(leftovers).toHaveLength(limits.leftovers_max);
  expect(leftovers.at(-1)?.command).toMatch(/ \(and 10 more processes\)$/);
});

test.each([5_000, 20_000])(
  'a node with a session of an earlier version that left %i processes behind can be reached',
  async (count) => {
    const launch = launchOf(data, ['/bin/true']);
    const { session_id } = launch;
    const first = await open();
    const sink = new RecordingSink();
    await first.attach(sink);
    await first.start(launch);
    const end = await sink.ended(session_id);
    await first.close();
    const leftovers = Array.from({ length: count }, (_, pid) => ({ pid, command: '\u4e2d'.repeat(195) }));
    const error = '\u4e2d'.repeat(2 * MIB);
    const bodies: SessionFact['body'][] = [
      { kind: 'started', pid: 1, started_at_ms: 1 },
      { kind: 'trouble', code: 'pump_restarted', error, details: { error } },
      { kind: 'ended', end: { ...end, leftovers } },
    ];
    const facts = bodies.map((body, n) => JSON.stringify({ session_id, number: n + 1, at_ms: 1, body }));
    await writeFile(inSession(session_id, 'facts'), facts.join('\n'));

    const node = await open();
    const server = await openTestNodeServer(node);
    const plane = remoteNode(() => server.port);
    onTestFinished(async () => {
      await plane.detach();
      await server.close();
    });
    const received = new RecordingSink();
    await plane.attach(received);
    expect(received.eventsOf(session_id).map(({ number }) => number)).toEqual([1, 2, 3]);
    const listed = (await received.ended(session_id)).leftovers;
    expect(listed).toHaveLength(limits.leftovers_max);
    expect(listed.at(-1)?.command).toContain(` (and ${count - limits.leftovers_max} more processes)`);
    for (const { command } of listed)
      expect(Buffer.byteLength(command)).toBeLessThanOrEqual(limits.leftover_command_bytes_max);
  },
);
