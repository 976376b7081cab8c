/** Starting processes and following their output, compared with pm2. */
import { join } from 'node:path';
import { Child } from '../child.ts';
import { atMost, type Figure, MB, median, type Row, ratioAtLeast } from '../figure.ts';
import { cpuSeconds, rssMib, withDescendants } from '../machine.ts';
import { installPeer, peers } from '../peers/install.ts';
import type { Pm2Args, Pm2Report, Pm2Start } from '../processes/pm2.ts';
import { LAST_LINE, silentAgents, textFile, withFolder, withProgram } from '../program.ts';
import { oneRun } from './throughput.ts';

const AT_ONCE = 16;

export const pm2: Row = {
  name: 'pm2',
  bottleneck:
    'pm2 does less: it writes to a file and sends on what it wrote. svc starts eight processes for each agent ' +
    '(three of them end at once), and its figure for output includes a synced commit. In the service, an ' +
    'eighth of the time of a start is commits, and an eighth resolves the links in the path of its workdir. Done so ' +
    'far: eight processes instead of 13, no `mkdir`, `mv` or `rm`, and small files without the thread pool. Together, ' +
    'that took a start from 13.5 to 11.7 ms in the service, and from 32.9 to 28.3 ms in all processes.',
  how:
    `pm2 ${peers.pm2} starts the same processes (\`sleep\`) through its own API, ${AT_ONCE} at a time, and one ` +
    'client follows a `cat` of log text as `pm2 logs` does. The two alternate; the figures are medians. The ' +
    'work is not the same: pm2 writes output to a file that is not synced, does not number it, and a client ' +
    'that reconnects misses what was printed in between. Processor time is that of the service, or of ' +
    "pm2's daemon.",
  run: async ({ quick }) => {
    const folder = await installPeer('pm2');
    const starts: { svc: Started; pm2: Started }[] = [];
    const rates: { svc: number; pm2: number }[] = [];
    for (let round = 0; round < (quick ? 1 : 3); round++) {
      const count = quick ? 32 : 150;
      starts.push({ svc: await startAgents(count), pm2: await startWithPm2(folder, count) });
      rates.push(await followBoth(folder, (quick ? 20 : 100) * MB));
    }
    const of = (get: (one: (typeof starts)[number]) => number) => median(starts.map(get));
    return [
      {
        what: 'processes started',
        unit: 'per s',
        value: of(({ svc }) => svc.per_s),
        limit: of(({ pm2 }) => pm2.per_s),
        limit_is: 'pm2',
        goal: ratioAtLeast(1),
      },
      {
        what: 'processor time per started process',
        unit: 'ms',
        value: of(({ svc }) => svc.cpu_ms),
        limit: of(({ pm2 }) => pm2.cpu_ms),
        limit_is: 'pm2',
        goal: atMost(10),
      },
      {
        what: `memory of the service with ${quick ? 32 : 150} processes`,
        unit: 'MiB',
        value: of(({ svc }) => svc.mib),
        limit: of(({ pm2 }) => pm2.mib),
        limit_is: 'pm2',
      },
      {
        what: 'one process flat out, to one follower',
        unit: 'MB/s',
        value: median(rates.map(({ svc }) => svc)),
        limit: median(rates.map(({ pm2 }) => pm2)),
        limit_is: 'pm2, not durable',
        goal: ratioAtLeast(1),
      },
    ] satisfies Figure[];
  },
};

interface Started {
  per_s: number;
  cpu_ms: number;
  mib: number;
}

function startAgents(count: number): Promise<Started> {
  return withProgram(async (plane) => {
    await silentAgents(plane, AT_ONCE);
    return measureStarts(plane.pid, count, async () => {
      const begun_ms = performance.now();
      await silentAgents(plane, count);
      return (performance.now() - begun_ms) / 1000;
    });
  });
}

function startWithPm2(folder: string, count: number): Promise<Started> {
  return withPm2(folder, async (child, daemon_pid) => {
    const argv: Pm2Start['argv'] = ['/bin/sleep', '100000'];
    await child.request<Pm2Report>({ argv, count: AT_ONCE, at_once: AT_ONCE, end: null } satisfies Pm2Start);
    return measureStarts(daemon_pid, count, async () => {
      const request = { argv, count, at_once: AT_ONCE, end: null } satisfies Pm2Start;
      return (await child.request<Pm2Report>(request)).seconds;
    });
  });
}

async function measureStarts(pid: number, count: number, start: () => Promise<number>): Promise<Started> {
  const before_s = cpuSeconds(pid);
  const seconds = await start();
  return {
    per_s: count / seconds,
    cpu_ms: ((cpuSeconds(pid) - before_s) * 1000) / count,
    mib: rssMib(pid),
  };
}

function followBoth(folder: string, bytes: number): Promise<{ svc: number; pm2: number }> {
  return withFolder(async (texts) => {
    const file = await textFile(texts, 'log', bytes);
    const svc = await withProgram((plane) => oneRun(plane, file));
    const pm2 = await withPm2(folder, async (child) => {
      const request = { argv: ['/bin/cat', file], count: 1, at_once: 1, end: LAST_LINE } satisfies Pm2Start;
      const { bytes: received, first_us, last_us } = await child.request<Pm2Report>(request);
      return received / (last_us - first_us);
    });
    return { svc, pm2 };
  });
}

/** Runs a pm2 daemon with an empty home folder, and ends it with all its processes. */
function withPm2<T>(folder: string, fn: (child: Child, daemon_pid: number) => Promise<T>): Promise<T> {
  return withFolder(async (temp) => {
    const args = { package: folder, home: join(temp, 'home') } satisfies Pm2Args;
    const child = new Child('pm2', args);
    const { daemon_pid } = await child.next<{ daemon_pid: number }>();
    try {
      return await fn(child, daemon_pid);
    } finally {
      await child.end();
      // The daemon is not a child of this process, so its exit cannot be awaited.
      for (const pid of withDescendants([daemon_pid])) process.kill(pid, 'SIGKILL');
    }
  });
}
