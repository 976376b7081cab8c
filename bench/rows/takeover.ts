/** Two planes that share a database: the pause at a client of one when the other, which is active, ends. */
import { sleep } from '../../src/base/async.ts';
import type { Frame } from '../../src/client/client.ts';
import type { TestCluster } from '../../src/testing/cluster.ts';
import type { TestPlane } from '../../src/testing/plane.ts';
import { atMost, type Figure, median, type Row } from '../figure.ts';
import { endProgram, openCluster } from '../program.ts';

/** Prints the Unix time in milliseconds, every 5 ms. */
const CLOCK = [process.execPath, '-e', 'setInterval(() => console.log(Date.now()), 5)'];

export const takeover: Row = {
  name: 'takeover',
  how:
    'Two planes and a node on one machine, with a PostgreSQL server. An agent on the node prints the time every 5 ms. A ' +
    'client follows it through the plane that stands by. The active plane is ended; the pause runs until the client has a line ' +
    'that was printed after that. The node’s log says how long it was linked to no plane. Then the ended plane starts again and ' +
    'stands by. The two latencies are from the time that a line names, in whole milliseconds, to its arrival, with one ' +
    'client at each plane.',
  run: async ({ quick }) => {
    const cluster = await openCluster(['a', 'b']);
    try {
      const { id } = await cluster.node.agent(CLOCK);
      const latencies = await measureLatencies(cluster, id);
      const killed = await pauses(cluster, id, 'SIGKILL', quick ? 2 : 10);
      const ended = await pauses(cluster, id, 'SIGTERM', quick ? 2 : 10);
      const unlinked = gaps(cluster).slice(-ended.length);
      return [
        {
          what: 'kill -9 of the active plane to the next line, p50',
          unit: 's',
          value: median(killed),
          goal: atMost(2.5),
        },
        {
          what: 'kill -9 of the active plane to the next line, at most',
          unit: 's',
          value: Math.max(...killed),
          goal: atMost(6),
        },
        { what: 'SIGTERM of the active plane to the next line, p50', unit: 's', value: median(ended) },
        {
          what: 'SIGTERM of the active plane to the next line, at most',
          unit: 's',
          value: Math.max(...ended),
        },
        {
          what: 'SIGTERM: the node is linked to no plane, p50',
          unit: 's',
          value: median(unlinked),
          goal: atMost(0.3),
        },
        { what: 'SIGTERM: the node is linked to no plane, at most', unit: 's', value: Math.max(...unlinked) },
        { what: 'line to client of the active plane, p50', unit: 'ms', value: latencies.active },
        {
          what: 'line to client of the plane that stands by, p50',
          unit: 'ms',
          value: latencies.standby,
          goal: atMost(12),
        },
      ] satisfies Figure[];
    } finally {
      await endProgram(cluster);
    }
  },
};

async function pauses(
  cluster: TestCluster,
  agent_id: string,
  signal: 'SIGKILL' | 'SIGTERM',
  count: number,
): Promise<number[]> {
  const seconds: number[] = [];
  for (let i = 0; i < count; i++) {
    const { active, standby } = await cluster.roles();
    const client = follow(standby, agent_id);
    await client.next(() => true);
    const begun_ms = Date.now();
    const ended = active.kill(signal);
    await client.next((printed_ms) => printed_ms > begun_ms);
    seconds.push((Date.now() - begun_ms) / 1000);
    client.stop();
    await ended;
    await active.start();
    await cluster.until(standby, (planes) => planes.filter(({ state }) => state === 'standby').length === 1);
  }
  return seconds;
}

/** How long the node was linked to no plane each time, in seconds, from its log. */
function gaps({ node }: TestCluster): number[] {
  const lines = node.log.split('\n').filter((line) => line.startsWith('{'));
  const seconds: number[] = [];
  let detached_ms = 0;
  for (const line of lines) {
    const { message, timestamp } = JSON.parse(line) as { message: string; timestamp: string };
    if (message === 'plane detached') detached_ms = Date.parse(timestamp);
    if (message === 'plane attached' && detached_ms > 0) {
      seconds.push((Date.parse(timestamp) - detached_ms) / 1000);
      detached_ms = 0;
    }
  }
  return seconds;
}

async function measureLatencies(
  cluster: TestCluster,
  agent_id: string,
): Promise<{ active: number; standby: number }> {
  const { active, standby } = await cluster.roles();
  const of = async (plane: TestPlane) => {
    const client = follow(plane, agent_id);
    await sleep(1_000);
    const values: number[] = [];
    while (values.length < 400) values.push(-(await client.next(() => true)) + Date.now());
    client.stop();
    return median(values);
  };
  return { active: await of(active), standby: await of(standby) };
}

/** Follows an agent; `next` resolves to the time in the first line from now on that satisfies `wanted`. */
function follow(plane: TestPlane, agent_id: string) {
  const stop = new AbortController();
  const options = { backoff_ms: [20] };
  const frames = plane.client.follow(
    'followAgent',
    { params: { agent_id }, query: { tail: 0 }, signal: stop.signal },
    options,
  );
  const times: number[] = [];
  const read = async () => {
    while (times.length === 0) {
      const { value, done } = await frames.next();
      if (done) throw new Error('the stream has ended');
      times.push(...timesOf(value));
    }
    return times.shift()!;
  };
  return {
    next: async (wanted: (printed_ms: number) => boolean) => {
      for (;;) {
        const printed_ms = await read();
        if (wanted(printed_ms)) return printed_ms;
      }
    },
    stop: () => stop.abort(),
  };
}

function timesOf({ event, data }: Frame): number[] {
  return event === 'output' ? String(data.data).trim().split('\n').map(Number) : [];
}
