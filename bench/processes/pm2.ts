/** Starts processes with pm2's own API, or follows one as `pm2 logs` does. Its daemon has a home folder of its own. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { nowUs } from './clock.ts';
import { readArguments } from './read-arguments.ts';

export interface Pm2Args {
  /** The folder of the installed package. */
  package: string;
  /** An empty folder for the daemon. */
  home: string;
}

/** `argv` is started `count` times, `at_once` at a time. With `end`, the output of the last one is followed until this text. */
export interface Pm2Start {
  argv: [string, ...string[]];
  count: number;
  at_once: number;
  end: string | null;
}

export interface Pm2Report {
  seconds: number;
  /** Bytes of output that arrived, and the times of the first and the last of them, in microseconds. */
  bytes: number;
  first_us: number;
  last_us: number;
}

interface Pm2 {
  connect(done: (error?: Error) => void): void;
  start(options: object, done: (error?: Error) => void): void;
  launchBus(done: (error: Error | null, bus: Bus) => void): void;
}
interface Bus {
  on(event: 'log:out', listener: (packet: { data: string }) => void): void;
}

const { package: folder, home } = await readArguments<Pm2Args>();
process.env.PM2_HOME = home;
const pm2 = createRequire(join(folder, 'package.json'))(folder) as Pm2;
await call((done) => pm2.connect(done));
process.send!({ daemon_pid: Number(readFileSync(join(home, 'pm2.pid'), 'utf8')) });

let started = 0;
process.on('message', async ({ argv, count, at_once, end }: Pm2Start) => {
  const report = { bytes: 0, first_us: 0, last_us: 0 };
  const followed = end === null ? null : follow(end, report);
  await followed?.ready;
  const begun_ms = performance.now();
  let left = count;
  const next = async () => {
    while (left-- > 0) await startOne(argv);
  };
  await Promise.all(Array.from({ length: at_once }, next));
  const seconds = (performance.now() - begun_ms) / 1000;
  await followed?.ended;
  process.send!({ seconds, ...report } satisfies Pm2Report);
});

function startOne([script, ...args]: readonly [string, ...string[]]): Promise<void> {
  const name = `bench-${started++}`;
  return call((done) => pm2.start({ name, script, args, interpreter: 'none', autorestart: false }, done));
}

function follow(end: string, report: Omit<Pm2Report, 'seconds'>) {
  let finish = () => {};
  const ended = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const ready = new Promise<void>((resolve, reject) => {
    pm2.launchBus((error, bus) => {
      if (error) return reject(error);
      let last = '';
      bus.on('log:out', ({ data }) => {
        report.last_us = nowUs();
        report.first_us ||= report.last_us;
        report.bytes += Buffer.byteLength(data);
        last = (last + data.slice(-4096)).slice(-4096);
        if (last.includes(end)) finish();
      });
      resolve();
    });
  });
  return { ready, ended };
}

function call(run: (done: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => run((error) => (error ? reject(error) : resolve())));
}
