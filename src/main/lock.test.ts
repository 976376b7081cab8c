import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { mountedType, prepareDataDir } from './data-dir.ts';
import { holderOf, isAlive, lockDataDir } from './lock.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'svc-lock-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const since = '2026-01-02T03:04:05.678Z';

test('a second plane on a data directory learns the process that uses it, and its URL', () => {
  const lock = lockDataDir(dir, since);
  try {
    expect(() => lockDataDir(dir, since)).toThrow(`data directory ${dir} is in use by pid ${process.pid} on`);
    lock.listening('http://127.0.0.1:4711');
    expect(() => lockDataDir(dir, since)).toThrow(
      /since 2026-01-02.*, listening on http:\/\/127\.0\.0\.1:4711$/,
    );
    expect(holderOf(dir)).toMatchObject({ pid: process.pid, url: 'http://127.0.0.1:4711' });
    lock.certified('PEM');
    expect(holderOf(dir)).toMatchObject({ url: 'http://127.0.0.1:4711', certificate: 'PEM' });
    expect(isAlive(holderOf(dir)!)).toBe(true);
    expect(statSync(join(dir, 'plane.json')).mode & 0o777).toBe(0o600);
  } finally {
    lock.release();
  }
  expect(holderOf(dir)).toBeNull();
  expect(existsSync(join(dir, 'plane.json'))).toBe(false);
  lockDataDir(dir, since).release();
});

test('killing the process releases the lock, whatever its file contains', async () => {
  const program = `import { lockDataDir } from ${JSON.stringify(join(import.meta.dirname, 'lock.ts'))};
    lockDataDir(${JSON.stringify(dir)}, 'then'); console.log('held'); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module-typescript', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  try {
    await new Promise((resolve) => child.stdout.once('data', resolve));
    expect(holderOf(dir)).toMatchObject({ pid: child.pid, since: 'then' });
    expect(() => lockDataDir(dir, since)).toThrow(`pid ${child.pid}`);
  } finally {
    child.kill('SIGKILL');
    await ended;
  }
  expect(existsSync(join(dir, 'plane.json'))).toBe(true);
  expect(holderOf(dir)).toBeNull();
  const lock = lockDataDir(dir, since);
  expect(holderOf(dir)).toMatchObject({ pid: process.pid });
  lock.release();
});

test('a reused pid is not the holder', () => {
  expect(isAlive({ pid: process.pid, host: 'h', since, url: null, certificate: null, start: '1' })).toBe(
    process.platform !== 'linux',
  );
});

test('makes a data directory private that others can enter', async () => {
  chmodSync(dir, 0o755);
  expect(await prepareDataDir(dir)).toBe(dir);
  expect(statSync(dir).mode & 0o777).toBe(0o700);
  const made = await prepareDataDir(join(dir, 'a/b'));
  expect(statSync(made).mode & 0o777).toBe(0o700);
});

test('rejects a data directory that is a file', async () => {
  writeFileSync(join(dir, 'file'), '');
  await expect(prepareDataDir(join(dir, 'file'))).rejects.toThrow(/^data_dir .* cannot be created: EEXIST$/);
});

test('the innermost mount determines the file system of a directory', () => {
  const table = [
    '22 1 8:1 / / rw - ext4 /dev/sda1 rw',
    '23 22 0:40 / /home rw,relatime shared:1 - nfs4 server:/home rw',
    '24 23 0:41 / /home/a\\040b rw - fuse.sshfs x rw',
    '25 22 0:42 / /homework rw - xfs /dev/sdb rw',
  ].join('\n');
  expect(mountedType(table, '/var')).toBe('ext4');
  expect(mountedType(table, '/home/ana/svc')).toBe('nfs4');
  expect(mountedType(table, '/home/a b/svc')).toBe('fuse.sshfs');
  expect(mountedType(table, '/homework/svc')).toBe('xfs');
});
