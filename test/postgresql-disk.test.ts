/** The disk of PostgreSQL is full, first where its tables are, then where its write-ahead log is. */
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { retryWhileUnreachable } from '../src/testing/conversation.ts';
import { openPace } from '../src/testing/pace.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { programs } from '../src/testing/postgres-programs.ts';
import { TestServer } from '../src/testing/postgres-server.ts';
import { expectNothingLost, MIXED, startWriters, type Writer } from '../src/testing/writers.ts';

/** Only root on Linux can mount a small file system. */
const disk = test.runIf(programs !== undefined && process.platform === 'linux' && process.getuid?.() === 0);
/** PostgreSQL needs 40 MiB of each for an empty database. */
const SIZE = 'size=128m,mode=0700';

const mounted: string[] = [];
let folder: string | undefined;
let server: TestServer | undefined;
let plane: TestPlane | undefined;

afterEach(async () => {
  await plane?.close();
  await server?.drop();
  for (const path of mounted.splice(0)) execFileSync('umount', ['-l', path]);
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  [folder, server, plane] = [undefined, undefined, undefined];
});

async function smallDisk(name: string): Promise<string> {
  const path = join(folder!, name);
  await mkdir(path);
  execFileSync('mount', ['-t', 'tmpfs', '-o', SIZE, 'svc-test', path]);
  mounted.push(path);
  return path;
}

/** Leaves no space. Returns what gives it back. */
async function fill(path: string): Promise<() => Promise<void>> {
  const ballast = join(path, 'ballast');
  const { bavail, bsize } = await statfs(path);
  await writeFile(ballast, Buffer.alloc(bavail * bsize)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOSPC') throw error;
  });
  return () => rm(ballast);
}

/** Waits until the writers have written this much more than now. */
async function haveWritten(writers: readonly Writer[], bytes: number): Promise<void> {
  for (const { name } of writers) {
    const size = async () => (await stat(join(plane!.work, `${name}.stdout`))).size;
    const enough = (await size()) + bytes;
    for (const pace = openPace(); (await size()) < enough; ) await pace();
  }
}

async function logged(text: string): Promise<void> {
  await expect.poll(() => plane!.log, { timeout: 60_000 }).toContain(text);
}

/** A request that writes. */
const create = () => plane!.create({ name: 'more', command: 'true' });

disk(
  'nothing is lost when PostgreSQL has no space, and the plane says so',
  { timeout: 240_000 },
  async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-full-'));
    // PostgreSQL runs as another user.
    execFileSync('chmod', ['755', folder]);
    const [tables, log] = [await smallDisk('tables'), await smallDisk('log')];
    const wal = join(log, 'wal');
    await mkdir(wal);
    execFileSync('chmod', ['755', log]);
    server = await TestServer.open({
      folder: tables,
      wal,
      settings: { max_wal_size: '32MB', min_wal_size: '32MB' },
    });
    plane = await TestPlane.open({ env: { SVC_DATABASE_URL: server.url } });
    const writers = await startWriters(plane, plane, MIXED);

    const emptyTables = await fill(tables);
    await logged('PostgreSQL has no disk space left: make room on its machine');
    for (const pace = openPace(); ; await pace()) {
      // There may be room for a row in some page.
      const error = await create().then(
        () => null,
        (failed: unknown) => failed,
      );
      if (error === null) continue;
      expect(error).toMatchObject({ kind: 'unavailable', code: 'disk_space' });
      break;
    }
    await haveWritten(writers, 4_096);
    await emptyTables();
    await retryWhileUnreachable(create);

    const emptyLog = await fill(log);
    // It cannot write its log, ends all connections, and cannot recover either.
    while (server.isRunning && (await server.answers())) await haveWritten(writers, 1_024);
    await logged('PostgreSQL does not answer');
    await haveWritten(writers, 4_096);
    await emptyLog();
    await server.kill();
    await server.start();
    await retryWhileUnreachable(create);
    await expectNothingLost(plane, plane, writers);
  },
);
