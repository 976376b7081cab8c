import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { Launcher } from '../processes/launcher-client.ts';
import { findTools } from '../processes/tools.ts';
import { SessionFiles } from './session-files.ts';
import { Spools } from './spools.ts';

let folder: string;
let spools: Spools;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-spools-'));
  spools = new Spools(new Launcher(), findTools(), 0, silentLog);
});
afterEach(async () => {
  await spools.close();
  await rm(folder, { recursive: true, force: true });
});

const outcome = (read: Promise<Uint8Array>) =>
  read.then(
    (bytes) => bytes.toString(),
    (error: { code?: string }) => error.code,
  );

test('reads bytes from an offset, and nothing at the end', async () => {
  await writeFile(join(folder, 'out'), 'hello');
  const files = new SessionFiles(folder);
  expect(await outcome(spools.read(files, 'stdout', 1, 3))).toBe('ell');
  expect(await outcome(spools.read(files, 'stdout', 5, 3))).toBe('');
  expect(await outcome(spools.read(files, 'stdout', 6, 3))).toBe('output_lost');
});

test('reads a few bytes directly into the given buffer', async () => {
  await writeFile(join(folder, 'out'), 'hello');
  const into = Buffer.alloc(3);
  const bytes = await spools.read(new SessionFiles(folder), 'stdout', 2, 3, into);
  expect(bytes.buffer).toBe(into.buffer);
  expect(into.toString()).toBe('llo');
});

test('reports output_lost for a missing spool, but not for one that cannot be opened now', async () => {
  expect(await outcome(spools.read(new SessionFiles(folder), 'stdout', 1, 3))).toBe('output_lost');
  // This failure does not mean that the bytes are lost. Running out of descriptors is another example.
  const unreachable = new SessionFiles(join(folder, 'x'.repeat(300)));
  expect(await outcome(spools.read(unreachable, 'stdout', 1, 3))).toBe('ENAMETOOLONG');
});
