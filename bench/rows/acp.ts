/** ACP conversations: from an update to the client, at a steady rate and at full speed, and the cost of a long conversation. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Agent } from '../../src/features/agents/rules.ts';
import type { TestPlane } from '../../src/testing/plane.ts';
import { atLeast, atMost, type Figure, median, type Row } from '../figure.ts';
import { forgetPeak, peakMib, rssMib } from '../machine.ts';
import { forEachConcurrently, LAST_LINE, withFolder, withProgram } from '../program.ts';
import { windows } from './latency.ts';
import { oneRunOf, stallsWhile } from './throughput.ts';

/** The text of an update, and the JSON around it. */
const text = 'a few words of an answer, as they come';
const frame_parts = JSON.stringify({
  jsonrpc: '2.0',
  method: 'session/update',
  params: {
    sessionId: 'session-1',
    update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: text } },
  },
}).split(text) as [string, string];
const UPDATES = 100_000;

export const acp: Row = {
  name: 'acp',
  bottleneck:
    'An update pays for the path of a line, and for reading and writing the state of its conversation in the ' +
    'same transaction, so that neither is ever ahead of the other. Three quarters of the processor time are on ' +
    'the main thread; there, statements and commits take a quarter, and the write to the client’s socket 8 %. ' +
    'Tried, with no gain beyond the noise of a tenth: not recording the caller of each write (498 and 500 µs), ' +
    'no savepoint for a write that is alone in its group, V8 without parallel collection (481 and 486 µs), and ' +
    'no second look-up of agent and session when the event is appended.',
  how:
    'Real sessions whose standard output is read as ACP. At a steady rate, one process writes updates of ' +
    'about 200 bytes in turn to the standard outputs of fifty agents, as in the row `latency`. Flat out, an ' +
    'agent is `cat` of a file with a hundred thousand such updates, and one client follows; the rate counts ' +
    'from the first to the last update at the client. The stalls are those of the event loop during that ' +
    'time, measured as in the row `stall`. Memory is the growth of the service’s resident set, at the end and ' +
    'at its peak. Medians of the runs.',
  run: async ({ quick }) => [...(await steady(quick)), ...(await flatOut(quick))],
};

async function steady(quick: boolean): Promise<Figure[]> {
  return withProgram(async (plane) => {
    const agents: Agent[] = [];
    await forEachConcurrently(Array(50).fill(['/bin/sleep', '100000']), 16, async (argv: string[]) => {
      agents.push(await plane.agent(argv, { protocol: 'acp' }));
    });
    const shape = { lines_per_s: 1_000, seconds: quick ? 1 : 4, rounds: quick ? 1 : 3, clients: 50 };
    const { p50_ms, p99_ms, cpu_us } = await windows(plane, agents, { ...shape, around: frame_parts });
    const what = 'update to client, 1,000 updates/s over 50 conversations';
    return [
      { what: `${what}, p50`, unit: 'ms', value: p50_ms },
      { what: `${what}, p99`, unit: 'ms', value: p99_ms },
      {
        what: `${what}: processor time of the service per update`,
        unit: 'µs',
        value: cpu_us,
        goal: atMost(300),
      },
    ];
  });
}

async function flatOut(quick: boolean): Promise<Figure[]> {
  return withFolder(async (folder) => {
    const count = quick ? UPDATES / 10 : UPDATES;
    const file = join(folder, 'updates.txt');
    await writeFile(file, `${`${frame_parts.join(text)}\n`.repeat(count)}${LAST_LINE}\n`);
    const bytes = Buffer.byteLength(`${frame_parts.join(text)}\n`);
    const rates: number[] = [];
    const stalls: number[] = [];
    const memory: { grown: number; peak: number }[] = [];
    const converse = async (plane: TestPlane) => {
      const agent = await plane.agent(['/bin/cat', file], { protocol: 'acp', start: false });
      return oneRunOf(plane, agent, file);
    };
    for (let run = 0; run < (quick ? 1 : 3); run++) {
      await withProgram(async (plane) => {
        const before = rssMib(plane.pid);
        forgetPeak(plane.pid);
        rates.push(((await converse(plane)) / bytes) * 1e6);
        memory.push({ grown: rssMib(plane.pid) - before, peak: peakMib(plane.pid) - before });
      });
      stalls.push((await stallsWhile(converse)).max_ms);
    }
    const what = `one conversation of ${count.toLocaleString('en-US')} updates, flat out`;
    return [
      {
        what: `${what}, committed, to one client`,
        unit: 'updates/s',
        value: median(rates),
        goal: atLeast(80_000),
      },
      { what: `${what}: longest stall of the event loop`, unit: 'ms', value: median(stalls) },
      {
        what: `${what}: memory growth of the service`,
        unit: 'MiB',
        value: median(memory.map(({ grown }) => grown)),
      },
      {
        what: `${what}: memory growth at the peak`,
        unit: 'MiB',
        value: median(memory.map(({ peak }) => peak)),
      },
    ];
  });
}
