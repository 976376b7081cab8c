import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { commandLine, hasProc, readChildren, readStat } from '../../base/proc.ts';
import { findCgroupParent, makeCgroup, removeCgroup } from './cgroup.ts';
import { sweepTrees, type TreeRequest } from './process-tree.ts';

const request = (session_id: string): TreeRequest => ({
  ...{ session_id, pipes: null, cgroup: null, main: null, init: null, wrapper: null, agents_uid: null },
  ...{ helpers: [], known: [], exit_uptime_s: null, signal: null, terminated: [] },
});

test.runIf(hasProc)('finds a process that got the session id with its last exec', async () => {
  const script = 'echo; read line; SVC_SESSION_ID=ses_second exec /bin/sh -c "echo; read line"';
  const child = spawn('/bin/sh', ['-c', script], {
    env: { SVC_SESSION_ID: 'ses_first' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const pids = async () =>
    (await sweepTrees([request('ses_first'), request('ses_second')])).map(({ members }) =>
      members.map(({ pid }) => pid),
    );
  try {
    await once(child.stdout, 'data');
    expect(await pids()).toEqual([[child.pid], []]);
    expect(await pids()).toEqual([[child.pid], []]);
    child.stdin.write('\n');
    await once(child.stdout, 'data');
    expect(await pids()).toEqual([[], [child.pid]]);
  } finally {
    child.kill('SIGKILL');
  }
});

const cgroups = await findCgroupParent();
const privileged = hasProc && process.getuid?.() === 0;
const NOBODY = 65_534;

/** A folder of FIFOs with `out` only. */
async function makePipes(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-tree-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const pipes = join(folder, 'pipes');
  execFileSync('/bin/sh', [
    '-c',
    'chmod 755 "$2"; mkdir "$1" && mkfifo -m 666 "$1/out"',
    'sh',
    pipes,
    folder,
  ]);
  return pipes;
}

/** A process that was handed the FIFO of a session, and its id. It ignores SIGTERM. */
async function holder(pipes: string, uid?: number) {
  const script = 'exec 3<>"$1/out"; trap "" TERM; echo; read line';
  const child = spawn('/bin/sh', ['-c', script, 'sh', pipes], {
    env: { SVC_SESSION_ID: 'ses_held' },
    stdio: ['pipe', 'pipe', 'inherit'],
    ...(uid === undefined ? {} : { uid }),
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return readStat(child.pid!)!;
}

test.runIf(privileged)(
  'kills a process that holds a FIFO only if it belongs to the user of the agents',
  async () => {
    const pipes = await makePipes();
    const [of_root, of_agents] = [await holder(pipes), await holder(pipes, NOBODY)];
    const tree = { ...request('ses_held'), pipes, agents_uid: NOBODY };
    const found = async () => (await sweepTrees([tree]))[0]!.members.map(({ pid }) => pid);
    expect(await found()).toEqual([of_agents.pid]);
    await sweepTrees([{ ...tree, signal: 'SIGKILL' }]);
    expect(readStat(of_root.pid)?.state).toBe('S');
    await expect.poll(() => readStat(of_agents.pid)?.is_dead ?? true).toBe(true);
  },
);

test.runIf(privileged)(
  'finds processes of the main process’s user after agents.run_as has changed',
  async () => {
    const pipes = await makePipes();
    const [main, escaped] = [await holder(pipes, NOBODY), await holder(pipes, NOBODY)];
    const tree = { ...request('ses_held'), pipes, main, agents_uid: 1 };
    const [answer] = await sweepTrees([tree]);
    expect(answer!.members.map(({ pid }) => pid).sort()).toEqual([main.pid, escaped.pid].sort());
  },
);

test.runIf(hasProc)('a helper of one session is never part of another, whatever it holds', async () => {
  const pipes = await makePipes();
  const [helper, escaped] = [await holder(pipes), await holder(pipes)];
  const tree = { ...request('ses_held'), pipes };
  const pids = async (session_id: string) =>
    (await sweepTrees([tree], [{ session_id, helpers: [helper], init: null }]))[0]!.members.map(
      ({ pid }) => pid,
    );
  expect(await pids('ses_other')).toEqual([escaped.pid]);
  // A wrapper can die before its handle is complete. Then its session ends with its helpers.
  expect((await pids('ses_held')).sort()).toEqual([helper.pid, escaped.pid].sort());
});

test.runIf(hasProc)('no process from which the service descends is ever found', async () => {
  const pipes = await makePipes();
  const module = fileURLToPath(new URL('./process-tree.ts', import.meta.url));
  const code = `
    const { sweepTrees } = await import(process.argv[1]);
    console.log(JSON.stringify((await sweepTrees([JSON.parse(process.argv[2])]))[0].members));
  `;
  const node = [process.execPath, '--input-type=module', '-e', code, module];
  const tree = JSON.stringify({ ...request('ses_held'), pipes });
  // The descriptor is open in three shells; the scan runs below them.
  const nested = 'exec 3<>"$0/out"; /bin/sh -c \'/bin/sh -c "\\"\\$@\\"; true" sh "$@"; true\' sh "$@"; true';
  const output = execFileSync('/bin/sh', ['-c', nested, pipes, ...node, tree], { encoding: 'utf8' });
  expect(JSON.parse(output)).toEqual([]);
});

test.runIf(cgroups)('evidence from a process in another session’s cgroup does not count', async () => {
  const pipes = await makePipes();
  const [escaped, foreign] = [await holder(pipes), await holder(pipes)];
  const cgroup = (await makeCgroup(cgroups, 'ses_foreign'))!;
  onTestFinished(async () => {
    await writeFile(join(cgroups!, 'cgroup.procs'), String(foreign.pid)).catch(() => {});
    await removeCgroup(cgroup);
  });
  await writeFile(join(cgroup, 'cgroup.procs'), String(foreign.pid));
  const pids = async (tree: TreeRequest) => (await sweepTrees([tree]))[0]!.members.map(({ pid }) => pid);
  expect(await pids({ ...request('ses_held'), pipes })).toEqual([escaped.pid]);
  expect(await pids({ ...request('ses_foreign'), cgroup })).toEqual([foreign.pid]);
});

test.runIf(hasProc)('evidence from a process below another session’s init does not count', async () => {
  const pipes = await makePipes();
  const script = 'SVC_SESSION_ID=ses_held /bin/sh -c "echo; read line; true"; true';
  const init = spawn('/bin/sh', ['-c', script], { env: {}, stdio: ['pipe', 'pipe', 'inherit'] });
  await once(init.stdout, 'data');
  const [child] = readChildren(init.pid!);
  onTestFinished(() => {
    init.kill('SIGKILL');
    process.kill(child!.pid, 'SIGKILL');
  });
  const escaped = await holder(pipes);
  const pids = async (session_id: string) =>
    (
      await sweepTrees([request('ses_held')], [{ session_id, helpers: [], init: readStat(init.pid!) }])
    )[0]!.members
      .map(({ pid }) => pid)
      .sort();
  expect(await pids('ses_other')).toEqual([escaped.pid]);
  expect(await pids('ses_held')).toEqual([escaped.pid, child!.pid].sort());
});

test.runIf(hasProc)('in a pid namespace, evidence from outside does not count', async () => {
  const pipes = await makePipes();
  const [init, outside] = [await holder(pipes), await holder(pipes)];
  const pids = async (tree: TreeRequest) => (await sweepTrees([tree]))[0]!.members.map(({ pid }) => pid);
  const tree = { ...request('ses_held'), pipes };
  expect(await pids({ ...tree, init })).toEqual([]);
  expect((await pids(tree)).sort()).toEqual([init.pid, outside.pid].sort());
});

/** Gives itself an environment and a command line of 4 TiB, most of it not in memory. */
const ENDLESS = `
  use POSIX; use Config;
  my $size = 4 << 40;
  my $at = syscall(${process.arch === 'arm64' ? 222 : 9}, 0, $size, 1, 0x4022, -1, 0);
  open(my $file, "<", "/proc/self/stat"); my $text = <$file>; $text =~ s/^.*\\) //;
  my @f = (0, 0, 0, split / /, $text);
  my $brk = syscall(${process.arch === 'arm64' ? 214 : 12}, 0);
  my $map = pack("Q12 L l", @f[26, 27, 45, 46, 47], $brk, $f[28], $at, $at + $size, $at, $at + $size, 0, 0, -1);
  $! = 0; syscall(${process.arch === 'arm64' ? 167 : 157}, 35, 14, $map, length $map, 0);
  $| = 1; print "$!\\n"; sleep 60`;

test.runIf(hasProc)(
  'a process with an endless environment costs a scan neither memory nor time',
  async () => {
    const child = spawn('perl', ['-e', ENDLESS], { env: {}, stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    const [printed] = await once(child.stdout, 'data');
    expect(String(printed)).toBe('\n');
    expect(commandLine(readStat(child.pid!)!)).toBe('perl');
    const escaped = await holder(await makePipes());
    const begun = performance.now();
    const [answer] = await sweepTrees([request('ses_held')]);
    expect(answer!.members.map(({ pid }) => pid)).toEqual([escaped.pid]);
    expect(performance.now() - begun).toBeLessThan(5_000);
  },
);

test.runIf(hasProc)('processes with very many descriptors do not keep a scan from others', async () => {
  const pipes = await makePipes();
  // All share one table of descriptors, as the processes of an attacker can.
  const script = `
    open(my $null, "<", "/dev/null"); my @all = $null;
    for (1 .. 900) { open(my $more, "<&", $null) or last; push @all, $more }
    for (1 .. 150) { fork or do { sleep 60; exit } }
    $| = 1; print "up\\n"; sleep 60`;
  const many = spawn('perl', ['-e', script], { detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void process.kill(-many.pid!, 'SIGKILL'));
  await once(many.stdout, 'data');
  const escaped = await holder(pipes);
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  const [answer] = await sweepTrees([{ ...request('ses_none'), pipes }]).finally(() => clearInterval(timer));
  expect(answer!.members.map(({ pid }) => pid)).toEqual([escaped.pid]);
  expect(turns).toBeGreaterThan(2);
});
