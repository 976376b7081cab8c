import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { findTools, pathFolders, systemTool } from './tools.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-tools-'));
  vi.stubEnv('PATH', `${folder}:/usr/bin:/bin`);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});

async function plant(name: string): Promise<void> {
  await writeFile(join(folder, name), '#!/bin/sh\n');
  await chmod(join(folder, name), 0o755);
}

test('prefers the system’s programs to those of PATH', async () => {
  for (const name of ['rm', 'test', 'only-here']) await plant(name);
  expect(systemTool('test')).toMatch(/^\/(usr\/)?bin\/test$/);
  expect(findTools().rm).toMatch(/^\/(usr\/)?bin\/rm$/);
  expect(systemTool('only-here')).toBe(join(folder, 'only-here'));
});

test('returns the usual path of a missing program', () => {
  expect(systemTool('svc-no-such-program')).toBe('/usr/bin/svc-no-such-program');
});

test('returns only the absolute folders of a PATH', () => {
  expect(pathFolders('/usr/bin::relative:/opt/bin')).toEqual(['/usr/bin', '/opt/bin']);
  expect(pathFolders(undefined)).toEqual([]);
});
