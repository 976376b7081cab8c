import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../base/log.ts';
import { Launcher } from './launcher-client.ts';
import { SessionFiles } from './session-files.ts';
import { Spools } from './spools.ts';
import { findTools } from './tools.ts';

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

test('bytes come from where they are asked for, and nothing at the end', async () => {
  await writeFile(join(folder, 'out'), 'hello');
  const files = new SessionFiles(folder);
  expect(await outcome(spools.read(files, 'stdout', 1, 3))).toBe('ell');
  expect(await outcome(spools.read(files, 'stdout', 5, 3))).toBe('');
  expect(await outcome(spools.read(files, 'stdout', 6, 3))).toBe('output_lost');
});

test('a few bytes go straight into what was given for them', async () => {
  await writeFile(join(folder, 'out'), 'hello');
  const into = Buffer.alloc(3);
  const bytes = await spools.read(new SessionFiles(folder), 'stdout', 2, 3, into);
  expect(bytes.buffer).toBe(into.buffer);
  expect(into.toString()).toBe('llo');
});

test('a spool that is gone has lost its bytes; one that cannot be opened now has not', async () => {
  expect(await outcome(spools.read(new SessionFiles(folder), 'stdout', 1, 3))).toBe('output_lost');
  // Stands for every failure that says nothing about the bytes, such as having no descriptors left.
  const unreachable = new SessionFiles(join(folder, 'x'.repeat(300)));
  expect(await outcome(spools.read(unreachable, 'stdout', 1, 3))).toBe('ENAMETOOLONG');
});
