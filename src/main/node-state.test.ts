import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { NodeState } from './node-state.ts';

/** How long the next writes take, in milliseconds. */
const delays = vi.hoisted((): number[] => []);
vi.mock('../base/files.ts', async (original) => {
  const files = await original<typeof import('../base/files.ts')>();
  const writeFileAtomic = async (path: string, data: string) => {
    await sleep(delays.shift() ?? 0);
    await files.writeFileAtomic(path, data);
  };
  return { ...files, writeFileAtomic };
});

test('a later position stays in the file, even if an earlier one takes longer to store', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-node-state-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, 'node.json');
  const state = await NodeState.open(path);
  delays.push(50, 0);
  const position = { plane_id: 'pln_a', incarnation: 1 };
  await Promise.all([1, 2].map((epoch) => state.set({ ...position, epoch })));
  expect(state.get()).toEqual({ ...position, epoch: 2 });
  expect(JSON.parse(await readFile(path, 'utf8'))).toMatchObject({ latest: { epoch: 2 } });
});
