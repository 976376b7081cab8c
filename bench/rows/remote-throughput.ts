/** One agent on a node at full speed: over TLS to the plane, committed, and to one client. Compared with the minimal path. */
import { join } from 'node:path';
import { type Figure, MB, median, type Row, ratioAtLeast } from '../figure.ts';
import { textFile, withFolder, withNode } from '../program.ts';
import { oneRun, rawPath } from './throughput.ts';

export const remoteThroughput: Row = {
  name: 'remote-throughput',
  bottleneck:
    'Node, plane, sealing, search, pump and client share two processors; the limit has one of them for ' +
    'itself. The node uses a third of what the plane uses. Of the plane’s own thread, a third is the store, ' +
    'as without a network, and a sixth is the gRPC library with its decoding and copying. Done so far: the ' +
    'node reuses the memory of the pieces that it sends, and needs 1.0 s instead of 2.1–2.9 s for 100 MB.',
  how:
    'Like the row `throughput`, with the agent on a node that joined over loopback (mutual TLS, its own ' +
    'process and data directory). The limit is the same raw path on one machine, without a network.',
  run: async ({ quick }) =>
    withFolder(async (folder) => {
      const file = await textFile(folder, 'log', quick ? 20 * MB : 150 * MB);
      const values: number[] = [];
      const limits: number[] = [];
      for (let run = 0; run < (quick ? 1 : 3); run++) {
        limits.push(await rawPath(file, join(folder, `raw-${run}.db`)));
        values.push(await withNode((plane, node) => oneRun(plane, file, node)));
      }
      return [
        {
          what: 'one remote agent flat out, committed, to one client: log text',
          unit: 'MB/s',
          value: median(values),
          limit: median(limits),
          limit_is: 'raw path',
          goal: ratioAtLeast(0.35),
        },
      ] satisfies Figure[];
    }),
};
