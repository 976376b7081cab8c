import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { removeKnown } from './files.ts';
import { MIB } from './limits.ts';

let parent: string;
let folder: string;
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'svc-files-'));
  folder = join(parent, 'folder');
  await mkdir(folder);
});
afterEach(() => rm(parent, { recursive: true }));

test('removes a folder that contains only known files', async () => {
  await writeFile(join(folder, 'a'), 'a');
  // A hole needs no time to delete.
  await truncate(join(folder, 'a'), 100 * MIB);
  expect(removeKnown(folder, ['a', 'b'])).toBe(true);
  expect(existsSync(folder)).toBe(false);
  expect(removeKnown(folder, ['a', 'b'])).toBe(true);
});

test('leaves other files, large files and folders, and follows no links', async () => {
  const other = join(parent, 'other');
  await writeFile(other, 'kept');
  await symlink(other, join(folder, 'link'));
  await mkdir(join(folder, 'inner'));
  await writeFile(join(folder, 'unknown'), '');
  await writeFile(join(folder, 'large'), Buffer.alloc(2 * MIB, 'x'));
  expect(removeKnown(folder, ['link', 'inner', 'large'])).toBe(false);
  expect((await readdir(folder)).sort()).toEqual(['inner', 'large', 'unknown']);
  expect(await readFile(other, 'utf8')).toBe('kept');
});
