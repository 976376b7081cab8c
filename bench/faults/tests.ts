/** Runs existing tests for rows that they prove, and counts them from vitest's report. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root, run } from '../../scripts/run.ts';
import { withFolder } from '../program.ts';
import type { Tally } from './row.ts';

interface Report {
  testResults: { assertionResults: { fullName: string; status: string }[] }[];
}

/**
 * Runs tests, each of which is a case. `name_parts`: only those whose names contain one of them (letters and spaces only).
 * `project`: as that project of `vitest.config.ts` runs them, by default as all of them do.
 */
export async function runTests(
  tally: Tally,
  files: readonly string[],
  {
    name_parts = [],
    project,
    env,
  }: { name_parts?: readonly string[]; project?: string; env?: Record<string, string> } = {},
): Promise<void> {
  const missing = files.filter((file) => !existsSync(join(root, file)));
  tally.check(missing.length === 0, `missing test files: ${missing.join(', ')}`);
  const there = files.filter((file) => !missing.includes(file));
  if (there.length === 0) return;
  await withFolder(async (folder) => {
    const path = join(folder, 'report.json');
    const named = name_parts.length > 0 ? ['-t', name_parts.join('|')] : [];
    const as = project === undefined ? [] : ['--project', project];
    const report = ['--reporter=json', `--outputFile=${path}`];
    const ran = await run(['vitest', 'run', ...as, ...there, ...named, ...report], root, { env });
    const text = await readFile(path, 'utf8').catch(() => null);
    if (text === null) {
      tally.check(false, `cannot run the tests: ${ran.output.slice(-500)}`);
      return;
    }
    const results = (JSON.parse(text) as Report).testResults.flatMap((file) => file.assertionResults);
    const tried = results.filter(({ status }) => status === 'passed' || status === 'failed');
    for (const { fullName, status } of tried) tally.case(status === 'passed', `failed: ${fullName}`);
    tally.check(tried.length > 0, 'no test ran');
    tally.check(ran.ok, `the test run failed: ${ran.output.slice(-500)}`);
    tally.measure(`${tried.length} tests of ${there.join(', ')}, ${ran.seconds.toFixed(0)} s`);
  });
}
