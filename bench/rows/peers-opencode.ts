/** Starting, and idle memory, compared with the server of OpenCode, which also runs coding agents behind an HTTP API. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { sleep } from '../../src/base/async.ts';
import { freePort } from '../../src/testing/plane.ts';
import { type Figure, median, type Row } from '../figure.ts';
import { rssMib, withDescendants } from '../machine.ts';
import { installPeer, peers } from '../peers/install.ts';
import { withFolder, withProgram } from '../program.ts';
import { starts } from './start.ts';

const IDLE_MS = 10_000;
const ANSWER_MS = 100;

export const opencode: Row = {
  name: 'opencode',
  how:
    `\`opencode serve\` ${peers['opencode-ai']} and svc, both with empty data and without agents. The start ends with ` +
    'the first response over HTTP; memory is the resident set ten seconds later, of all processes. OpenCode is ' +
    'itself an agent: it runs its sessions inside the server, so a comparison of more than this would say ' +
    'little.',
  run: async ({ quick }) => {
    const program = join(await installPeer('opencode-ai'), 'bin/opencode.exe');
    const rounds = quick ? 1 : 3;
    const theirs: { start_s: number; idle_mib: number }[] = [];
    for (let round = 0; round < rounds; round++) theirs.push(await startOpencode(program, quick));
    const mine = await startSvc(rounds, quick);
    const of = (field: 'start_s' | 'idle_mib') => median(theirs.map((one) => one[field]));
    const beside = { limit_is: 'opencode serve' };
    return [
      { what: 'start with empty data', unit: 's', value: mine.start_s, limit: of('start_s'), ...beside },
      { what: 'memory when idle', unit: 'MiB', value: mine.idle_mib, limit: of('idle_mib'), ...beside },
    ] satisfies Figure[];
  },
};

function startSvc(rounds: number, quick: boolean): Promise<{ start_s: number; idle_mib: number }> {
  return withProgram(async (plane) => {
    await plane.kill('SIGTERM');
    const start_s = await starts(plane, rounds, 'SIGTERM');
    await plane.start();
    await sleep(quick ? 1_000 : IDLE_MS);
    return { start_s, idle_mib: totalMib(plane.pid) };
  });
}

function startOpencode(program: string, quick: boolean): Promise<{ start_s: number; idle_mib: number }> {
  return withFolder(async (home) => {
    const port = await freePort();
    const begun_ms = performance.now();
    const server = spawn(program, ['serve', '--port', String(port), '--hostname', '127.0.0.1'], {
      cwd: home,
      env: { PATH: process.env.PATH ?? '', HOME: home, OPENCODE_DISABLE_AUTOUPDATE: '1' },
      stdio: 'ignore',
    });
    const ended = once(server, 'exit');
    const kill = () => void server.kill('SIGKILL');
    process.once('exit', kill);
    try {
      while (!(await answers(server, port))) await sleep(10);
      const start_s = (performance.now() - begun_ms) / 1000;
      await sleep(quick ? 1_000 : IDLE_MS);
      return { start_s, idle_mib: totalMib(server.pid!) };
    } finally {
      for (const pid of withDescendants([server.pid!])) process.kill(pid, 'SIGKILL');
      process.off('exit', kill);
      await ended;
    }
  });
}

async function answers(server: ChildProcess, port: number): Promise<boolean> {
  if (server.exitCode !== null) throw new Error(`opencode serve ended with ${server.exitCode}`);
  try {
    // It never answers requests that arrive at a certain moment of its start.
    const signal = AbortSignal.timeout(ANSWER_MS);
    return (await fetch(`http://127.0.0.1:${port}/doc`, { signal })).ok;
  } catch {
    return false;
  }
}

function totalMib(pid: number): number {
  return withDescendants([pid]).reduce((sum, one) => sum + rssMib(one), 0);
}
