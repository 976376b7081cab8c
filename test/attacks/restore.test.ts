/** An operator restores an archive that an attacker has prepared. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { TestPlane } from '../../src/testing/plane.ts';

let plane: TestPlane;
/** A valid backup, unpacked. */
let sound: string;
let content: string;
let outside: string;

beforeAll(async () => {
  plane = await TestPlane.open();
  const file = join(plane.folder, 'sound.tar');
  expect((await plane.cli(['backup', file])).code).toBe(0);
  await plane.kill('SIGTERM');
  sound = join(plane.folder, 'sound');
  mkdirSync(sound);
  execFileSync('tar', ['-xf', file, '-C', sound]);
});
afterAll(() => plane.close());

beforeEach(() => {
  content = mkdtempSync(join(plane.folder, 'content-'));
  outside = mkdtempSync(join(plane.folder, 'outside-'));
  writeFileSync(join(outside, 'file'), 'outside');
  for (const name of readdirSync(sound)) copyFileSync(join(sound, name), join(content, name));
});
afterEach(() => {
  for (const folder of [content, outside]) rmSync(folder, { recursive: true, force: true });
});

async function restore(...options: string[]): Promise<{ code: number | null; stderr: string }> {
  const file = join(plane.folder, 'crafted.tar');
  rmSync(file, { force: true });
  execFileSync('tar', ['-c', '-f', file, '-C', content, ...options, '.']);
  return plane.cli(['restore', file]);
}

const move = (name: string) => {
  renameSync(join(content, name), join(outside, name));
  return join(outside, name);
};

test.each<[string, () => void, string]>([
  [
    'a link in place of the database',
    () => symlinkSync(move('svc.db'), join(content, 'svc.db')),
    'svc.db is not a regular file',
  ],
  [
    'a link in place of the log',
    () => symlinkSync(outside, join(content, 'log')),
    'log is not a regular file',
  ],
  [
    'a link in place of the manifest',
    () => symlinkSync(move('svc-backup.json'), join(content, 'svc-backup.json')),
    'svc-backup.json is not a regular file',
  ],
  [
    'a link deep in the log',
    () => {
      mkdirSync(join(content, 'log/1'), { recursive: true });
      symlinkSync(join(outside, 'file'), join(content, 'log/1/a.seg'));
    },
    'log/1/a.seg is not a regular file',
  ],
  [
    'a hard link between two files',
    () => linkSync(join(content, 'svc.db'), join(content, 'search.db')),
    'is not a regular file',
  ],
  [
    'a FIFO in the log',
    () => {
      mkdirSync(join(content, 'log'));
      execFileSync('mkfifo', [join(content, 'log/pipe')]);
    },
    'log/pipe is not a regular file',
  ],
  ['a key', () => writeFileSync(join(content, 'secret.key'), 'known'), 'unexpected file secret.key'],
  ['an index', () => writeFileSync(join(content, 'search.db'), 'x'), 'unexpected file search.db'],
  [
    'a file in the log that the database does not name',
    () => {
      mkdirSync(join(content, 'log/1'), { recursive: true });
      writeFileSync(join(content, 'log/1/extra'), 'x');
    },
    'unexpected file log/1/extra',
  ],
])('rejects an archive with %s, and changes nothing', async (_, craft, reason) => {
  craft();
  const before = readdirSync(plane.data_dir).sort();
  const { code, stderr } = await restore();
  expect(stderr).toContain(`is not a backup of svc: `);
  expect(stderr).toContain(reason);
  expect(code).not.toBe(0);
  expect(readdirSync(plane.data_dir).sort()).toEqual(before);
  expect(readFileSync(join(outside, 'file'), 'utf8')).toBe('outside');
});

test.each([
  ['..', 's,^\\./secret,../../planted,'],
  ['an absolute path', 's,^\\./secret,/tmp/planted-by-svc-test,'],
])('rejects a member whose name leads outside of the archive by %s', async (_, transform) => {
  writeFileSync(join(content, 'secret'), 'planted');
  const before = readdirSync(plane.data_dir).sort();
  const { code, stderr } = await restore('-P', `--transform=${transform}`);
  expect(stderr).toMatch(/cannot be unpacked|is not a backup of svc: unexpected file/);
  expect(code).not.toBe(0);
  expect(readdirSync(plane.data_dir).sort()).toEqual(before);
  expect(readdirSync(plane.folder)).not.toContain('planted');
});

test('restores a valid archive with fixed file modes, whatever the modes in the archive', async () => {
  for (const name of readdirSync(content)) chmodSync(join(content, name), 0o4777);
  const { code, stderr } = await restore();
  expect([code, stderr]).toEqual([0, expect.anything()]);
  const mode = execFileSync('stat', ['-c', '%a', join(plane.data_dir, 'svc.db')])
    .toString()
    .trim();
  expect(mode).toBe('600');
});
