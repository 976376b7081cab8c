/** Runs the rows on the command line one after another, and prints their results. */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { endChildren } from './child.ts';
import { isShort, type Measured, type Row } from './figure.ts';
import { endPrograms } from './program.ts';
import { table } from './report.ts';

const ROW_MS_MAX = 180_000;

/** Returns all results; null if they are incomplete, because of `--quick` or because only some rows were selected. */
export async function runRows(rows: readonly Row[]): Promise<Measured[] | null> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { quick: { type: 'boolean', default: false } },
  });
  const names = rows.map((row) => row.name);
  const unknown = positionals.filter((pattern) => !names.some((name) => matches(pattern, name)));
  if (unknown.length > 0) {
    console.error(`no such row: ${unknown.join(', ')}; rows are ${names.join(', ')}`);
    process.exit(2);
  }

  const chosen = rows.filter(
    ({ name }) => positionals.length === 0 || positionals.some((pattern) => matches(pattern, name)),
  );
  const measured: Measured[] = [];
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
  console.log(`\n${short === 0 ? 'every goal is met' : `${short} goals missed`}`);
  return measured.length === rows.length && !values.quick ? measured : null;
}

/** `remote` selects every row whose name starts with `remote-`. */
function matches(pattern: string, name: string): boolean {
  return name === pattern || name.startsWith(`${pattern}-`);
}

/** Rejects after a time that no row may take, however slow the machine. */
async function tooLong(): Promise<never> {
  await sleep(ROW_MS_MAX, undefined, { ref: false });
  throw new Error(`the row took more than ${ROW_MS_MAX / 1000} s`);
}
