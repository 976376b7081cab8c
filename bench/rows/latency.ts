/** The time from a written line to the client that reads it, with many agents at once, at a steady rate. */
import type { Agent } from '../../src/features/agents/rules.ts';
import type { TestPlane } from '../../src/testing/plane.ts';
import { Child } from '../child.ts';
import { atMost, type Figure, median, type Row } from '../figure.ts';
import { cpuSeconds } from '../machine.ts';
import type { ClientArgs, ClientReport } from '../processes/client.ts';
import type { WriterArgs } from '../processes/writer.ts';
import { follow, type Home, portOf, silentAgents, stdoutOf, withProgram } from '../program.ts';

export const latency: Row = {
  name: 'latency',
  bottleneck:
    'At 1,000 lines/s hardly two lines share a commit, so a line pays for the whole path alone: the write to ' +
    'the client’s socket (15 % of the main thread), the commit (14 %), handing over the sync to another ' +
    'thread (12 %), keeping the snapshot of readers (7 %). At 20,000 lines/s, writer, service, pumps and ' +
    'client need more than the two processors, and the latency is the time in their queues. Done so far: ' +
    'reading only the stream that changed, and keeping parsed states, took a line of a single agent from 711 to ' +
    '529 µs; it gained nothing with several agents. Tried: database pages of 4 KiB (no gain: a factor of 0.98).',
  how:
    'Every agent is a real session. One process writes lines in turn to the FIFOs that are the agents’ ' +
    'standard outputs, each with the time of the monotonic clock right before the write. A client process ' +
    'follows every agent on its own raw socket and reads the clock when a line arrives. The percentiles are ' +
    'those of windows of a few seconds, after one window to warm up; the figures are from the median window.',
  run: async ({ quick }) => {
    const seconds = quick ? 1 : 4;
    const rounds = quick ? 1 : 3;
    return withProgram(async (plane) => {
      const agents = await silentAgents(plane, 200);
      const few = agents.slice(0, 50);
      const slow = await windows(plane, few, { lines_per_s: 1_000, seconds, rounds, clients: few.length });
      const fast = await windows(plane, agents, { lines_per_s: 20_000, seconds, rounds, clients: 200 });
      const what = 'line to client, 1,000 lines/s over 50 agents';
      const what_fast = 'line to client, 20,000 lines/s over 200 agents';
      return [
        { what: `${what}, p50`, unit: 'ms', value: slow.p50_ms, goal: atMost(1.5) },
        { what: `${what}, p99`, unit: 'ms', value: slow.p99_ms, goal: atMost(6) },
        {
          what: `${what}: processor time of the service per line`,
          unit: 'µs',
          value: slow.cpu_us,
          goal: atMost(250),
        },
        { what: `${what_fast}, p50`, unit: 'ms', value: fast.p50_ms },
        { what: `${what_fast}, p99`, unit: 'ms', value: fast.p99_ms, goal: atMost(25) },
        {
          what: `${what_fast}: processor time of the service per line`,
          unit: 'µs',
          value: fast.cpu_us,
          goal: atMost(30),
        },
      ] satisfies Figure[];
    });
  },
};

export interface Windows {
  lines_per_s: number;
  /** The duration of one window. */
  seconds: number;
  rounds: number;
  /** The number of clients, spread evenly over the agents; at most 50 of them measure times. */
  clients: number;
  /** See `WriterArgs`. */
  around?: [before: string, behind: string];
}

export interface Latency {
  p50_ms: number;
  p99_ms: number;
  /** Processor time of the service per line, in microseconds. */
  cpu_us: number;
  /** The same of the node. */
  home_cpu_us: number;
  /** Reads of all clients per line. */
  reads: number;
}

/** Measures latency, and processor time per line. Throws if lines are missing. */
export async function windows(
  plane: TestPlane,
  agents: readonly Agent[],
  { lines_per_s, seconds, rounds, clients, ...shape }: Windows,
  home: Home = plane,
): Promise<Latency> {
  const sample_every = agents.length > 1 ? 1 : Math.ceil(clients / 20);
  const client = new Child('client', {
    port: portOf(plane),
    requests: Array.from({ length: clients }, (_, i) => follow(plane, agents[i % agents.length]!.id)),
    end: null,
    sample_every,
  } satisfies ClientArgs);
  await client.next();
  const outputs = agents.map((agent) => stdoutOf(home, agent));
  const write = async (length_s: number): Promise<ClientReport> => {
    const writer = new Child('writer', {
      ...{ outputs, lines_per_s, seconds: length_s, ...shape },
    } satisfies WriterArgs);
    const { written } = await writer.next<{ written: number }>();
    await writer.end();
    const expected = agents.length > 1 ? written : written * Math.ceil(clients / sample_every);
    const taken = await client.request<ClientReport>({ take: expected });
    // A few lines arrive in two events with the time split between them, and are not counted.
    if (taken.lines < expected * 0.999) throw new Error(`${taken.lines} of ${expected} lines came`);
    return taken;
  };
  await write(1);
  const taken: ClientReport[] = [];
  const used = () => [cpuSeconds(plane.pid), cpuSeconds(home.pid)] as const;
  const before_s = used();
  for (let round = 0; round < rounds; round++) taken.push(await write(seconds));
  const after_s = used();
  const each_us = (at: 0 | 1) => ((after_s[at] - before_s[at]) * 1e6) / (lines_per_s * seconds * rounds);
  await client.end();
  return {
    p50_ms: median(taken.map((one) => one.p50_ms)),
    p99_ms: median(taken.map((one) => one.p99_ms)),
    cpu_us: each_us(0),
    home_cpu_us: each_us(1),
    reads: taken.reduce((sum, one) => sum + one.reads, 0) / (lines_per_s * seconds * rounds),
  };
}
