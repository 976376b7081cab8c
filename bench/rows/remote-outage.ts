/** A network outage of a minute while an agent writes: the time until the client has everything. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '../../src/base/async.ts';
import { Child } from '../child.ts';
import { type Figure, MB, type Row } from '../figure.ts';
import type { ClientArgs, ClientReport } from '../processes/client.ts';
import { nowUs } from '../processes/clock.ts';
import { follow, LAST_LINE, portOf, textFile, withFolder, withNode } from '../program.ts';

export const remoteOutage: Row = {
  name: 'remote-outage',
  how:
    'A node behind a TCP proxy of the benchmark, and a client that follows an agent there. The proxy becomes ' +
    'a black hole: connections stay open, new ones are accepted, and nothing passes. The agent then writes ' +
    '100 MB of log text. After 60 seconds, the proxy passes everything again, beginning with what it held ' +
    'back. The times run from that moment to the first and to the last of these bytes at the client. The ' +
    'first byte waits for the next attempt to connect.',
  run: async ({ quick }) =>
    withFolder(async (folder) => {
      const size = quick ? 20 * MB : 100 * MB;
      const outage_s = quick ? 20 : 60;
      const file = await textFile(folder, 'log', size);
      const go = join(folder, 'go');
      return withNode(
        async (plane, node) => {
          const agent = await node.agent([
            'sh',
            '-c',
            `while [ ! -e ${go} ]; do sleep 0.1; done; cat ${file}`,
          ]);
          const client = new Child('client', {
            port: portOf(plane),
            requests: [follow(plane, agent.id)],
            end: LAST_LINE,
            sample_every: 0,
          } satisfies ClientArgs);
          await client.next();
          await client.request<ClientReport>({ take: 0 });
          node.proxy!.hold('up', 'down');
          await writeFile(go, '');
          await sleep(outage_s * 1000);
          const early = await client.request<ClientReport>({ take: 0 });
          if (early.bytes > MB) throw new Error('the proxy let bytes pass');
          const released_us = nowUs();
          node.proxy!.release();
          const taken = await client.next<ClientReport>();
          await client.end();
          if (taken.bytes < size) throw new Error(`the client got ${taken.bytes} bytes for ${size}`);
          const after = `after an outage of ${outage_s} s with ${size / MB} MB waiting`;
          const first_s = (taken.first_us - released_us) / 1e6;
          const last_s = (taken.last_us - released_us) / 1e6;
          return [
            { what: `${after}: first byte at the client`, unit: 's', value: first_s },
            { what: `${after}: last byte at the client`, unit: 's', value: last_s },
            {
              what: `${after}: rate in between`,
              unit: 'MB/s',
              value: size / MB / (last_s - first_s),
            },
          ] satisfies Figure[];
        },
        { proxied: true },
      );
    }),
};
