/** One agent at full speed, committed, to one client, compared with the minimal path. Also how long the event loop is blocked. */
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sleep } from '../../src/base/async.ts';
import type { Agent } from '../../src/features/agents/rules.ts';
import type { TestPlane } from '../../src/testing/plane.ts';
import { Child } from '../child.ts';
import { atMost, type Figure, MB, median, type Row, ratioAtLeast } from '../figure.ts';
import type { ClientArgs, ClientReport } from '../processes/client.ts';
import type { RawPathArgs } from '../processes/raw-path.ts';
import { follow, type Home, LAST_LINE, portOf, textFile, withFolder, withProgram } from '../program.ts';

export const throughput: Row = {
  name: 'throughput',
  bottleneck:
    'Reading, committing and encoding share one thread; together with sealing, search, the pumps and the ' +
    'client, they share two processors. For `yes`, half of that thread’s time is spent escaping newlines, ' +
    'because every other byte is one. Tried: one growing buffer for the frames of a commit (32 MiB more at the ' +
    'peak), escaping byte by byte (log text four times slower), and a heap that grows by 200 or 300 % before V8 ' +
    'collects (35 MiB more at the peak).',
  how:
    'An agent is `cat` of a file in the page cache. A client in another process reads its stream from a raw ' +
    'socket. The figure counts the bytes that the agent wrote, from the first to the last one at the client. ' +
    'The limit alternates with it: the same file, read by one process, inserted into SQLite as 64 KiB rows ' +
    '(`synchronous = FULL`, with the same pages, log and transaction size), and then sent unchanged. Median ' +
    'of the runs.',
  run: async ({ quick }) => {
    const figures: Figure[] = [];
    for (const kind of ['log', 'yes'] as const) figures.push(await flatOut(kind, quick));
    return figures;
  },
};

export const stall: Row = {
  name: 'stall',
  bottleneck:
    'A commit of a full batch and the encoding of the previous one run in two turns of the loop; each takes up to ' +
    '7 ms of processor time. Longer stalls are the first batches of a stream, before V8 has compiled the code. The ' +
    'second turn took the 99th percentile from 6.9 to 5.8 ms, but did not shorten the longest stall.',
  how:
    'The longest stall, and the 99th percentile of the stalls, of the service’s event loop while an agent ' +
    'writes log text flat out and one client follows. `monitorEventLoopDelay` measures them with a resolution ' +
    'of 1 ms; it is loaded before the program’s own code. `/metrics` always reports the same, with a ' +
    'resolution of 10 ms. Median of the longest stalls of the runs.',
  run: ({ quick }) => measureStalls(quick),
};

async function flatOut(kind: 'log' | 'yes', quick: boolean): Promise<Figure> {
  const bytes = quick ? 20 * MB : 150 * MB;
  return withFolder(async (folder) => {
    const file = await textFile(folder, kind, bytes);
    const values: number[] = [];
    const limits: number[] = [];
    for (let run = 0; run < (quick ? 1 : 3); run++) {
      limits.push(await rawPath(file, join(folder, `raw-${run}.db`)));
      values.push(await withProgram((plane) => oneRun(plane, file)));
    }
    const what = `one agent flat out, committed, to one client: ${kind === 'log' ? 'log text' : '`yes`'}`;
    const goal = ratioAtLeast(0.6);
    return { what, unit: 'MB/s', value: median(values), limit: median(limits), limit_is: 'raw path', goal };
  });
}

/** The throughput in MB/s of an agent that writes a file at full speed. */
export async function oneRun(plane: TestPlane, file: string, home: Home = plane): Promise<number> {
  return oneRunOf(plane, await home.agent(['/bin/cat', file], { start: false }), file);
}

/** The same for an existing agent, which it starts. */
export async function oneRunOf(plane: TestPlane, agent: Agent, file: string): Promise<number> {
  const client = new Child('client', {
    port: portOf(plane),
    requests: [follow(plane, agent.id)],
    end: LAST_LINE,
    sample_every: 0,
  } satisfies ClientArgs);
  await client.next();
  await client.request<ClientReport>({ take: 0 });
  await plane.client.call('startAgent', { params: { agent_id: agent.id } });
  const taken = await client.next<ClientReport>();
  await client.end();
  const size = statSync(file).size;
  if (taken.bytes < size) throw new Error(`the client got ${taken.bytes} bytes for ${size}`);
  return size / (taken.last_us - taken.first_us);
}

/** The throughput in MB/s of the minimal path. */
export function rawPath(file: string, database: string): Promise<number> {
  return throughputOf(new Child('raw-path', { file, database } satisfies RawPathArgs));
}

/** The throughput in MB/s of a process that sends all it has to a client, and then closes the connection. Ends the process. */
export async function throughputOf(server: Child): Promise<number> {
  const { port } = await server.next<{ port: number }>();
  const args = { port, requests: [''], end: null, sample_every: 0 } satisfies ClientArgs;
  const client = new Child('client', args);
  await client.next();
  const taken = await client.next<ClientReport>();
  await Promise.all([client.end(), server.end()]);
  return taken.bytes / (taken.last_us - taken.first_us);
}

async function measureStalls(quick: boolean): Promise<Figure[]> {
  return withFolder(async (folder) => {
    const file = await textFile(folder, 'log', quick ? 20 * MB : 150 * MB);
    const stalls: Stalls[] = [];
    for (let run = 0; run < (quick ? 1 : 3); run++) {
      stalls.push(await stallsWhile((plane) => oneRun(plane, file)));
    }
    const goal = atMost(12);
    return [
      {
        what: 'longest stall of the event loop, one agent flat out',
        unit: 'ms',
        value: median(stalls.map(({ max_ms }) => max_ms)),
        goal,
      },
      { what: 'p99 of the stalls', unit: 'ms', value: median(stalls.map(({ p99_ms }) => p99_ms)) },
    ];
  });
}

export interface Stalls {
  max_ms: number;
  p99_ms: number;
}

/** How long the event loop of the service is blocked while it does something. */
export async function stallsWhile(run: (plane: TestPlane) => Promise<unknown>): Promise<Stalls> {
  return withFolder(async (folder) => {
    const seen = join(folder, 'loop.json');
    const probe = fileURLToPath(new URL('../processes/loop-probe.ts', import.meta.url));
    const env = { NODE_OPTIONS: `--import=${probe}`, BENCH_LOOP_FILE: seen };
    return withProgram(async (plane) => {
      await measureLoop(plane, seen);
      await run(plane);
      return measureLoop(plane, seen);
    }, env);
  });
}

/** The delays of the event loop since the last call. */
async function measureLoop(plane: TestPlane, file: string): Promise<Stalls> {
  rmSync(file, { force: true });
  process.kill(plane.pid, 'SIGUSR2');
  while (!existsSync(file) || statSync(file).size === 0) await sleep(5);
  return JSON.parse(readFileSync(file, 'utf8'));
}
