import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { isAlive, type ProcessRef, readStat } from '../src/base/proc.ts';
import { SVC } from '../src/testing/plane.ts';
import { type TemporaryFolder, temporaryFolder } from '../src/testing/repository.ts';

const child = fileURLToPath(new URL('../src/tools/agent-doctor/agent-child.ts', import.meta.url));

let folder: TemporaryFolder;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder.remove());

/** Starts the doctor on an agent that responds to nothing and has two child processes. */
async function startDoctor() {
  const TMPDIR = join(folder.path, 'tmp');
  await mkdir(TMPDIR);
  const pids = join(folder.path, 'pids');
  const doctor = spawn(
    SVC,
    ['agents', 'doctor', '--', process.execPath, child, 'deaf', 'orphans', 'stubborn'],
    {
      env: { ...process.env, TMPDIR, AGENT_CHILD_PIDS: pids },
      stdio: 'ignore',
    },
  );
  const ended = once(doctor, 'exit');
  const started: ProcessRef[] = [];
  while (started.length < 3) {
    const found = (await readFile(pids, 'utf8').catch(() => '')).split('\n').filter(Boolean);
    started.splice(0, Infinity, ...found.flatMap((pid) => readStat(Number(pid)) ?? []));
    await sleep(20);
  }
  // The folder also contains Node's compile cache.
  const left = async () => (await readdir(TMPDIR)).filter((name) => name.startsWith('svc-'));
  return { doctor, ended, started, left };
}

const endings = [
  { name: 'Ctrl-C', signals: ['SIGINT'], code: 130 },
  { name: 'a second Ctrl-C', signals: ['SIGINT', 'SIGINT'], code: 130 },
  { name: 'TERM', signals: ['SIGTERM'], code: 1 },
] as const;

for (const { name, signals, code } of endings) {
  test(`${name} while the doctor runs leaves no process and no file`, async () => {
    const { doctor, ended, started, left } = await startDoctor();
    for (const signal of signals) doctor.kill(signal);
    expect(await ended).toEqual([code, null]);
    expect(started.filter(isAlive)).toEqual([]);
    expect(await left()).toEqual([]);
  });
}
