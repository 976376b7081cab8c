/** The raw results of whole runs, one file for each, in `bench/results/`. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Figure, type Measured, median } from './figure.ts';
import { describeMachine } from './machine.ts';

const FOLDER = join(import.meta.dirname, 'results');
/** The page shows the medians of the last runs. */
export const RUNS_SHOWN = 3;

export interface Result {
  /** When the run ended, as RFC 3339. */
  date: string;
  machine: string;
  /** The load average before the run. */
  load: number;
  rows: { name: string; figures: readonly Figure[] }[];
}

/** Stores a whole run, and returns its file name. */
export async function saveResult(measured: readonly Measured[], load: number): Promise<string> {
  const date = new Date().toISOString();
  const rows = measured.map(({ row, figures }) => ({ name: row.name, figures }));
  const result: Result = { date, machine: describeMachine(), load, rows };
  const name = `${date.slice(0, 16).replace(':', '')}.json`;
  await mkdir(FOLDER, { recursive: true });
  await writeFile(join(FOLDER, name), `${JSON.stringify(result, null, 2)}\n`);
  return name;
}

/** The last runs, oldest first. */
export async function lastResults(): Promise<Result[]> {
  const names = (await readdir(FOLDER)).filter((name) => name.endsWith('.json')).sort();
  return Promise.all(
    names.slice(-RUNS_SHOWN).map(async (name) => JSON.parse(await readFile(join(FOLDER, name), 'utf8'))),
  );
}

/** A figure over several runs: medians, and the values of all runs. */
export interface Summary extends Figure {
  values: readonly number[];
  /** In how many of the runs it misses its goal. */
  missed: number;
}

/** The figures of a row over several runs. Only figures that the last run has are included. */
export function summarize(
  results: readonly Result[],
  row: string,
  isMissed: (figure: Figure) => boolean,
): Summary[] {
  const figuresOf = (result: Result) => result.rows.find(({ name }) => name === row)?.figures ?? [];
  const last = results.at(-1);
  if (!last) return [];
  return figuresOf(last).map((figure) => {
    const isSame = ({ what, limit_is }: Figure) => what === figure.what && limit_is === figure.limit_is;
    const all = results.flatMap((result) => figuresOf(result).filter(isSame));
    const limits = all.flatMap(({ limit }) => (limit === undefined ? [] : [limit]));
    return {
      ...figure,
      value: median(all.map(({ value }) => value)),
      ...(limits.length > 0 && { limit: median(limits) }),
      values: all.map(({ value }) => value),
      missed: all.filter((one) => isMissed({ ...one, ...(figure.goal && { goal: figure.goal }) })).length,
    };
  });
}
