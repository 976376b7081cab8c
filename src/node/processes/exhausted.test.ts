/** What is read about processes while the system has too few descriptors: nothing is known, so nothing counts as absent. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs, { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test, vi } from 'vitest';
import { hasProc, readChildren } from '../../base/proc.ts';
import { sweepTrees, type TreeRequest } from './process-tree.ts';

/** Calls `read` while no file can be opened whose path ends like this. */
async function whileStarved<T>(end: string, read: () => T | Promise<T>): Promise<T> {
  const spies = (['readFileSync', 'readdirSync', 'openSync', 'opendirSync'] as const).map((name) => {
    const open = fs[name] as (...args: unknown[]) => unknown;
    return vi.spyOn(fs, name).mockImplementation(((path: string, ...more: unknown[]) => {
      if (path.endsWith(end)) throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
      return open(path, ...more);
    }) as never);
  });
  syncBuiltinESMExports();
  try {
    return await read();
  } finally {
    for (const spy of spies) spy.mockRestore();
    syncBuiltinESMExports();
  }
}

async function startProcess(): Promise<number> {
  const child = spawn('/bin/sh', ['-c', 'echo; read line'], {
    env: { SVC_SESSION_ID: 'ses_1' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child.pid!;
}

test.runIf(hasProc).each(['environ', 'fd', 'cgroup.procs', 'cmdline'])(
  'a scan fails if it cannot read %s, and the next one finds the process',
  async (end) => {
    const cgroup = await mkdtemp(join(tmpdir(), 'svc-exhausted-'));
    onTestFinished(() => rm(cgroup, { recursive: true }));
    const pid = await startProcess();
    await writeFile(join(cgroup, 'cgroup.procs'), `${pid}\n`);
    const request: TreeRequest = {
      ...{
        session_id: 'ses_1',
        pipes: '/none/pipes',
        cgroup,
        main: null,
        init: null,
        wrapper: null,
        agents_uid: null,
      },
      ...{ helpers: [], known: [], exit_uptime_s: null, signal: null, terminated: [] },
    };
    const scan = async () => (await sweepTrees([request]))[0]!.members.map((member) => member.pid);
    await expect(whileStarved(end, scan)).rejects.toThrow('too many open files');
    expect(await scan()).toEqual([pid]);
  },
);

test.runIf(hasProc)('the children of a process are not absent if they cannot be read', async () => {
  const pid = await startProcess();
  const children = () => readChildren(process.pid).map((stat) => stat.pid);
  await expect(whileStarved('children', children)).rejects.toThrow('too many open files');
  expect(children()).toContain(pid);
});

/** Uses up all descriptors. */
const STARVE = `
  import { existsSync, openSync, rmdirSync } from 'node:fs';
  const starve = () => {
    try {
      for (;;) openSync('/dev/null', 'r');
    } catch {}
  };
`;

function runStarving(script: string, ...args: string[]): string {
  const node = [process.execPath, '--input-type=module', '-e', STARVE + script, ...args];
  return execFileSync('/bin/sh', ['-c', 'ulimit -n 256; exec "$@"', 'sh', ...node], { encoding: 'utf8' });
}

const moduleOf = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Arguments: the module and a folder, which it removes while no descriptor is free. Prints whether it existed when the cgroup had ended. */
const END_CGROUP = `
  const [module, folder] = process.argv.slice(1);
  const { endCgroup } = await import(module);
  starve();
  setTimeout(() => rmdirSync(folder), 100);
  await endCgroup(folder);
  console.log(existsSync(folder));
`;

test.runIf(hasProc)('a cgroup has not ended while no descriptor is free to look into it', async () => {
  const cgroup = await mkdtemp(join(tmpdir(), 'svc-exhausted-'));
  expect(runStarving(END_CGROUP, moduleOf('./cgroup.ts'), cgroup)).toBe('false\n');
  expect(existsSync(cgroup)).toBe(false);
});

/** Argument: the module, for a system without /proc. */
const READ_STAT = `
  Object.defineProperty(process, 'platform', { value: 'darwin' });
  const { readStat } = await import(process.argv[1]);
  starve();
  try {
    console.log(readStat(process.pid));
  } catch (error) {
    console.log(error.code);
  }
`;

test.runIf(hasProc)('a process is not absent while ps cannot be started', () => {
  expect(runStarving(READ_STAT, moduleOf('../../base/proc.ts'))).toBe('EMFILE\n');
});
