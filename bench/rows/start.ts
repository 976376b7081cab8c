/** The start time of the service, and its memory when idle. */
import { copyFile, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { root, run } from '../../scripts/run.ts';
import { sleep } from '../../src/base/async.ts';
import { silentLog } from '../../src/base/log.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { addAgent, addSession, batch } from '../../src/store/testing.ts';
import type { TestPlane } from '../../src/testing/plane.ts';
import { atMost, type Figure, median, type Row } from '../figure.ts';
import { rssMib } from '../machine.ts';
import { endProgram, logLine, prepareProgram, withFolder } from '../program.ts';
import { asEnded } from './fill.ts';

export const start: Row = {
  name: 'start',
  bottleneck:
    'Memory: 51 MiB are the pages of Node’s own executable; the heap of all modules is the largest part of ' +
    'the rest. Done so far: one full collection when the service is first idle (116 MiB became 103 MiB). Tried: ' +
    'half as much memory for new objects (2 MiB less).',
  how:
    'The time from the start of `bin/svc serve` to the first 200 from `/readyz`: the median of several starts ' +
    'after a first one, which warms Node’s compile cache. The program is the bundle, as after `npm start` or ' +
    '`npm i -g`. The million events are rows of a hundred agents. Idle memory is the resident set ten seconds ' +
    'after an empty start.',
  run: async ({ quick }) => {
    const events = quick ? 50_000 : 1_000_000;
    return withFolder(async (folder) => measure(await built(folder), events, quick));
  },
};

/** Creates the package as installed, without `src/`; returns the `svc` in it. */
async function built(folder: string): Promise<string> {
  const { ok, output } = await run(['node', 'scripts/build.ts']);
  if (!ok) throw new Error(output);
  await mkdir(join(folder, 'bin'));
  await copyFile(join(root, 'bin/svc'), join(folder, 'bin/svc'));
  await copyFile(join(root, 'package.json'), join(folder, 'package.json'));
  await copyFile(join(root, 'openapi.json'), join(folder, 'openapi.json'));
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  await symlink(join(root, 'dist'), join(folder, 'dist'));
  return join(folder, 'bin/svc');
}

async function measure(program: string, events: number, quick: boolean) {
  const plane = await prepareProgram({ program });
  try {
    await plane.start();
    await plane.join();
    await plane.kill('SIGTERM');
    const rounds = quick ? 1 : 5;
    const empty_s = await starts(plane, rounds, 'SIGTERM');
    await plane.start();
    await sleep(quick ? 1_000 : 10_000);
    const idle_mib = rssMib(plane.pid);
    await plane.kill('SIGTERM');
    await fill(plane.data_dir, events);
    await plane.start();
    await plane.kill('SIGTERM');
    const full_s = await starts(plane, rounds, 'SIGTERM');
    await plane.start();
    await plane.kill('SIGKILL');
    const crashed_s = await starts(plane, rounds, 'SIGKILL');
    const held = events.toLocaleString('en-US');
    return [
      { what: 'start, empty', unit: 's', value: empty_s, goal: atMost(0.45) },
      { what: `start, ${held} events`, unit: 's', value: full_s, goal: atMost(1) },
      { what: `start, ${held} events, after kill -9`, unit: 's', value: crashed_s, goal: atMost(1) },
      { what: 'idle memory', unit: 'MiB', value: idle_mib, goal: atMost(110) },
    ] satisfies Figure[];
  } finally {
    await endProgram(plane);
  }
}

/** The median start time in seconds; the signal ends the service after each start. */
export async function starts(
  plane: TestPlane,
  rounds: number,
  signal: 'SIGTERM' | 'SIGKILL',
): Promise<number> {
  const seconds: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const begun_ms = performance.now();
    await plane.start();
    seconds.push((performance.now() - begun_ms) / 1000);
    await plane.kill(signal);
  }
  return median(seconds);
}

async function fill(data_dir: string, events: number): Promise<void> {
  const store = await openSqlite({ path: join(data_dir, 'svc.db'), log: silentLog });
  const agents = 100;
  const per = 500;
  for (let i = 0; i < agents; i++) {
    const num = await addAgent(store, `agt_${i}`);
    await addSession(store, num, `ses_${i}`);
    const texts = Array.from({ length: per }, (_, k) => logLine(k));
    const made = batch(`agt_${i}`, `ses_${i}`, 0, texts, { ts_ms: Date.now() });
    const batches = Array.from({ length: Math.ceil(events / agents / per) }, (_, k) => k * made.bytes.length);
    await Promise.all(batches.map((from) => store.ingest({ ...made, from, to: from + made.bytes.length })));
  }
  await asEnded(store);
  await store.close();
}
