/** A thousand idle agents: their memory and processor time, and a restart of the service with them. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sleep } from '../../src/base/async.ts';
import type { Agent } from '../../src/features/agents/rules.ts';
import { SessionFiles } from '../../src/node/sessions/session-files.ts';
import type { TestPlane } from '../../src/testing/plane.ts';
import { Child } from '../child.ts';
import { atMost, type Figure, type Row } from '../figure.ts';
import { cpuSeconds, pssBytes, rssMib, withDescendants } from '../machine.ts';
import type { WriterArgs } from '../processes/writer.ts';
import { silentAgents, stdoutOf, withProgram } from '../program.ts';

const MIB = 1024 * 1024;

export const idle: Row = {
  name: 'idle',
  bottleneck:
    'Each session keeps four helpers: the wrapper, which waits for the command; the keeper, which replaces ' +
    'killed helpers and holds the FIFOs open; and a `cat` for each stream, so that output reaches the disk ' +
    'while the service is down. A shell can either wait for its child or read commands, and `cat` can serve ' +
    'only one stream; fewer helpers need a compiled program, which svc does not have. Done so far: a check ' +
    'looks up each helper once, which took the processor time of the service from 2.4 to 1.7 % for 300 agents on a slow machine.',
  how:
    'Live agents (`sleep`), each a real session. Memory is the proportional set size of all processes of the ' +
    'sessions (command, wrapper, keeper, pumps), plus the growth of the service itself. Processor time is ' +
    'that of the service and all these processes, as a share of one processor, while nothing happens. Then ' +
    'the service is killed with SIGKILL, every agent writes a line, and the service is started again. The ' +
    'times run from that start until the service is ready with all sessions adopted, and until the last of ' +
    'these lines is committed.',
  run: async ({ quick }) =>
    withProgram(async (plane) => {
      const count = quick ? 50 : 1_000;
      await sleep(1_000);
      const empty_mib = rssMib(plane.pid);
      const begun_ms = performance.now();
      const agents = await silentAgents(plane, count);
      const start_s = (performance.now() - begun_ms) / 1000;
      await sleep(quick ? 1_000 : 10_000);
      const pids = await processesOf(plane, agents);
      const each_mib = pids.reduce((sum, pid) => sum + pssBytes(pid), 0) / count / MIB;
      const own_mib = (rssMib(plane.pid) - empty_mib) / count;
      const cpu = await cpuShare([plane.pid, ...pids], quick ? 2 : 10);
      const back = await readoptSessions(plane, agents);
      const all = `${count.toLocaleString('en-US')} live idle agents`;
      return [
        {
          what: `${all}: memory of one, its helpers and the service’s share`,
          unit: 'MiB',
          value: each_mib + own_mib,
          goal: atMost(0.35),
        },
        { what: `${all}: the service’s share of that`, unit: 'MiB', value: own_mib },
        { what: `${all}: processor`, unit: '%', value: cpu * 100, goal: atMost(3) },
        { what: `${all}: adopted after kill -9`, unit: 's', value: back.adopted_s },
        {
          what: `${all}: adopted and caught up after kill -9`,
          unit: 's',
          value: back.caught_up_s,
          goal: atMost(1.5),
        },
        { what: `${all}: starting one`, unit: 'ms', value: (start_s * 1000) / count },
      ] satisfies Figure[];
    }),
};

async function processesOf(plane: TestPlane, agents: readonly Agent[]): Promise<number[]> {
  const roots: number[] = [];
  for (const { session_id } of agents) {
    const handle = await new SessionFiles(join(plane.data_dir, 'sessions', session_id!)).readHandle();
    if (!handle) throw new Error(`${session_id} has no handle`);
    roots.push(
      handle.wrapper.pid,
      handle.keeper.pid,
      handle.main.pid,
      ...Object.values(handle.pumps).map((pump) => pump.pid),
    );
  }
  return withDescendants(roots);
}

async function cpuShare(pids: readonly number[], seconds: number): Promise<number> {
  const used = () => pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0);
  const before_s = used();
  await sleep(seconds * 1000);
  return (used() - before_s) / seconds;
}

async function readoptSessions(plane: TestPlane, agents: readonly Agent[]) {
  await plane.kill('SIGKILL');
  const outputs = agents.map((agent) => stdoutOf(plane, agent));
  const args = { outputs, lines_per_s: agents.length, seconds: 1 } satisfies WriterArgs;
  const writer = new Child('writer', args);
  await writer.next();
  await writer.end();
  const begun_ms = performance.now();
  await plane.start();
  const adopted_ms = performance.now() - begun_ms;
  const db = new DatabaseSync(join(plane.data_dir, 'svc.db'), { readOnly: true });
  const spools_read = db.prepare('SELECT count(*) AS count FROM spools WHERE offset > 0');
  while (Number(spools_read.get()!.count) < agents.length) await sleep(5);
  const caught_up_ms = performance.now() - begun_ms;
  db.close();
  return { adopted_s: adopted_ms / 1000, caught_up_s: caught_up_ms / 1000 };
}
