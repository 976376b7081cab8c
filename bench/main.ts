/**
 * `npm run bench [-- <row>… --quick]`: measures the service against the numbers that it has to hold, each beside the
 * machine's own limit in the same run. `remote` means all rows that begin so. All rows without `--quick` make `docs/figures.md` anew.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { writeFigures } from './chapter.ts';
import { endChildren } from './child.ts';
import { type Figure, isShort, type Row } from './figure.ts';
import { endPrograms } from './program.ts';
import { page, table } from './report.ts';
import { acp } from './rows/acp.ts';
import { commits } from './rows/commits.ts';
import { engine } from './rows/engine.ts';
import { fanOut } from './rows/fan-out.ts';
import { idle } from './rows/idle.ts';
import { latency } from './rows/latency.ts';
import { mail } from './rows/mail.ts';
import { remoteLatency } from './rows/remote-latency.ts';
import { remoteMemory } from './rows/remote-memory.ts';
import { remoteOutage } from './rows/remote-outage.ts';
import { remoteThroughput } from './rows/remote-throughput.ts';
import { replay } from './rows/replay.ts';
import { requests } from './rows/requests.ts';
import { start } from './rows/start.ts';
import { runsAtOnce, teams } from './rows/teams.ts';
import { stall, throughput } from './rows/throughput.ts';

const ROW_MS_MAX = 180_000;
const rows: Row[] = [
  throughput,
  stall,
  latency,
  acp,
  fanOut,
  idle,
  replay,
  requests,
  start,
  commits,
  engine,
  teams,
  runsAtOnce,
  mail,
  remoteLatency,
  remoteThroughput,
  remoteMemory,
  remoteOutage,
];
const names = rows.map((row) => row.name);

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean', default: false } },
});
/** `remote` stands for every row whose name begins with `remote-`. */
const means = (asked: string, name: string) => name === asked || name.startsWith(`${asked}-`);
const unknown = positionals.filter((asked) => !names.some((name) => means(asked, name)));
if (unknown.length > 0) {
  console.error(`no such row: ${unknown.join(', ')}; rows are ${names.join(', ')}`);
  process.exit(2);
}

const chosen = rows.filter(
  ({ name }) => positionals.length === 0 || positionals.some((asked) => means(asked, name)),
);
const measured: { row: Row; figures: Figure[] }[] = [];
for (const row of chosen) {
  const begun_ms = performance.now();
  process.stderr.write(`${row.name} … `);
  try {
    const figures = row.run({ quick: values.quick });
    measured.push({ row, figures: await Promise.race([figures, tooLong()]) });
  } finally {
    await endChildren();
    await endPrograms();
  }
  process.stderr.write(`${((performance.now() - begun_ms) / 1000).toFixed(0)} s\n`);
}

const figures = measured.flatMap((one) => one.figures);
console.log(table(figures));
const short = figures.filter((figure) => isShort(figure)).length;
console.log(`\n${short === 0 ? 'every goal is met' : `${short} short of their goal`}`);
if (measured.length === rows.length && !values.quick) {
  await writeFigures(page(measured));
  console.log('written to docs/figures.md');
}

// On Node 26 a socket that is reset while its own end is under way is never closed, and the way out waits for it.
process.exit();

/** No row may take so long, however slow the machine. */
async function tooLong(): Promise<never> {
  await sleep(ROW_MS_MAX, undefined, { ref: false });
  throw new Error(`given up after ${ROW_MS_MAX / 1000} s`);
}
