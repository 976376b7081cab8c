/** The memory that five hundred live agents on one node need on both sides. */
import { sleep } from '../../src/base/async.ts';
import { Child } from '../child.ts';
import type { Figure, Row } from '../figure.ts';
import { cpuSeconds, rssMib } from '../machine.ts';
import type { WriterArgs } from '../processes/writer.ts';
import { silentAgents, stdoutOf, withNode } from '../program.ts';

export const remoteMemory: Row = {
  name: 'remote-memory',
  how:
    'Live agents, each a real session on one node that joined over loopback. Each writes a line every second ' +
    'for some seconds, so that every stream has been read. Memory is then the resident set of the plane and ' +
    'of the node, and the growth of each per agent since before the first agent. Processor time is that of ' +
    'both, as a share of one processor, while all agents continue to write at that rate.',
  run: async ({ quick }) =>
    withNode(async (plane, node) => {
      const count = quick ? 50 : 500;
      await sleep(1_000);
      const sides = { plane, node };
      const names = ['plane', 'node'] as const;
      const empty_mib = { plane: rssMib(plane.pid), node: rssMib(node.pid) };
      const begun_ms = performance.now();
      const agents = await silentAgents(plane, count, node);
      const start_ms = (performance.now() - begun_ms) / count;
      const outputs = agents.map((agent) => stdoutOf(node, agent));
      const write = async (seconds: number) => {
        const writer = new Child('writer', { outputs, lines_per_s: count, seconds } satisfies WriterArgs);
        await writer.next();
        await writer.end();
      };
      await write(quick ? 2 : 10);
      const seconds = quick ? 2 : 10;
      const used = () => names.map((name) => cpuSeconds(sides[name].pid));
      const before_s = used();
      await write(seconds);
      const cpu = used().map((after_s, at) => ((after_s - before_s[at]!) / seconds) * 100);
      const all = `${count} live agents on one node`;
      return [
        ...names.flatMap((name) => {
          const mib = rssMib(sides[name].pid);
          return [
            { what: `${all}: memory of the ${name}`, unit: 'MiB', value: mib },
            {
              what: `${all}: growth of the ${name} per agent`,
              unit: 'KiB',
              value: ((mib - empty_mib[name]) / count) * 1024,
            },
          ];
        }),
        ...names.map((name, at) => ({
          what: `${all}, each writing a line a second: processor of the ${name}`,
          unit: '%',
          value: cpu[at]!,
        })),
        { what: `${all}: starting one`, unit: 'ms', value: start_ms },
      ] satisfies Figure[];
    }),
};
