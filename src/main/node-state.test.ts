import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { silentLog } from '../base/log.ts';
import { limits } from './limits.ts';
import { NodeState } from './node-state.ts';

const { delays, disk } = vi.hoisted(() => ({
  /** How long the next writes take, in milliseconds. */
  delays: [] as number[],
  /** With a code, nothing can be written. */
  disk: { error: null as string | null },
}));
vi.mock('../base/files.ts', async (original) => {
  const files = await original<typeof import('../base/files.ts')>();
  const writeFileAtomic = async (path: string, data: string) => {
    await sleep(delays.shift() ?? 0);
    if (disk.error) throw Object.assign(new Error(disk.error), { code: disk.error });
    await files.writeFileAtomic(path, data);
  };
  return { ...files, writeFileAtomic };
});

const position = { plane_id: 'pln_a', incarnation: 1 };
let path: string;
let state: NodeState;

beforeEach(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-node-state-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  path = join(folder, 'node.json');
  disk.error = null;
  state = await NodeState.open(path, silentLog);
});

const stored = async () => JSON.parse(await readFile(path, 'utf8')).latest;

test('a later position stays in the file, even if an earlier one takes longer to store', async () => {
  delays.push(50, 0);
  await Promise.all([1, 2].map((epoch) => state.set({ ...position, epoch })));
  expect(state.get()).toEqual({ ...position, epoch: 2 });
  expect(await stored()).toMatchObject({ epoch: 2 });
});

test.each(['ENOSPC', 'EIO'])(
  'a position that the disk cannot store (%s) counts, and is stored later',
  async (code) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    await state.set({ ...position, epoch: 1 });
    disk.error = code;
    for (const epoch of [2, 3]) await state.set({ ...position, epoch });
    expect(state.get()).toEqual({ ...position, epoch: 3 });
    await vi.advanceTimersByTimeAsync(limits.node_state_retry_ms);
    expect(await stored()).toMatchObject({ epoch: 1 });
    disk.error = null;
    await vi.advanceTimersByTimeAsync(limits.node_state_retry_ms);
    await state.close();
    expect(await stored()).toMatchObject({ epoch: 3 });
  },
);

test('another plane starts without the position of the one before, and the same plane keeps its own', async () => {
  await state.set({ ...position, epoch: 1 });
  await state.forgetOthers('pln_a');
  expect([state.get(), await stored()]).toMatchObject([{ epoch: 1 }, { epoch: 1 }]);
  disk.error = 'ENOSPC';
  await expect(state.forgetOthers('pln_b')).rejects.toThrow('ENOSPC');
  disk.error = null;
  await state.forgetOthers('pln_b');
  expect([state.get(), await stored()]).toEqual([null, null]);
});

test('a closed state writes nothing any more', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  disk.error = 'ENOSPC';
  await state.set({ ...position, epoch: 1 });
  await state.close();
  disk.error = null;
  await vi.advanceTimersByTimeAsync(limits.node_state_retry_ms);
  expect(await stored()).toBeNull();
});

test('an error that is not about the disk rejects the position', async () => {
  disk.error = 'ENOENT';
  await expect(state.set({ ...position, epoch: 1 })).rejects.toThrow('ENOENT');
});
