/**
 * `npm run faults -- <row|range|all> [--n N --seed S --write]`: injects faults into the real program and prints the result of
 * each row, for example `npm run faults -- 36`, `33-38` or `41,42`. `--n`: the number of repetitions, instead of each row's
 * default. `--write` puts the results into the chapter of `docs/reference/figures.md`.
 */
import { parseArgs } from 'node:util';
import { readChapter, writeChapter } from './chapter.ts';
import { endChildren } from './child.ts';
import { conflicts } from './faults/conflicts.ts';
import { force, timing } from './faults/guessing.ts';
import { malformed } from './faults/malformed.ts';
import { folders, repositories } from './faults/paths.ts';
import {
  access,
  disturbances,
  escapes,
  fullDatabase,
  kills,
  partitions,
  poolers,
  promotions,
  takeovers,
  upgrades,
} from './faults/proven.ts';
import type { FaultRow, Outcome } from './faults/row.ts';
import { bodies, origins, slowness, smuggling } from './faults/sockets.ts';
import { targets } from './faults/targets.ts';
import { ended, forged } from './faults/tokens.ts';
import { unreachable } from './faults/unreachable.ts';
import { endPrograms } from './program.ts';
import { machine } from './report.ts';

const rows: readonly FaultRow[] = [
  conflicts,
  kills,
  malformed,
  bodies,
  smuggling,
  slowness,
  forged,
  ended,
  force,
  timing,
  folders,
  repositories,
  origins,
  access,
  targets,
  escapes,
  unreachable,
  takeovers,
  disturbances,
  partitions,
  fullDatabase,
  upgrades,
  promotions,
  poolers,
];
const [FIRST, LAST] = [rows[0]!.number, rows.at(-1)!.number];
const USAGE = `npm run faults -- <row|range|all> [--n N --seed S --write]; rows are ${FIRST} to ${LAST}`;
const SEED = 20_261_122;

interface Done {
  row: FaultRow;
  outcome: Outcome;
  seconds: number;
}

function readArguments() {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { n: { type: 'string' }, seed: { type: 'string' }, write: { type: 'boolean', default: false } },
  });
  const chosen = positionals.flatMap((argument) => argument.split(',')).map(rangeOf);
  const [n, seed] = [Number(values.n ?? 1), Number(values.seed ?? SEED)];
  const every = rows.filter(({ number }) =>
    chosen.some((range) => range && number >= range[0] && number <= range[1]),
  );
  const sound =
    chosen.every(Boolean) && every.length > 0 && Number.isInteger(n) && n > 0 && Number.isInteger(seed);
  if (!sound) {
    console.error(USAGE);
    process.exit(2);
  }
  return { every, n: values.n === undefined ? null : n, seed, write: values.write };
}

function rangeOf(argument: string): [number, number] | null {
  if (argument === 'all') return [FIRST, LAST];
  const [, from, to] = /^(\d+)(?:-(\d+))?$/.exec(argument) ?? [];
  return from === undefined ? null : [Number(from), Number(to ?? from)];
}

async function runRow(row: FaultRow, n: number, seed: number): Promise<Done> {
  const begun_ms = performance.now();
  const seconds = () => (performance.now() - begun_ms) / 1000;
  try {
    return { row, outcome: await row.run(n, seed), seconds: seconds() };
  } catch (error) {
    const failures = [
      `the row stopped with an error: ${String((error as Error).stack ?? error).slice(0, 1_500)}`,
    ];
    return { row, outcome: { n: 0, failures, measured: [] }, seconds: seconds() };
  } finally {
    await endChildren();
    await endPrograms();
  }
}

function printResult({ row, outcome, seconds }: Done): void {
  const { n, failures, measured } = outcome;
  console.log(`\n${row.number}. ${row.fault}`);
  console.log(`    expected: ${row.expected}`);
  console.log(
    `    ${n.toLocaleString('en-US')} cases, ${seconds.toFixed(0)} s: ${failures.length === 0 ? 'ok' : 'failed'}`,
  );
  for (const what of failures) console.log(`    failed: ${what}`);
  for (const what of measured) console.log(`    ${what}`);
}

/** `before`: the chapter as it is. Its other rows are kept. */
function chapter(before: string, done: readonly Done[], seed: number): string {
  const about =
    '`npm run faults -- all --write` writes this section. It injects faults and hostile input into the real program, which has its ' +
    `own data directory. Seed ${seed}. To run one row, or to repeat it more often: \`npm run faults -- <row> [--n N]\`. ` +
    'Each row shows its last run; what is said of the machine is about the rows that were run last.';
  const head = ['', 'fault or bad input', 'expected', 'cases', 'result', 'measured'];
  const lines = done.map(({ row, outcome: { n, failures, measured } }) => [
    String(row.number),
    row.fault,
    row.expected,
    n.toLocaleString('en-US'),
    failures.length === 0 ? 'ok' : `failed: ${failures.join('; ')}`,
    measured.join('; '),
  ]);
  const toLine = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`;
  const numberOf = (line: string) => Number(/^\| (\d+) \|/.exec(line)?.[1]);
  const shown = new Map(before.split('\n').map((line) => [numberOf(line), line]));
  for (const cells of lines) shown.set(Number(cells[0]), toLine(cells));
  const table = [head, head.map(() => '---')].map(toLine);
  for (const { number } of rows) if (shown.has(number)) table.push(shown.get(number)!);
  return [about, machine(), table.join('\n')].join('\n\n');
}

const { every, n, seed, write } = readArguments();
const done: Done[] = [];
for (const row of every) {
  const result = await runRow(row, n ?? row.default_n, seed);
  printResult(result);
  done.push(result);
}
const failed = done.filter(({ outcome }) => outcome.failures.length > 0);
const cases = done.reduce((sum, { outcome }) => sum + outcome.n, 0).toLocaleString('en-US');
console.log(`\n${done.length} rows, ${cases} cases, ${failed.length} failed`);
if (write) {
  await writeChapter('faults', chapter(await readChapter('faults'), done, seed));
  console.log('written to docs/reference/figures.md');
}
// See `bench/main.ts`.
process.exit(failed.length > 0 ? 1 : 0);
