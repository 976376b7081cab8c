/** Ten thousand ended agents: what they cost at the start, in memory, and in a list. */
import { join } from 'node:path';
import { sleep } from '../../src/base/async.ts';
import { silentLog } from '../../src/base/log.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { addAgent, addSession } from '../../src/store/testing.ts';
import type { TestPlane } from '../../src/testing/plane.ts';
import { atMost, type Figure, median, type Row } from '../figure.ts';
import { rssMib } from '../machine.ts';
import { endProgram, prepareProgram } from '../program.ts';
import { asEnded } from './fill.ts';
import { starts } from './start.ts';

export const endedAgents: Row = {
  name: 'ended-agents',
  how:
    'Agents that ended long ago, each with one session and no output, in the database of a stopped service. ' +
    'The start is measured as in the row `start`, before and after they are added, and the memory as the ' +
    'resident set ten seconds after such a start. A page is `GET /api/agents?limit=100`: the median of many, ' +
    'one after another.',
  run: async ({ quick }) => {
    const plane = await prepareProgram({});
    try {
      await plane.start();
      await plane.join();
      await plane.kill('SIGTERM');
      return await compare(plane, quick);
    } finally {
      await endProgram(plane);
    }
  },
};

async function compare(plane: TestPlane, quick: boolean): Promise<Figure[]> {
  const count = quick ? 1_000 : 10_000;
  const rounds = quick ? 1 : 5;
  const empty = { start_s: await starts(plane, rounds, 'SIGTERM'), ...(await whenIdle(plane, quick)) };
  await addEnded(plane.data_dir, count);
  const full = { start_s: await starts(plane, rounds, 'SIGTERM'), ...(await whenIdle(plane, quick)) };
  const what = `${count.toLocaleString('en-US')} ended agents`;
  return [
    {
      what: `${what}: start, beyond an empty one`,
      unit: 's',
      value: full.start_s - empty.start_s,
      goal: atMost(0.1),
    },
    {
      what: `${what}: memory, beyond an empty service`,
      unit: 'MiB',
      value: full.idle_mib - empty.idle_mib,
      goal: atMost(10),
    },
    { what: `${what}: a page of 100`, unit: 'ms', value: full.page_ms, goal: atMost(10) },
  ];
}

async function whenIdle(plane: TestPlane, quick: boolean): Promise<{ idle_mib: number; page_ms: number }> {
  await plane.start();
  await sleep(quick ? 1_000 : 10_000);
  const idle_mib = rssMib(plane.pid);
  const times: number[] = [];
  for (let i = 0; i < 50; i++) {
    const begun_ms = performance.now();
    await plane.client.call('listAgents', { query: { limit: 100 } });
    times.push(performance.now() - begun_ms);
  }
  await plane.kill('SIGTERM');
  return { idle_mib, page_ms: median(times) };
}

export async function addEnded(data_dir: string, count: number): Promise<void> {
  const store = await openSqlite({ path: join(data_dir, 'svc.db'), log: silentLog });
  const numbers = [...Array(count).keys()];
  const nums = await Promise.all(numbers.map((i) => addAgent(store, `agt_${i}`)));
  await Promise.all(nums.map((num, i) => addSession(store, num, `ses_${i}`)));
  await asEnded(store);
  await store.close();
}
