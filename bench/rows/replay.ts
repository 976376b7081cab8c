/** The replay of a whole log of small events to one client, from rows and from sealed segments, and its memory use. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { silentLog } from '../../src/base/log.ts';
import { openEventLog } from '../../src/events/log.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { addAgent, addSession, batch } from '../../src/store/testing.ts';
import type { TestPlane } from '../../src/testing/plane.ts';
import { Child } from '../child.ts';
import { atLeast, type Figure, median, type Row } from '../figure.ts';
import { forgetPeak, peakMib, rssMib } from '../machine.ts';
import type { ClientArgs, ClientReport } from '../processes/client.ts';
import type { RawFanOutArgs } from '../processes/raw-fan-out.ts';
import { follow, portOf, withFolder, withProgram } from '../program.ts';
import { asEnded } from './fill.ts';

export const replay: Row = {
  name: 'replay',
  bottleneck:
    'Rows are decoded and framed on the main thread: reading them from SQLite takes half of it, JSON and ' +
    'copying a quarter. Done so far: the common text of consecutive frames is built once (111–162 ms became ' +
    '89–112 ms for a log), and V8’s heap may double before it is collected (142 ms became 94 ms for a sealed ' +
    'log). Tried: writing the frames into one growing buffer (32 MiB more at the peak).',
  how:
    'A log of 100,000 events of 35 bytes each. While the service is stopped, its own store writes them into ' +
    'the database (from a real agent, the service would combine such lines into larger events). Then one raw ' +
    'socket reads the log from the beginning. The figure counts the bytes of the stream. The limit is a bare ' +
    'Node server that sends the same bytes from memory. Memory is the peak growth of the service’s resident ' +
    'set over all runs, after one run to warm up.',
  run: async ({ quick }) => {
    const total = quick ? 20_000 : 100_000;
    return [...(await readLog(total, 'rows')), ...(await readLog(total, 'sealed'))];
  },
};

async function readLog(total: number, kind: 'rows' | 'sealed'): Promise<Figure[]> {
  return withFolder((folder) =>
    withProgram(async (plane) => {
      await plane.kill('SIGTERM');
      await fill(plane, total, kind === 'sealed');
      await plane.start();
      const frames = await read(plane, total);
      forgetPeak(plane.pid);
      const before_mib = rssMib(plane.pid);
      const values: number[] = [];
      const limits: number[] = [];
      const file = join(folder, 'frames');
      writeFileSync(file, Buffer.alloc(frames.bytes, 'frame'));
      for (let run = 0; run < 5; run++) {
        values.push(rate(await read(plane, total)));
        limits.push(await bare(file));
      }
      const grew_mib = Math.max(0, peakMib(plane.pid) - before_mib);
      const what = `replay of ${total.toLocaleString('en-US')} small events, ${kind === 'rows' ? 'unsealed' : 'sealed'}`;
      return [
        {
          what,
          unit: 'MB/s',
          value: median(values),
          limit: median(limits),
          limit_is: 'bare server',
          goal: atLeast(kind === 'rows' ? 200 : 400),
        },
        { what: `${what}: memory`, unit: 'MiB more', value: grew_mib },
      ] satisfies Figure[];
    }),
  );
}

async function fill(plane: TestPlane, total: number, seal: boolean): Promise<void> {
  const { data_dir } = plane;
  const store = await openSqlite({ path: join(data_dir, 'svc.db'), log: silentLog });
  const num = await addAgent(store, 'agt_replay');
  await addSession(store, num, 'ses_replay');
  const per = 1_000;
  for (let i = 0, from = 0; i < total; i += per) {
    const texts = Array.from({ length: per }, (_, k) =>
      `line ${i + k} is a small one of a log`.padEnd(34).concat('\n'),
    );
    const made = batch('agt_replay', 'ses_replay', 0, texts, { ts_ms: Date.now() });
    await store.ingest({ ...made, from, to: from + made.bytes.length });
    from += made.bytes.length;
  }
  await asEnded(store);
  if (seal) {
    const log = openEventLog({
      store,
      data_dir,
      clock: { now: () => Date.now() },
      log: silentLog,
      sealing: { from_bytes: 1, busy_ms: 0, keep_bytes: 0, idle_from_bytes: 1 },
    });
    await log.runMaintenance();
    await log.close();
  }
  await store.close();
}

async function read(plane: TestPlane, total: number): Promise<ClientReport> {
  const client = new Child('client', {
    port: portOf(plane),
    requests: [follow(plane, 'agt_replay', 'after=0')],
    end: `id: ${total}\n`,
    sample_every: 0,
  } satisfies ClientArgs);
  await client.next();
  const taken = await client.next<ClientReport>();
  await client.end();
  return taken;
}

async function bare(file: string): Promise<number> {
  const server = new Child('raw-fan-out', { file, chunk_bytes: 256 * 1024 } satisfies RawFanOutArgs);
  const { port } = await server.next<{ port: number }>();
  const args = { port, requests: [''], end: null, sample_every: 0 } satisfies ClientArgs;
  const client = new Child('client', args);
  await client.next();
  server.send({ go: true });
  const taken = await client.next<ClientReport>();
  await Promise.all([client.end(), server.end()]);
  return rate(taken);
}

function rate(taken: ClientReport): number {
  return taken.bytes / (taken.last_us - taken.first_us);
}
