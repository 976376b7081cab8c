import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, stat, statfs, symlink, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MIB } from '../../base/limits.ts';
import { hasProc, readStat } from '../../base/proc.ts';
import { openTestNode } from '../../testing/local-node.ts';
import { launchOf, RecordingSink, readAll, until } from '../../testing/node-suite.ts';
import type { LocalNode } from '../node.ts';
import { SessionFiles } from './session-files.ts';

/** The tests mount a small disk, which needs root. */
function mountSmallDisk(folder: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', folder], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

describe('a disk that fills up', { timeout: 120_000 }, () => {
  let folder: string;
  let data: string;
  let mounted: boolean;
  let node: LocalNode;
  let seen: RecordingSink;

  const open = async () => {
    node = await openTestNode(data, {
      sweep_ms: 50,
      helper_check_ms: 100,
      disk: {
        no_start_bytes: 16 * MIB,
        no_start_share: 1,
        pause_bytes: 12 * MIB,
        pause_share: 1,
        guard_far_s: 0.05,
        guard_near_s: 0.02,
      },
    });
    seen = new RecordingSink();
    await node.attach(seen);
  };

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-disk-'));
    data = join(folder, 'data');
    await mkdir(data);
    mounted = mountSmallDisk(data);
    await open();
  });

  afterEach(async () => {
    for (const { session_id } of seen.sessions) if (mounted) await node.stop(session_id, 0);
    await node.close();
    if (mounted) execFileSync('umount', ['-l', data]);
    await rm(folder, { recursive: true, force: true });
  }, 120_000);

  const codes = (id: string) =>
    seen.eventsOf(id).flatMap(({ body }) => (body.kind === 'trouble' ? [body.code as string] : []));
  const fill = async (leave_bytes: number) => {
    const { bavail, bsize } = await statfs(data);
    await writeFile(join(data, 'ballast'), Buffer.alloc(Math.max(0, bavail * bsize - leave_bytes)));
  };

  it.each(['alive', 'dead'])('pauses output without losing a line, with the node %s', async (node_is) => {
    // Without the right to mount, this would be the machine's own disk, which the test must not fill.
    if (!mounted || !hasProc) return expect(process.getuid?.() === 0 && hasProc).toBe(false);
    const workdir = join(folder, 'work');
    await mkdir(workdir);
    // Ten thousand lines are more than a FIFO can hold, so the agent blocks.
    const loop = `while [ $i -lt $n ]; do i=$((i+1)); echo "line $i ${'x'.repeat(200)}"; done`;
    const wait = `until [ -e ${workdir}/go ]; do sleep 0.02; done`;
    const text = `i=0; n=1000; ${loop}; ${wait}; n=10000; ${loop}; echo $i >${workdir}/through`;
    const launch = launchOf(workdir, ['/bin/sh', '-c', text]);
    await node.start(launch);
    const id = launch.session_id;
    const files = new SessionFiles(join(data, 'sessions', id));
    const handle = await until(() => files.readHandle());
    if (node_is === 'dead') await node.close();
    await fill(8 * MIB);
    await until(() => readStat(handle.pumps.stdout.pid)?.state === 'T');
    if (node_is === 'dead') await open();
    await until(() => codes(id).includes('output_paused'));
    await writeFile(join(workdir, 'go'), '');
    // While output is paused, the spool does not grow, and the agent blocks.
    const held = await files.size('out');
    await expect(node.start(launchOf(workdir, ['true']))).rejects.toThrow('not enough disk space');
    expect(await files.size('out')).toBe(held);
    await expect(stat(join(workdir, 'through'))).rejects.toThrow('ENOENT');
    if (node_is === 'dead') await node.close();
    await unlink(join(data, 'ballast'));
    await until(async () => (await readFile(join(workdir, 'through'), 'utf8').catch(() => '')) === '10000\n');
    if (node_is === 'dead') await open();
    const end = await seen.ended(id);
    // If both happen while the node is dead, the end may be reported first, and nothing follows it.
    if (node_is === 'alive') expect(codes(id)).toEqual(['output_paused', 'output_resumed']);
    else expect(['output_paused', 'output_resumed']).toEqual(expect.arrayContaining(codes(id)));
    expect(end.exit.exit_code).toBe(0);
    const lines = (await readAll(node, id, 'stdout')).toString().split('\n');
    expect(lines.pop()).toBe('');
    expect(lines.map((line) => Number(line.split(' ')[1]))).toEqual(
      Array.from({ length: 10_000 }, (_, i) => i + 1),
    );
  });

  it('continues the output even if the disk had no space for the file that records the pause', async () => {
    if (!mounted || !hasProc) return expect(process.getuid?.() === 0 && hasProc).toBe(false);
    const launch = launchOf(folder, ['/bin/sh', '-c', 'until [ -e go ]; do sleep 0.02; done; echo through']);
    await node.start(launch);
    const id = launch.session_id;
    const files = new SessionFiles(join(data, 'sessions', id));
    const handle = await until(() => files.readHandle());
    const pumpState = () => readStat(handle.pumps.stdout.pid)?.state;
    // The file cannot be created through a link to a folder that does not exist.
    await symlink('missing/paused', join(data, 'sessions/.paused'));
    // A node that runs would continue the pumps itself.
    await node.close();
    await fill(8 * MIB);
    await until(() => pumpState() === 'T');
    await unlink(join(data, 'ballast'));
    await until(() => pumpState() === 'S');
    await writeFile(join(folder, 'go'), '');
    await open();
    expect((await seen.ended(id)).exit.exit_code).toBe(0);
    expect((await readAll(node, id, 'stdout')).toString()).toBe('through\n');
  });
});
