/** The time from a line that is written on a node to the client that reads it from the plane. */
import { atMost, type Figure, type Row } from '../figure.ts';
import { silentAgents, withNode } from '../program.ts';
import { windows } from './latency.ts';

export const remoteLatency: Row = {
  name: 'remote-latency',
  bottleneck:
    'A single line needs a check of both streams and one message to the plane, then a commit, a wake-up and a ' +
    'write as without a network. If nothing can be batched, that takes about half a millisecond of processor ' +
    'time on the plane and a quarter on the node. With the writer and the client, twenty thousand lines a ' +
    'second need more than two processors. Done so far: a single line is one message up and none down, and ' +
    'acknowledgements are sent only where they matter. That took a line from 440–530 to 220–250 µs on the ' +
    'node, and from 630–810 to 470–600 µs on the plane.',
  how:
    'Like the row `latency`, with all agents on a node that joined over loopback: another process with its ' +
    'own data directory, connected with mutual TLS.',
  run: async ({ quick }) => {
    const seconds = quick ? 1 : 4;
    const rounds = quick ? 1 : 3;
    return withNode(async (plane, node) => {
      const agents = await silentAgents(plane, 200, node);
      const few = agents.slice(0, 50);
      const slow = await windows(
        plane,
        few,
        { lines_per_s: 1_000, seconds, rounds, clients: few.length },
        node,
      );
      const fast = await windows(plane, agents, { lines_per_s: 20_000, seconds, rounds, clients: 200 }, node);
      const what = 'remote line to client, 1,000 lines/s over 50 agents';
      const what_fast = 'remote line to client, 20,000 lines/s over 200 agents';
      return [
        { what: `${what}, p50`, unit: 'ms', value: slow.p50_ms, goal: atMost(2.5) },
        { what: `${what}, p99`, unit: 'ms', value: slow.p99_ms, goal: atMost(8) },
        { what: `${what_fast}, p50`, unit: 'ms', value: fast.p50_ms },
        { what: `${what_fast}, p99`, unit: 'ms', value: fast.p99_ms, goal: atMost(40) },
        { what: `${what_fast}: processor time of the plane per line`, unit: 'µs', value: fast.cpu_us },
        { what: `${what_fast}: processor time of the node per line`, unit: 'µs', value: fast.home_cpu_us },
      ] satisfies Figure[];
    });
  },
};
