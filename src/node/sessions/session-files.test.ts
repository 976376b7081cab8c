import { execFileSync } from 'node:child_process';
import fs, { chmodSync, closeSync, constants, openSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { SessionFact } from '../../core/node.ts';
import { SessionFiles } from './session-files.ts';

let files: SessionFiles;

beforeEach(async () => {
  files = new SessionFiles(await mkdtemp(join(tmpdir(), 'svc-session-files-')));
});

afterEach(() => rm(files.dir, { recursive: true }));

const started: SessionFact = {
  session_id: 'ses_1',
  number: 1,
  at_ms: 1,
  body: { kind: 'started', pid: 1, started_at_ms: 1 },
};

describe('a FIFO in place of a file', () => {
  beforeEach(() => {
    for (const name of ['facts', 'stdin.eof', 'out']) execFileSync('mkfifo', [files.path(name)]);
  });

  it('makes writing fail instead of blocking', async () => {
    await expect(files.appendFact(started)).rejects.toMatchObject({ code: 'ENXIO' });
    expect(() => files.mark('stdin.eof')).toThrow(/ENXIO/);
  });

  it('counts as missing when it is read', () => {
    expect(files.readFacts()).toEqual([]);
    expect(files.readTail('out', 10)).toBe('');
  });
});

it('restores permissions that an agent of the same user has taken away', async () => {
  await mkdir(files.path('pipes'));
  execFileSync('mkfifo', [files.path('pipes/alive')]);
  await files.appendFact(started);
  await writeFile(files.path('out'), 'output');
  // For root, permissions do not matter.
  const is_root = process.geteuid?.() === 0;
  if (is_root) execFileSync('chown', ['-R', '65534', files.dir]);
  execFileSync('chmod', ['-R', '000', files.dir]);
  if (is_root) process.seteuid?.(65_534);
  try {
    expect(files.isAliveHeld()).toBe(false);
    expect(files.readFacts()).toEqual([started]);
    await files.appendFact({ ...started, number: 2 });
    expect(files.readTail('out', 3)).toBe('put');
    chmodSync(files.dir, 0);
    expect(files.claim()).toBe(true);
  } finally {
    if (is_root) process.seteuid?.(0);
  }
});

it('does not restore permissions after other errors', () => {
  expect(() => files.restore('facts', Object.assign(new Error(), { code: 'EIO' }))).toThrow();
});

it('appends facts and reads them in order', async () => {
  await files.appendFact(started);
  await files.appendFact({ ...started, number: 2 });
  expect(files.readFacts()).toEqual([started, { ...started, number: 2 }]);
  expect(await readFile(files.path('facts'), 'utf8')).toContain('"number":2');
});

it('flushes every fact to disk before it is reported', async () => {
  const fsync = vi.spyOn(fs, 'fsync');
  syncBuiltinESMExports();
  // The module that is loaded already has the other function.
  vi.resetModules();
  try {
    const observed = new (await import('./session-files.ts')).SessionFiles(files.dir);
    await observed.appendFact(started);
    await observed.appendFact({ ...started, number: 2, body: { kind: 'unknown' } });
    expect(fsync).toHaveBeenCalledTimes(2);
  } finally {
    fsync.mockRestore();
    syncBuiltinESMExports();
    vi.resetModules();
  }
});

it('creates a marker file that may already exist', () => {
  files.mark('ended');
  files.mark('ended');
  expect(files.has('ended')).toBe(true);
  expect(files.size('ended')).toBe(0);
});

it('reports no size for a file that is missing or cannot be examined', () => {
  expect(files.size('missing')).toBeNull();
  expect(files.size('x'.repeat(300))).toBeNull();
  expect(files.sizes()).toEqual({ stdout: 0, stderr: 0 });
});

it('reports whether a process has a FIFO open, and a missing FIFO as open', async () => {
  await mkdir(files.path('pipes'));
  expect(files.isHeld('out')).toBe(true);
  execFileSync('mkfifo', [files.path('pipes/out')]);
  expect(files.isHeld('out')).toBe(false);
  const reader = openSync(files.path('pipes/out'), constants.O_RDONLY | constants.O_NONBLOCK);
  expect(files.isHeld('out')).toBe(true);
  const writer = openSync(files.path('pipes/out'), constants.O_WRONLY);
  closeSync(reader);
  expect(files.isHeld('out')).toBe(true);
  closeSync(writer);
  expect(files.isHeld('out')).toBe(false);
});
