/** Whole runs with real processes: one large graph, compared with `make`, and many small ones at once. */
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '../../src/base/async.ts';
import { limits } from '../../src/features/runs/limits.ts';
import { isRunOver } from '../../src/features/runs/rules/run.ts';
import type { TestPlane } from '../../src/testing/plane.ts';
import { atMost, type Figure, type Row, ratioAtMost } from '../figure.ts';
import { graph, makefile, type Needs, type Shape, shapes, teamOf } from '../graphs.ts';
import { cpuSeconds, forgetPeak, peakMib, rssMib } from '../machine.ts';
import { forEachConcurrently, withFolder, withProgram } from '../program.ts';
import { stallsWhile } from './throughput.ts';

const AT_ONCE = limits.run_plain_steps_max;
const NOTHING = '/bin/true';

export const teams: Row = {
  name: 'teams',
  bottleneck:
    'A step starts eight processes (the shells and pumps that keep its output safe, and the command); `make` ' +
    'starts one. A step of a chain makes six commits one after the other, and waits up to 10 ms for the kernel ' +
    'to move its command into a cgroup. In the service, a fifth of the time is commits, and the rest is spread ' +
    'over a hundred functions. A session has 22 files and folders. On ext4 without a journal, creating one takes ' +
    '0.4 ms of processor time instead of 0.01 ms beside many that were deleted in the last minutes, for example ' +
    'by tests; that adds 1 to 5 ms to a step. Done so far: a step starts eight ' +
    'processes instead of 13, makes two commits fewer, and starts the wrapper while it waits for the cgroup. Together, ' +
    'that took a step of a chain from 61.0 to 38.8 ms, and one of a fan from 27.3 to 19.9 ms.',
  how:
    `One run whose steps are real agents that do nothing (\`true\`), ${AT_ONCE} at a time. Each step has a ` +
    'record, a session with its keeper and pumps, a log, and a committed outcome. For comparison, `make ' +
    `-j${AT_ONCE}\` builds the same graph from a Makefile; it starts one process for each step and stores ` +
    'nothing.',
  run: async ({ quick }) => {
    const figures: Figure[] = [];
    for (const shape of shapes) figures.push(...(await besideMake(shape, quick ? 32 : 256)));
    return figures;
  },
};

export const runsAtOnce: Row = {
  name: 'runs-at-once',
  how:
    'Runs that are started together, each a chain of three steps whose agents do nothing, from the first ' +
    'request to the end of the last run. Memory is the growth of the service’s resident set, at the end and ' +
    'at its peak.',
  run: ({ quick }) => manyRuns(quick ? 20 : 200),
};

async function besideMake(shape: Shape, count: number): Promise<Figure[]> {
  const steps = graph(shape, count);
  return withProgram(async (plane) => {
    const cpu_before = cpuSeconds(plane.pid);
    const begun_ms = performance.now();
    await finish(plane, await team(plane, steps), 1);
    const value = (performance.now() - begun_ms) / count;
    const cpu_ms = ((cpuSeconds(plane.pid) - cpu_before) * 1000) / count;
    const made_ms = await makeMs(steps);
    const what = `${shape} of ${count} real steps`;
    const limit = { limit: (made_ms ?? 0) / count, limit_is: `make -j${AT_ONCE}` };
    return [
      {
        what:
          made_ms === null ? `${what}: time per step (no make on this machine)` : `${what}: time per step`,
        unit: 'ms',
        value,
        ...(made_ms !== null && { ...limit, goal: ratioAtMost(25) }),
      },
      {
        what: `${what}: processor time of the service per step`,
        unit: 'ms',
        value: cpu_ms,
        goal: atMost(18),
      },
    ];
  });
}

/** Null if `make` is not installed. */
async function makeMs(steps: readonly Needs[]): Promise<number | null> {
  return withFolder(async (folder) => {
    const file = join(folder, 'Makefile');
    await writeFile(file, makefile(steps));
    const begun_ms = performance.now();
    const { error, status } = spawnSync('make', [`-j${AT_ONCE}`, '-f', file], { stdio: 'ignore' });
    if (error) return null;
    if (status !== 0) throw new Error(`make ended with ${status}`);
    return performance.now() - begun_ms;
  });
}

async function manyRuns(count: number): Promise<Figure[]> {
  const figures: Figure[] = [];
  const what = `${count} runs of three real steps at once`;
  const stalls = await stallsWhile(async (plane) => {
    const team_id = await team(plane, graph('chain', 3));
    const empty_mib = rssMib(plane.pid);
    forgetPeak(plane.pid);
    const begun_ms = performance.now();
    await finish(plane, team_id, count);
    const seconds = (performance.now() - begun_ms) / 1000;
    figures.push(
      { what: `${what}: time until all are completed`, unit: 's', value: seconds },
      { what: `${what}: memory at the end`, unit: 'MiB', value: rssMib(plane.pid) - empty_mib },
      { what: `${what}: memory at the peak`, unit: 'MiB', value: peakMib(plane.pid) - empty_mib },
    );
  });
  return [
    ...figures,
    { what: `${what}: p99 of event loop stalls`, unit: 'ms', value: stalls.p99_ms },
    { what: `${what}: longest event loop stall`, unit: 'ms', value: stalls.max_ms },
  ];
}

/** Creates a team with one member, whose process does nothing; returns its id. */
async function team(plane: TestPlane, steps: readonly Needs[]): Promise<string> {
  const spec = teamOf([{ member_id: 'm', agent: { argv: [NOTHING], workdir: plane.work } }], steps);
  return (await plane.client.call('createTeam', { body: { name: 'bench', spec } })).id;
}

/** Starts `count` runs of the team at once, and waits until they are completed. */
async function finish(plane: TestPlane, team_id: string, count: number): Promise<void> {
  const ids: string[] = [];
  await forEachConcurrently([...Array(count).keys()], AT_ONCE, async () => {
    const run = await plane.client.call('createRun', { params: { team_id }, body: {} });
    ids.push(run.id);
  });
  for (const run_id of ids) await over(plane, team_id, run_id);
}

async function over(plane: TestPlane, team_id: string, run_id: string): Promise<void> {
  for (;;) {
    const run = await plane.client.call('getRun', { params: { team_id, run_id } });
    if (run.status === 'completed') return;
    if (isRunOver(run)) throw new Error(`${run_id} is ${run.status}: ${run.error}`);
    await sleep(50);
  }
}
