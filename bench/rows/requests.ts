/** Reading an agent record over HTTP, compared with a handler of the same server that returns a constant, and with bare Fastify. */
import { Child } from '../child.ts';
import { type Figure, median, type Row, ratioAtLeast, ratioAtMost } from '../figure.ts';
import { cpuSeconds } from '../machine.ts';
import type { LoadArgs, LoadReport } from '../processes/load.ts';
import { portOf, request, withProgram } from '../program.ts';

export const requests: Row = {
  name: 'requests',
  bottleneck:
    'On a machine with slow system calls, half of a request is the write to its socket, which a bare Fastify does too. ' +
    'The security headers of every response take 1.5 µs, and the hash of the token 0.6 µs. The rest is spread: ' +
    'the host check, the rate limit, the policy, metrics, and a promise for each stage. The record’s JSON is ' +
    'kept until the next commit. Done so far: the records and the callers of tokens are kept in memory, ' +
    'default queries are validated once, and one listener replaces Fastify’s hook for ended responses. ' +
    'Together, that took a request from ×2.36 to ×1.69 of bare Fastify on a busy machine, and from ×2.60 to ' +
    '×2.06 on an idle one. A record in memory is returned without a transaction, which took a request from 124 to 98 µs ' +
    'on a slow machine. Tried: a histogram of our own instead of prom-client’s (0.3 µs less).',
  how:
    '`GET /api/agents/{id}` with a token, one request at a time on each of 32 keep-alive connections, from ' +
    'raw sockets in another process. The limit is the same server’s simplest JSON handler, `/healthz`: it has ' +
    'the same host check, headers and metrics, but no token and no database. For comparison, without a goal, ' +
    'a bare Fastify in another process answers with the same object. They alternate; the figures are medians. ' +
    'Processor time is what the serving process used for one request, so it does not depend on the client’s ' +
    'speed.',
  run: async ({ quick }) =>
    withProgram(async (plane) => {
      const agent = await plane.agent(['/bin/true']);
      const body = await plane.finished(agent.id);
      const server = new Child('bare-json', { body });
      const { port } = await server.next<{ port: number }>();
      const text = request(plane, `/api/agents/${agent.id}`);
      const constant = request(plane, '/healthz');
      const product: Load[] = [];
      const same: Load[] = [];
      const bare: Load[] = [];
      for (let run = 0; run < (quick ? 1 : 5); run++) {
        const seconds = quick ? 1 : 2;
        bare.push(await load(port, text, seconds, server.pid));
        same.push(await load(portOf(plane), constant, seconds, plane.pid));
        product.push(await load(portOf(plane), text, seconds, plane.pid));
      }
      await server.end();
      const medians = (loads: Load[], field: keyof Load) => median(loads.map((one) => one[field]));
      return [
        {
          what: 'GET /api/agents/{id}',
          unit: 'requests/s',
          value: medians(product, 'requests_per_s'),
          limit: medians(same, 'requests_per_s'),
          limit_is: 'its /healthz',
          goal: ratioAtLeast(0.6),
        },
        {
          what: 'GET /api/agents/{id}, compared with a bare Fastify',
          unit: 'requests/s',
          value: medians(product, 'requests_per_s'),
          limit: medians(bare, 'requests_per_s'),
          limit_is: 'bare Fastify',
        },
        {
          what: 'GET /api/agents/{id}, processor time',
          unit: 'µs',
          value: medians(product, 'cpu_us'),
          limit: medians(bare, 'cpu_us'),
          limit_is: 'bare Fastify',
          goal: ratioAtMost(1.8),
        },
      ] satisfies Figure[];
    }),
};

interface Load {
  requests_per_s: number;
  cpu_us: number;
}

async function load(port: number, text: string, seconds: number, server_pid: number): Promise<Load> {
  const client = new Child('load', { port, request: text, connections: 32, seconds } satisfies LoadArgs);
  await client.next();
  const cpu_before = cpuSeconds(server_pid);
  const { requests_per_s, failed } = await client.next<LoadReport>();
  const cpu_s = cpuSeconds(server_pid) - cpu_before;
  await client.end();
  if (failed > 0) throw new Error(`${failed} requests failed`);
  return { requests_per_s, cpu_us: (cpu_s * 1e6) / (requests_per_s * seconds) };
}
