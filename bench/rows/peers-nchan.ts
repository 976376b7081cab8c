/** One line to a thousand clients, compared with nginx and its pub/sub module nchan. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '../../src/base/async.ts';
import { freePort } from '../../src/testing/plane.ts';
import { Child } from '../child.ts';
import { type Figure, median, type Row } from '../figure.ts';
import { cpuSeconds, withDescendants } from '../machine.ts';
import type { ClientArgs, ClientReport } from '../processes/client.ts';
import type { PublisherArgs } from '../processes/publisher.ts';
import { silentAgents, withFolder, withProgram } from '../program.ts';
import { windows } from './latency.ts';

const MODULE = '/usr/lib/nginx/modules/ngx_nchan_module.so';
const LINES_PER_S = 1_000;
/** Of a thousand clients, the times at these many are read. */
const SAMPLED = 20;

export const nchan: Row = {
  name: 'nchan',
  how:
    'A thousand clients follow one stream of 1,000 lines/s as server-sent events: an agent of svc, and a ' +
    'channel of nginx with nchan (Debian’s `libnginx-mod-nchan`, one worker process), to which a process ' +
    'publishes the lines with HTTP requests. nchan keeps the messages in memory and sends each one alone; svc ' +
    'commits and numbers each line first, and sends what has gathered. The figure for both is the processor ' +
    'time of the server per line and client.',
  run: async ({ quick }) => {
    if (!existsSync(MODULE)) throw new Error('install libnginx-mod-nchan, or select other rows');
    const clients = quick ? 100 : 1_000;
    const seconds = quick ? 1 : 4;
    const mine: Sent[] = [];
    const theirs: Sent[] = [];
    for (let round = 0; round < (quick ? 1 : 3); round++) {
      mine.push(await sendWithSvc(clients, seconds));
      theirs.push(await sendWithNchan(clients, seconds));
    }
    const of = (all: readonly Sent[], field: keyof Sent) => median(all.map((one) => one[field]));
    const what = `${LINES_PER_S.toLocaleString('en-US')} lines/s to ${clients.toLocaleString('en-US')} clients`;
    return (
      [
        ['p50_ms', 'line to client, p50', 'ms'],
        ['p99_ms', 'line to client, p99', 'ms'],
        ['cpu_us', 'processor time per line and client', 'µs'],
      ] as const
    ).map(([field, name, unit]) => ({
      what: `${what}: ${name}`,
      unit,
      value: of(mine, field),
      limit: of(theirs, field),
      limit_is: 'nginx with nchan',
    })) satisfies Figure[];
  },
};

interface Sent {
  p50_ms: number;
  p99_ms: number;
  cpu_us: number;
}

function sendWithSvc(clients: number, seconds: number): Promise<Sent> {
  return withProgram(async (plane) => {
    const agents = await silentAgents(plane, 1);
    const rate = { lines_per_s: LINES_PER_S, seconds, rounds: 1, clients };
    const { p50_ms, p99_ms, cpu_us } = await windows(plane, agents, rate);
    return { p50_ms, p99_ms, cpu_us: cpu_us / clients };
  });
}

function sendWithNchan(clients: number, seconds: number): Promise<Sent> {
  return withNchan(async (port, pid) => {
    const request = 'GET /sub HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n';
    const client = new Child('client', {
      port,
      requests: Array.from({ length: clients }, () => request),
      end: null,
      sample_every: Math.ceil(clients / SAMPLED),
    } satisfies ClientArgs);
    // nchan answers at once with the head of the response.
    await client.next();
    const publish = async (length_s: number) => {
      const args = {
        port,
        path: '/pub',
        lines_per_s: LINES_PER_S,
        seconds: length_s,
      } satisfies PublisherArgs;
      const publisher = new Child('publisher', args);
      const { written } = await publisher.next<{ written: number }>();
      const taken = await client.request<ClientReport>({ take: written * SAMPLED });
      await publisher.end();
      if (taken.lines < written * SAMPLED * 0.999) throw new Error(`${taken.lines} lines came`);
      return taken;
    };
    await publish(1);
    const used_s = () => withDescendants([pid]).reduce((sum, one) => sum + cpuSeconds(one), 0);
    const before_s = used_s();
    const { p50_ms, p99_ms } = await publish(seconds);
    const cpu_us = ((used_s() - before_s) * 1e6) / (LINES_PER_S * seconds * clients);
    await client.end();
    return { p50_ms, p99_ms, cpu_us };
  });
}

function withNchan<T>(fn: (port: number, pid: number) => Promise<T>): Promise<T> {
  return withFolder(async (folder) => {
    const port = await freePort();
    await mkdir(join(folder, 'logs'));
    const config = join(folder, 'nginx.conf');
    await writeFile(config, configuration(folder, port));
    const nginx = spawn('nginx', ['-p', folder, '-c', config, '-e', join(folder, 'logs/error.log')], {
      env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` },
      stdio: 'inherit',
    });
    const ended = once(nginx, 'exit');
    try {
      while (!existsSync(join(folder, 'nginx.pid'))) {
        if (nginx.exitCode !== null) throw new Error(await readFile(join(folder, 'logs/error.log'), 'utf8'));
        await sleep(20);
      }
      return await fn(port, nginx.pid!);
    } finally {
      nginx.kill('SIGTERM');
      await ended;
    }
  });
}

function configuration(folder: string, port: number): string {
  return `
load_module ${MODULE};
daemon off;
worker_processes 1;
pid ${join(folder, 'nginx.pid')};
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path ${join(folder, 'body')};
  proxy_temp_path ${join(folder, 'proxy')};
  fastcgi_temp_path ${join(folder, 'fastcgi')};
  uwsgi_temp_path ${join(folder, 'uwsgi')};
  scgi_temp_path ${join(folder, 'scgi')};
  keepalive_requests 1000000;
  server {
    listen 127.0.0.1:${port};
    location = /pub { nchan_publisher; nchan_channel_id bench; nchan_message_buffer_length 10000; }
    location = /sub { nchan_subscriber; nchan_channel_id bench; nchan_subscriber_first_message newest; }
  }
}
`;
}
